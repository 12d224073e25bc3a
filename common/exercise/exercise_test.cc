// The judge's frame: verdicts, texts about wrong answers, races, probes.

#include "common/exercise/exercise.h"

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/console/command_line.h"
#include "common/base/console/language.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/stream.h"
#include "common/exercise/probes.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// The example of exercise.h.
float Half(float /*x*/) {
  // YOUR CODE
  throw NotDone();
}
D2L_ANSWER("half", Half);

void JudgeHalf(Judging& judging, float (*answer)(float)) {
  for (const float x : {3.5f, -1.f, 0.f}) {
    const float got = answer(x);
    if (got == x / 2) continue;
    judging.Wrong({absl::StrFormat("%g", x), absl::StrFormat("%g", got),
                   absl::StrFormat("%g", x / 2), "Half is a factor."});
  }
  // Sleeps, so that one is certainly slower than the other.
  const auto sleep = [](int count) {
    return [count] {
      for (int i = 0; i < count; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    };
  };
  judging.Race({"ten sleeps", {}, sleep(10)},
               {{"one sleep", {}, sleep(1)}, 2, "Sleep less.", 1e-3, "bound"});
}
D2L_JUDGE("half", JudgeHalf);

namespace thirds {
float Half(float x) { return x / 3; }
}  // namespace thirds
D2L_MISTAKE("half", thirds, Half, "Half is a factor.");

float Right(float x) { return x / 2; }
float Throws(float /*x*/) { throw std::out_of_range("index 7 of 3"); }
float MakesWhatCannotBeRead(float /*x*/) {
  throw std::logic_error("undefined; requested at exercises/judges/half.cc:1");
}
double OfAnotherType(double x) { return x / 2; }

template <typename Function>
Judged JudgeHalfOf(Function* function, bool timed = false) {
  return JudgeAnswer({"half", "", "", "", std::any(function)}, timed);
}

TEST(JudgeAnswer, FindsWhatIsRegistered) {
  ASSERT_EQ(Answers().size(), 2u);
  const Answer& untouched = Answers()[0];
  EXPECT_THAT(untouched.file, HasSubstr("exercise_test.cc"));
  EXPECT_EQ(JudgeAnswer(untouched, false).verdict, ExerciseVerdict::kNotDone);
  const Answer& mistake = Answers()[1];
  EXPECT_EQ(mistake.mistake, "thirds");
  EXPECT_THAT(JudgeAnswer(mistake, false).text, HasSubstr(mistake.expected));
}

TEST(JudgeAnswer, SaysWhichInputAndWhatCame) {
  const Judged judged = JudgeHalfOf(&thirds::Half);
  EXPECT_EQ(judged.verdict, ExerciseVerdict::kWrong);
  EXPECT_EQ(judged.text,
            "WRONG\n"
            "  input     3.5\n"
            "  got       1.16667\n"
            "  expected  1.75\n"
            "\n"
            "  Half is a factor.\n");
}

TEST(JudgeAnswer, SaysWhatTheAnswerThrew) {
  const Judged judged = JudgeHalfOf(&Throws);
  EXPECT_EQ(judged.verdict, ExerciseVerdict::kWrong);
  EXPECT_THAT(judged.text, HasSubstr("index 7 of 3"));
}

TEST(JudgeAnswer, LeavesTheAnswersWordsAsTheyAre) {
  AddTranslations({{"index 7 of 3", "下标"}, {"got", "得到"}});
  ASSERT_TRUE(SetLanguage("zh").ok());
  EXPECT_THAT(JudgeHalfOf(&Throws).text, HasSubstr("index 7 of 3"));
  EXPECT_THAT(JudgeHalfOf(&thirds::Half).text,
              HasSubstr("  得到      1.16667"));
  ASSERT_TRUE(SetLanguage("en").ok());
}

TEST(JudgeAnswer, SaysThatTheJudgeCouldNotRead) {
  const Judged judged = JudgeHalfOf(&MakesWhatCannotBeRead);
  EXPECT_THAT(judged.text, HasSubstr("made cannot be read:"));
  EXPECT_THAT(JudgeHalfOf(&Throws).text, HasSubstr("threw an exception:"));
}

TEST(JudgeAnswer, SaysThatTheTypesWereChanged) {
  const Judged judged = JudgeHalfOf(&OfAnotherType);
  EXPECT_EQ(judged.verdict, ExerciseVerdict::kWrong);
  EXPECT_THAT(judged.text, HasSubstr("have other types"));
  EXPECT_THAT(judged.text, Not(HasSubstr("exception")));
}

TEST(JudgeAnswer, NeedsAJudge) {
  EXPECT_THROW(JudgeAnswer({"quarter", "", "", "", std::any(&Right)}, false),
               std::invalid_argument);
}

TEST(JudgeAnswer, RacesOnlyIfItIsTimed) {
  const Judged untimed = JudgeHalfOf(&Right);
  EXPECT_EQ(untimed.verdict, ExerciseVerdict::kRight);
  EXPECT_EQ(untimed.text, "RIGHT\n");
  const Judged timed = JudgeHalfOf(&Right, /*timed=*/true);
  EXPECT_EQ(timed.verdict, ExerciseVerdict::kSlow);
  EXPECT_THAT(timed.text, StartsWith("RIGHT BUT SLOW\n  ten sleeps "));
  EXPECT_THAT(timed.text, HasSubstr("\n  one sleep "));
  EXPECT_THAT(timed.text, HasSubstr("as long (median of "));
  EXPECT_THAT(timed.text, HasSubstr("\n  bound "));
  EXPECT_THAT(timed.text, HasSubstr("\n  Sleep less.\n"));
}

// Races sleeps of `answer` milliseconds against sleeps of `best`.
std::string Race(int answer, int best, double slack, double bound) {
  static int milliseconds[2];
  static RaceAgainst against;
  milliseconds[0] = answer;
  milliseconds[1] = best;
  const auto sleep = [](int which) {
    return [which] {
      std::this_thread::sleep_for(
          std::chrono::milliseconds(milliseconds[which]));
    };
  };
  against = {{"best", {}, sleep(1)}, slack, "Sleep less.", bound, "bound"};
  [[maybe_unused]] static const bool registered = internal::RegisterJudge(
      "race", +[](Judging& judging, void (*run)()) {
        judging.Race({"yours", {}, run}, against);
      });
  return JudgeAnswer({"race", "", "", "", std::any(+[] {
                        std::this_thread::sleep_for(
                            std::chrono::milliseconds(milliseconds[0]));
                      })},
                     true)
      .text;
}

TEST(Race, ExplainsFiguresThatSeemToContradictTheVerdict) {
  const std::string slower = Race(20, 1, 100, 0);
  EXPECT_THAT(slower, StartsWith("RIGHT\n"));
  EXPECT_THAT(slower, HasSubstr("slow is what surely takes more than 100x"));
  EXPECT_THAT(Race(1, 20, 2, 0), HasSubstr("\n  Yours takes less: "));
  EXPECT_THAT(Race(1, 1, 100, 1e-4), HasSubstr("of the bound, too"));
  EXPECT_THAT(Race(20, 1, 2, 1e-4), Not(HasSubstr("of the bound, too")));
}

// The text of the error that ExpectClose throws in an exercise's judge.
std::string Compare(const std::vector<float>& got,
                    const std::vector<float>& expected) {
  static const std::vector<float>*compared, *with;
  compared = &got;
  with = &expected;
  [[maybe_unused]] static const bool registered = internal::RegisterJudge(
      "compare", +[](Judging& judging, void (*)()) {
        judging.ExpectClose("numbers", *compared, *with, 0.01, "Look.");
      });
  return JudgeAnswer({"compare", "", "", "", std::any(+[] {})}, false).text;
}

TEST(ExpectClose, ComparesNumbers) {
  EXPECT_EQ(Compare({}, {}), "RIGHT\n");
  EXPECT_EQ(Compare({0.005f, 100.9f}, {0, 100}), "RIGHT\n");
  EXPECT_EQ(Compare({INFINITY, -INFINITY}, {INFINITY, -INFINITY}), "RIGHT\n");
  EXPECT_EQ(Compare({NAN}, {NAN}), "RIGHT\n");
  EXPECT_THAT(Compare({1}, {NAN}), HasSubstr("1 at index 0"));
  EXPECT_THAT(Compare({5}, {INFINITY}), HasSubstr("5 at index 0"));
  EXPECT_THAT(Compare({INFINITY}, {-INFINITY}), HasSubstr("inf at index 0"));
  EXPECT_THAT(Compare({0, 102}, {0, 100}), HasSubstr("102 at index 1"));
  EXPECT_THAT(Compare({NAN}, {1}), HasSubstr("nan at index 0"));
  EXPECT_THAT(Compare({1, 2}, {1, 2, 3}), HasSubstr("2 numbers: 1, 2\n"));
}

TEST(RandomNumbers, AreOfBothSignsAndManySizes) {
  const std::vector<float> numbers = RandomNumbers(1000, 1);
  int negative = 0, large = 0, small = 0;
  for (const float number : numbers) {
    negative += number < 0;
    large += std::abs(number) > 5;
    small += std::abs(number) < 0.2;
  }
  for (const int count : {negative, large, small}) {
    EXPECT_GT(count, 50);
    EXPECT_LT(count, 500);
  }
  EXPECT_EQ(numbers, RandomNumbers(1000, 1));
  EXPECT_NE(numbers, RandomNumbers(1000, 2));
}

TEST(RandomNumbers, AreOfEveryKind) {
  for (const NumberKind kind : kNumberKinds) {
    for (const std::size_t count : {0, 1, 2, 100}) {
      const std::vector<float> numbers = RandomNumbers(count, 3, kind);
      ASSERT_EQ(numbers.size(), count);
      bool nan = false, infinity = false, huge = false, positive = false;
      for (const float number : numbers) {
        nan = nan || std::isnan(number);
        infinity = infinity || std::isinf(number);
        huge = huge || std::abs(number) > 1e27f;
        positive = positive || number > 0;
      }
      const bool has_place = count > 1;
      if (count == 100) {
        EXPECT_EQ(positive, kind != NumberKind::kNegative);
      }
      EXPECT_EQ(nan, kind == NumberKind::kWithNan && has_place);
      EXPECT_EQ(infinity, count > 0 && (kind == NumberKind::kWithNan ||
                                        kind == NumberKind::kWithInfinity));
      if (kind == NumberKind::kHuge) {
        EXPECT_EQ(huge, count > 0);
      }
      if (kind == NumberKind::kFirstFarBelow && count > 0) {
        EXPECT_EQ(numbers[0], -1000);
      }
    }
  }
}

TEST(DrawnNumbers, AreOthersEachTime) {
  const std::vector<float> numbers = DrawnNumbers();
  ASSERT_EQ(numbers.size(), 4u);
  EXPECT_LT(numbers[0], 0);
  EXPECT_EQ(numbers[2], 0);
  EXPECT_GT(numbers[3], 999);
  EXPECT_NE(numbers, DrawnNumbers());
  for (int i = 0; i < 100; ++i) {
    const double drawn = Drawn(2, 3);
    EXPECT_GE(drawn, 2);
    EXPECT_LE(drawn, 3);
  }
}

// Keeps the compiler from leaving the allocation out.
char* volatile sink;

TEST(Allocations, CountsWhatIsAllocated) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer has its own malloc";
#endif
  const Allocations none;
  EXPECT_EQ(none.count(), 0);
  {
    std::vector<char> vector(1 << 20);
    sink = vector.data();
    EXPECT_EQ(none.count(), 1);
  }
  sink = static_cast<char*>(std::malloc(1 << 20));
  std::free(sink);
  sink = static_cast<char*>(std::calloc(1, 4));
  std::free(sink);
  EXPECT_EQ(none.count(), 3);
}

