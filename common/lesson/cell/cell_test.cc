#include "common/lesson/cell/cell.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "common/base/busy_cores_testing.h"
#include "common/base/undisturbed_timer.h"
#include "common/device/device_table.h"
#include "common/device/stream.h"
#include "common/drawing/drawing.h"
#include "common/lesson/cell/judge.h"

namespace d2l {
namespace {

// Keeps a core busy for so long, by the clock of this thread.
void Work(double seconds) {
  const std::clock_t begin = std::clock();
  while (std::clock() - begin < seconds * CLOCKS_PER_SEC) {
  }
}

class CellTest : public ::testing::Test {
 protected:
  // The output of the cell while `check` ran.
  template <typename F>
  std::string Output(F check) {
    ::testing::internal::CaptureStdout();
    check();
    return ::testing::internal::GetCapturedStdout();
  }

  CellResult result_;
  Cell cell_{Size::kCourse, &result_};
};

TEST_F(CellTest, BySizePicks) {
  EXPECT_EQ(cell_.BySize(1, 2, 3), 2);
  EXPECT_EQ(Cell(Size::kSmall, &result_).BySize(1, 2, 3), 1);
  EXPECT_EQ(Cell(Size::kLarge, &result_).BySize(1, 2, 3), 3);
}

TEST_F(CellTest, TimeTellsEnqueueFromCompletion) {
  const Device device = Devices()[0].device;
  int calls = 0;
  const Timing timing = cell_.Time("sleep", device, [&] {
    ++calls;
    DefaultStream(device).HostCallback(
        [] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); });
  });
  EXPECT_GE(timing.enqueue.value.count, 6);
  // The warm-up is not counted, nor is what other programs disturbed.
  EXPECT_GE(calls, timing.enqueue.value.count + 1);
  if (!cell_.BesideOthers()) {
    EXPECT_EQ(calls, timing.enqueue.value.count + 1);
  }
  EXPECT_EQ(timing.completion.value.count, timing.enqueue.value.count);
  EXPECT_GE(timing.completion.value.min, 0.005);
  // Tests order, not speed: every repeat reads the clock for enqueue first.
  EXPECT_LE(timing.enqueue.value.median, timing.completion.value.median);
  EXPECT_LE(timing.wait.value.median, timing.completion.value.high);
  EXPECT_EQ(timing.wait.Name(),
            "sleep, wait (" + MeasuredOn(device).english + ")");
  ASSERT_EQ(result_.figures.size(), 2u);
  EXPECT_EQ(result_.figures[0].Name(),
            "sleep, enqueue (" + MeasuredOn(device).english + ")");
  EXPECT_EQ(result_.figures[1].Name(),
            "sleep, completion (" + MeasuredOn(device).english + ")");
  EXPECT_EQ(result_.figures[1].unit, "s");
}

// What is judged must not be slower because it was recorded, or waited.
TEST_F(CellTest, TimeWaitsAsAsked) {
  const Device device = Devices()[0].device;
  int asked = 0;
  int waited = 0;
  cell_.Time(
      "pairs", device, [&] { EXPECT_EQ(asked++, waited); },
      [&] { EXPECT_EQ(++waited, asked); });
  EXPECT_EQ(asked, waited);
  EXPECT_GE(waited, 10);
}

TEST_F(CellTest, TimeHostHasOneColumn) {
  cell_.TimeHost("work", [] {});
  ASSERT_EQ(result_.figures.size(), 1u);
  EXPECT_EQ(result_.figures[0].Name(), "work, completion (host)");
}

TEST_F(CellTest, MeasuredOnNamesTheKind) {
  const DeviceInfo& info = Devices()[0];
  EXPECT_EQ(MeasuredOn(info.device),
            info.device.ToString() + ", " + DeviceKindName(info.kind));
}

TEST_F(CellTest, ClaimsHaveMeaningAndReason) {
  Judgement judgement = {Verdict::kHolds, "1.89x", "95 %: 1.8-1.9"};
  cell_.Claim("Two are {} as fast as one.", judgement, "Two cores.");
  cell_.Claim("It is fast.", judgement);
  judgement.verdict = Verdict::kInconclusive;
  judgement.reason = "Too close.";
  cell_.Claim("It is fast.", judgement, "One core.");
  const std::vector<Claimed>& claims = result_.claims;
  ASSERT_EQ(claims.size(), 3u);
  EXPECT_EQ(claims[0].text.english, "Two are {} as fast as one.");
  EXPECT_EQ(claims[0].Meaning(), "Two are 1.89x as fast as one.");
  EXPECT_EQ(claims[0].judgement.reason, "Two cores.");
  EXPECT_EQ(claims[1].Meaning(), "It is fast.");
  EXPECT_EQ(claims[2].judgement.reason, "Too close. One core.");
  judgement.disturbed = true;
  cell_.Claim("It is fast.", judgement, "One core.");
  EXPECT_EQ(claims[3].judgement.reason, "Too close.")
      << "that is no reason for a time that is not known";
}

TEST_F(CellTest, NoDifferenceIsSaid) {
  const Judgement same = Above(Known("gain", "x", 1), 1.1);
  cell_.Claim("Two are {} as fast as one.", same);
  cell_.Claim("It is fast.", same);
  EXPECT_EQ(result_.claims[0].Meaning(),
            "Two are 1.00x as fast as one. No difference.");
  EXPECT_EQ(result_.claims[1].Meaning(), "It is fast. No difference (1.00x).");
}

TEST_F(CellTest, RightResultsSayNothing) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Output([&] {
              cell_.CheckClose("a", std::vector<float>{1, inf}, {1, inf}, 0);
              cell_.CheckClose("b", std::vector<double>{}, {}, 0);
              // The tolerance is relative above 1.
              cell_.CheckClose("c", std::vector<double>{1000.5}, {1000}, 1e-3);
              cell_.Check(true, "d");
            }),
            "");
  EXPECT_EQ(result_.wrong_results, 0);
}

TEST_F(CellTest, WrongResultsSayWhatDiffers) {
  const std::string text = Output([&] {
    cell_.CheckClose("z", std::vector<float>{3, 3.5, 2, 3}, {3, 3, 3, 3},
                     0.125);
  });
  EXPECT_NE(text.find("z: 2 of 4 elements differ; the first is [1]: got 3.5, "
                      "expected 3, tolerance 0.125"),
            std::string::npos)
      << text;
  EXPECT_EQ(result_.wrong_results, 1);
}

TEST_F(CellTest, NanLengthAndInfinityAreWrong) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::string text = Output([&] {
    cell_.CheckClose("nan", std::vector<float>{NAN}, {1}, 1e9);
    cell_.CheckClose("nan twice", std::vector<float>{NAN}, {NAN}, 1e9);
    cell_.CheckClose("length", std::vector<float>{1, 2}, {1}, 1);
    cell_.CheckClose("sign", std::vector<float>{inf}, {-inf}, 1);
    cell_.CheckClose("finite", std::vector<float>{1}, {inf}, 1);
  });
  EXPECT_EQ(result_.wrong_results, 5) << text;
  EXPECT_NE(text.find("length: 2 elements, expected 1"), std::string::npos);
}

TEST_F(CellTest, InterleavedAlternativesTakeTurns) {
  const Device first = Devices()[0].device;
  const Device last = Devices().back().device;
  std::string turns;
  bool waited = false;
  const Timings timings = cell_.TimeInterleaved(
      {{"a", {first}, [&] { turns += 'a'; }},
       {"b",
        {first, last},
        [&] {
          turns += 'b';
          for (const Device device : {first, last}) {
            DefaultStream(device).HostCallback([] {
              std::this_thread::sleep_for(std::chrono::milliseconds(2));
            });
          }
        }},
       {"c", {}, [&] { turns += 'c'; }, [&] { waited = true; }}});
  ASSERT_EQ(timings.size(), 3u);
  const std::size_t count = timings.front().enqueue.samples.size();
  EXPECT_GE(count, 6u);
  // The warm-up and nine repeats. Beside other programs there are more, of
  // those alternatives that they disturbed.
  std::string expected;
  const std::size_t rounds = cell_.BesideOthers() ? 9 : count;
  if (cell_.BesideOthers()) {  // work that is short runs before it is timed
    turns.erase(std::unique(turns.begin(), turns.end()), turns.end());
  }
  for (std::size_t i = 0; i < rounds + 1; ++i) expected += "abc";
  EXPECT_EQ(cell_.BesideOthers() ? turns.substr(0, expected.size()) : turns,
            expected);
  EXPECT_TRUE(waited);
  for (const Timing& timing : timings) {
    EXPECT_EQ(timing.completion.samples.size(), count);
    EXPECT_EQ(timing.wait.value.count, static_cast<std::int64_t>(count));
  }
  // Both devices must have finished.
  EXPECT_GE(timings[1].completion.value.min, 0.002);
  EXPECT_EQ(timings[2].completion.measured_on, "host");
  EXPECT_EQ(timings[1].completion.measured_on,
            MeasuredOn(std::vector<Device>{first, last}));
  EXPECT_EQ(result_.figures.size(), 6u);

  EXPECT_EQ(timings["b"].completion.label, "b");
  EXPECT_EQ(&timings["c"], &timings.back());
  try {
    timings["d"];
    FAIL() << "there is no d";
  } catch (const std::out_of_range& error) {
    EXPECT_STREQ(error.what(),
                 "there is no \"d\" among the timings; there are \"a\", \"b\", "
                 "\"c\"");
  }
  const Judgement faster = Faster(timings["a"], timings["b"], 1.1);
  if (!faster.disturbed) {
    EXPECT_EQ(faster.verdict, Verdict::kHolds);
  }
}