TEST(LateTensors, HaveTheirNumbersWhenTheyArrive) {
  const Device device = Devices()[0].device;
  LateTensors late({{1, 2}, {3, 4}}, {2}, device);
  const Tensor sum = late[0] + late[1];
  EXPECT_EQ(static_cast<const float*>(late[0].data())[0], 0);
  EXPECT_FALSE(late.Arrive());
  EXPECT_EQ(ToVector<float>(sum), (std::vector<float>{4, 6}));
}

TEST(LateTensors, SayThatSomebodyHasWaited) {
  LateTensors late({{1}}, {1}, Devices()[0].device);
  EXPECT_EQ(Item(late[0]), 1);
  EXPECT_TRUE(late.Arrive());
}

TEST(Requests, CountNumbersOfTheHost) {
  const Device device = Devices()[0].device;
  const Tensor x = Ones({2}, device);
  const Requests asked;
  const Tensor y = x + FromVector<float>({1, 2}, {2}, device);
  EXPECT_EQ(asked.operations, 2);
  EXPECT_EQ(asked.of_the_host, 1);
}

TEST(AllClose, RoundingOfHugeNumbersMayLeaveMore) {
  EXPECT_TRUE(AllClose({1e32f, 2e25f}, {1e32f, 1e25f}, 1e-6));
  EXPECT_FALSE(AllClose({1.01e32f, 1e25f}, {1e32f, 1e25f}, 1e-6));
}