TEST_F(CellTest, RepeatsForAsLongAsAsked) {
  const auto calls = [&](double min_seconds) {
    CellTiming timing;
    timing.min_seconds = min_seconds;
    Cell cell(Size::kCourse, &result_, /*verbose=*/false, {}, timing);
    int calls = 0;
    cell.TimeHost("work", [&] { ++calls, Work(1e-3); });
    return calls;
  };
  const int fewest = calls(0);
  EXPECT_GE(fewest, 10);  // with the warm-up
  EXPECT_LT(2 * fewest, calls(0.4));
}

// Beside two programs for each core some repeats are undisturbed, and the
// figures are theirs.
TEST_F(CellTest, KeepsTheUndisturbedRepeatsBesideOtherPrograms) {
  if (ProcessTimes::Read().waited.empty()) GTEST_SKIP() << "no schedstat";
  const BusyCores others(/*programs_per_core=*/2);
  Cell cell(Size::kCourse, &result_);
  int calls = 0;
  const Timing timing =
      cell.TimeInterleaved({{"work", {}, [&] { ++calls, Work(1e-3); }}})[0];
  if (!cell.BesideOthers()) GTEST_SKIP() << "/proc/stat says nothing here";
  ASSERT_FALSE(timing.completion.disturbed);
  EXPECT_GE(timing.completion.value.count, 6);
  // All are, if a free core was found each time.
  EXPECT_LE(timing.completion.value.count, calls - 1);
  EXPECT_EQ(timing.repeats.size(), timing.completion.samples.size());
  // The work's own time, whoever else runs.
  EXPECT_LT(timing.completion.value.median, 1.2e-3);
}

// Of repeats that are longer than a time slice none is undisturbed.
TEST_F(CellTest, SaysThatOtherProgramsDisturbedAllRepeats) {
  if (ProcessTimes::Read().waited.empty()) GTEST_SKIP() << "no schedstat";
  const BusyCores others(/*programs_per_core=*/2);
  Cell cell(Size::kCourse, &result_);
  const Figure figure = cell.TimeHost("work", [] { Work(20e-3); });
  if (!cell.BesideOthers()) GTEST_SKIP() << "/proc/stat says nothing here";
  EXPECT_TRUE(figure.disturbed);
  EXPECT_GE(figure.value.count, 9) << "all count";
}

// The repeats of a measurement that the cell times itself.
TEST_F(CellTest, ReportsAsManyRepeatsOfEach) {
  const std::vector<Elapsed> a(9, {1, true});
  std::vector<Elapsed> b(9, {2, true});
  b[0] = {8, false};
  const std::vector<Figure> figures =
      cell_.ReportTimes("host", {{"a", a}, {"b", b}});
  const std::size_t count = cell_.BesideOthers() ? 8 : 9;
  EXPECT_EQ(figures[0].samples, std::vector<double>(count, 1));
  EXPECT_EQ(figures[1].samples.size(), count);
  EXPECT_EQ(figures[1].samples.back(), 2);
  EXPECT_EQ(result_.figures.size(), 2u);
}