TEST(AllClose, ZeroIsNotCloseToTinyNumbers) {
  EXPECT_FALSE(AllClose({0, 0}, {1e-30f, 2e-30f}, 1e-3));
  EXPECT_TRUE(AllClose({1e-30f, 2.0001e-30f}, {1e-30f, 2e-30f}, 1e-3));
  EXPECT_TRUE(AllClose({0, 1}, {1e-30f, 1}, 1e-3));
  EXPECT_TRUE(AllClose({0}, {0}, 1e-3));
}

TEST(Requests, CountsOperationsReadsWaitsAndCopies) {
  const Device device = Devices()[0].device;
  const Tensor x = Ones({4}, device);
  const StorageRef host = PinnedMemory(device).AllocatePinned(16);
  Requests asked;
  Item(Sum(x + 1));
  EXPECT_EQ(asked.operations, 2);
  EXPECT_EQ(asked.on_stream[&CurrentStream(device)], 2);
  EXPECT_EQ(asked.on_stream[&NewStream(device)], 0);
  EXPECT_EQ(asked.reads, 1);
  EXPECT_EQ(asked.before_record, -1);
  CurrentStream(device).Record();
  EXPECT_EQ(asked.before_record, 2);
  EXPECT_EQ(asked.before_wait, -1);
  NewStream(device).Wait(CurrentStream(device).Record());
  EXPECT_EQ(asked.before_wait, 2);
  const Requests of_another(&NewStream(device));
  CurrentStream(device).Record();
  EXPECT_EQ(of_another.before_record, -1);
  CurrentStream(device).CopyAsync(host->data(), x.data(), 16,
                                  CopyKind::kDeviceToHost);
  EXPECT_EQ(asked.copies, 1);
  EXPECT_EQ(asked.copied_bytes, 16u);
  const int waits = asked.waits;
  Synchronize(device);
  EXPECT_EQ(asked.waits, waits + 1);
}

TEST(Fenced, SeesWritesBesideIt) {
  for (const int index : {-1, 3, 100}) {
    Fenced fenced(3, 7);
    for (int i = 0; i < 3; ++i) fenced.data()[i] = 1;
    EXPECT_TRUE(fenced.Whole());
    fenced.data()[index] = 1;
    EXPECT_FALSE(fenced.Whole()) << index;
  }
}

TEST(Gate, HoldsAStreamUntilItOpens) {
  Stream& stream = DefaultStream(Devices()[0].device);
  Gate gate(stream);
  EXPECT_FALSE(stream.Query());
  gate.Open();
  stream.Synchronize();
  EXPECT_FALSE(gate.TimedOut());
}

TEST(Gate, OpensByItselfForWhoWaits) {
  Stream& stream = DefaultStream(Devices()[0].device);
  Gate gate(stream);
  stream.Synchronize();
  EXPECT_TRUE(gate.TimedOut());
}

}  // namespace
}  // namespace d2l