TEST_F(CellTest, PrintTimesTellsAskingFromWaiting) {
  const auto timing = [](const char* label, double asked, double done) {
    return Timing{Sampled(label, "host", "s", {asked}),
                  Sampled(label, "host", "s", {done}),
                  {}};
  };
  Timings timings;
  timings.push_back(timing("one", 0.25, 0.25));
  timings.push_back(timing("another", 1e-6, 0.125));
  EXPECT_EQ(Output([&] { cell_.PrintTimes(timings); }),
            "  one        250 ms\n"
            "  another    125 ms   enqueued in 1.00 us\n");
}

TEST_F(CellTest, ShowPrintsAndWritesNothingElse) {
  EXPECT_EQ(Output([&] {
              cell_.Show({"z = x", "[x]\n", "<svg/>"});
            }),
            "\nz = x\n\n[x]\n");
  ASSERT_EQ(result_.drawings.size(), 1u);
  EXPECT_EQ(result_.drawings[0].name, "z = x");
  EXPECT_EQ(result_.drawings[0].file, "");
}

TEST_F(CellTest, LargeDrawingsAreForVerbose) {
  EXPECT_EQ(Output([&] {
              cell_.ShowIfVerbose({"z = x", "[x]\n", "<svg/>"});
            }),
            "");
  Cell verbose(Size::kCourse, &result_, true);
  EXPECT_FALSE(cell_.verbose());
  EXPECT_TRUE(verbose.verbose());
  EXPECT_EQ(Output([&] {
              verbose.ShowIfVerbose({"z = x", "[x]\n", "<svg/>"});
            }),
            "\nz = x\n\n[x]\n");
  EXPECT_EQ(result_.drawings.size(), 2u);
}

TEST_F(CellTest, ShowWritesToTheDirectory) {
  namespace fs = std::filesystem;
  const fs::path directory = fs::path(::testing::TempDir()) / "drawings";
  fs::remove_all(directory);
  fs::create_directories(directory);
  result_.text.id = "004/In5";
  Cell cell(Size::kCourse, &result_, false, {directory.string(), "async"});
  Output([&] {
    cell.Show({"z = x * y", "", "<svg/>"});
    cell.Show({"z = x * y", "", "<svg>2</svg>"});
    cell.Show({"../..", "", "<svg/>"});
  });
  ASSERT_EQ(result_.drawings.size(), 3u);
  EXPECT_EQ(result_.drawings[0].file,
            (directory / "async_004-In5_z-x-y.svg").string());
  EXPECT_EQ(result_.drawings[1].file,
            (directory / "async_004-In5_z-x-y-2.svg").string());
  for (const Shown& shown : result_.drawings) {
    EXPECT_EQ(fs::path(shown.file).parent_path(), directory);
    EXPECT_TRUE(fs::exists(shown.file)) << shown.file;
  }
  EXPECT_EQ(fs::file_size(result_.drawings[1].file), 12u);
  fs::remove_all(directory);
  Output([&] {
    EXPECT_THROW(cell.Show({"gone", "", ""}), std::runtime_error);
  });
}

TEST_F(CellTest, GraphsAreWrittenForDotWhereItIsMissing) {
  namespace fs = std::filesystem;
  const fs::path directory = fs::path(::testing::TempDir()) / "graphs";
  fs::remove_all(directory);
  fs::create_directories(directory);
  result_.text.id = "004/In5";
  Cell cell(Size::kCourse, &result_, false, {directory.string(), "async"});
  const std::string path = std::getenv("PATH");
  setenv("PATH", directory.c_str(), 1);
  const std::string printed = Output([&] {
    cell.ShowIfVerbose({"z = x", "level\n", "", "digraph {}"});
  });
  setenv("PATH", path.c_str(), 1);
  EXPECT_THAT(printed, ::testing::HasSubstr("apt-get install graphviz"));
  ASSERT_EQ(result_.drawings.size(), 1u);
  const Shown& shown = result_.drawings[0];
  EXPECT_EQ(shown.file, (directory / "async_004-In5_z-x.dot").string());
  EXPECT_EQ(shown.text, "\nz = x\n\nlevel\n");
  EXPECT_EQ(fs::file_size(shown.file), 10u);
  fs::remove_all(directory);
}

}  // namespace
}  // namespace d2l
