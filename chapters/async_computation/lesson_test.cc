// Tests what is special to this lesson. Those of every chapter are in
// common/lesson/testing/chapter_tests.cc.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "common/base/child_process.h"
#include "common/base/files/atomic_file.h"
#include "common/lesson/testing/lesson_testing.h"
#include "nlohmann/json.hpp"

namespace d2l {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

constexpr char kLesson[] = "chapters/async_computation/lesson";
constexpr char kSource[] = "chapters/async_computation/lesson.cc";
constexpr char kBenchmarks[] = "chapters/async_computation/benchmarks";

const LessonRun& OnOneDevice() {
  return RunLesson(Tested(), {"--devices=cpu:0"});
}

// A cell's part of the output.
std::string PartOf(const std::string& output, const std::string& id) {
  const std::size_t begin = output.find("[" + id + "]\n");
  if (begin == std::string::npos) return "";
  return output.substr(begin, output.find("\n====", begin + 2) - begin);
}

Json JsonOf(const LessonRun& run, const std::string& id) {
  for (const Json& cell : run.json["cells"]) {
    if (cell["id"] == id) return cell;
  }
  return {};
}

// The line of the file on which the text stands.
int LineOf(const std::string& text) {
  const std::string file = ReadFile(kSource);
  const std::size_t at = file.find(text);
  if (at == std::string::npos) return 0;
  return 1 +
         static_cast<int>(std::count(file.begin(), file.begin() + at, '\n'));
}

// The flags of a run. Neither flag may change a result.
const std::vector<std::string> kBlocking = {"--devices=cpu:0,cpu:1",
                                            "--launch_blocking"};
const std::vector<std::string> kQueueOfOne = {"--devices=cpu:0,cpu:1,cpu:2",
                                              "--max_queued_operations=1"};

class LessonTest : public ::testing::TestWithParam<std::vector<std::string>> {};

TEST_P(LessonTest, AddsAndMultiplies) {
  const LessonRun& r = RunLesson(Tested(), GetParam());
  EXPECT_THAT(r.output, HasSubstr("tensor([[3., 3.]], device='cpu:0')\n"));
}

// Peaks of memory are counted, not timed: so the test knows their bounds.
TEST_P(LessonTest, MemoryIsCounted) {
  const LessonRun& r = RunLesson(Tested(), GetParam());
  const Json cell = JsonOf(r, "004/queue-memory");
  const auto peak = [&](const std::string& name) -> double {
    for (const Json& figure : cell["figures"]) {
      if (figure["name"].get<std::string>().rfind(name + " (", 0) != 0)
        continue;
      EXPECT_EQ(figure["unit"], "B");
      return figure["median"];
    }
    ADD_FAILURE() << "no figure " << name;
    return 0;
  };
  const double one = 256 * 256 * sizeof(float);
  const int batches = 24;
  for (const std::string way :
       {"enqueueing", "synchronizing", "bounds", "reading"}) {
    EXPECT_LT(peak("temporaries, " + way), 6 * one) << way;
  }
  for (const std::string way : {"enqueueing", "synchronizing", "bounds"}) {
    EXPECT_GE(peak("kept outputs, " + way), batches * one) << way;
  }
  EXPECT_LT(peak("kept outputs, reading"), 6 * one);
  EXPECT_EQ(peak("staging buffers, synchronizing"), one);
  EXPECT_EQ(peak("staging buffers, reading"), one);
  // Four in flight, and the one that is handed out next.
  EXPECT_LE(peak("staging buffers, bounds"), 6 * one);
  EXPECT_LE(peak("staging buffers, enqueueing"), batches * one);
}

INSTANTIATE_TEST_SUITE_P(
    Devices, LessonTest,
    ::testing::Values(std::vector<std::string>{"--devices=cpu:0"}, kBlocking,
                      kQueueOfOne),
    [](const auto& info) { return std::to_string(info.index + 1); });

TEST(Lesson, DrawsEachProgramAsItIs) {
  const std::string part = PartOf(
      RunLesson(Tested(), {"--devices=cpu:0", "--cell=004/In5", "--verbose"})
          .output,
      "004/In5");
  const std::size_t small = part.find("\nz = x * y + 2\n\nlevel ");
  const std::size_t large = part.find("\ntwo branches\n\n");
  const std::size_t timeline = part.find("\ntimeline of two branches\n\n");
  ASSERT_LT(small, large) << part;
  ASSERT_LT(large, timeline) << part;
  ASSERT_NE(timeline, std::string::npos);
  const std::string of_z = part.substr(small, large - small);
  EXPECT_THAT(of_z,
              HasSubstr("4 operations on 3 levels, at most 2 on a level"));
  EXPECT_THAT(of_z, Not(HasSubstr("matmul")));
  const std::string of_branches = part.substr(large, timeline - large);
  EXPECT_THAT(of_branches,
              HasSubstr("9 operations on 7 levels, at most 2 on a level"));
  for (const char* name : {"matmul", "relu", "tanh", "mean"}) {
    EXPECT_THAT(of_branches, HasSubstr(name));
  }
  EXPECT_THAT(part.substr(timeline), HasSubstr("front end |"));
  EXPECT_THAT(part.substr(timeline), HasSubstr("cpu:0     |"));
  EXPECT_EQ(JsonOf(OnOneDevice(), "004/In5")["drawings"].size(), 4u);
  EXPECT_EQ(JsonOf(OnOneDevice(), "004/queue-memory")["drawings"].size(), 4u);
}

// Each run shows both errors, with and without launch blocking.
void ExpectBothErrors(const LessonRun& run) {
  const std::string file = std::string(kSource) + ":";
  const std::string request =
      file + std::to_string(LineOf("const Tensor rows = IndexSelect("));
  const int lines_to_wait = 2;
  const std::string wait =
      file + std::to_string(LineOf("const Tensor rows = IndexSelect(") +
                            lines_to_wait);
  std::string part = PartOf(run.output, "000/launch-blocking");
  absl::RemoveExtraAsciiWhitespace(&part);
  const std::size_t without = part.find("Without launch blocking: ");
  const std::size_t with = part.find("With launch blocking: ");
  ASSERT_LT(without, with) << part;
  ASSERT_NE(with, std::string::npos);
  const std::string late = part.substr(without, with - without);
  EXPECT_THAT(late, HasSubstr("index_select"));
  EXPECT_THAT(late, HasSubstr("requested at " + request));
  EXPECT_THAT(late, HasSubstr("Noticed at Synchronize, " + wait));
  const std::string at_once = part.substr(with);
  EXPECT_THAT(at_once, HasSubstr("requested at " + request));
  EXPECT_THAT(at_once, HasSubstr("Noticed at index_select, " + request));
}

TEST(Lesson, ErrorsNameTheLineThatEnqueued) {
  ExpectBothErrors(OnOneDevice());
  ExpectBothErrors(RunLesson(Tested(), kBlocking));
  ExpectBothErrors(RunLesson(Tested(), kQueueOfOne));
}

TEST(Lesson, LaunchBlockingDecidesNothing) {
  const LessonRun& r = RunLesson(Tested(), kBlocking);
  const Json cell = JsonOf(r, "d2l/t1-t2-t3");
  // Nothing is held up, so nothing is fitted, and nothing decided.
  for (const Json& claim : cell["claims"]) {
    EXPECT_EQ(claim["verdict"], "INCONCLUSIVE") << claim;
  }
}

// Runs those that stall a device, turn launch blocking on, or count memory.
TEST(Benchmarks, Run) {
  const ProgramResult r = RunProgram(
      kBenchmarks,
      {"--devices=cpu:0", "--benchmark_min_time=0.001",
       "--benchmark_filter=(launch_blocking|queue_memory|t1_t2_t3).*cpu:0"});
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_THAT(r.output, HasSubstr("BM_000_launch_blocking_Add_With/"));
  EXPECT_THAT(r.output, HasSubstr("BM_d2l_t1_t2_t3_AddOne_Compute/"));
  EXPECT_THAT(r.output, ContainsRegex("staging_bytes=[1-9]"));
  EXPECT_THAT(r.output, Not(HasSubstr("ERROR OCCURRED")));
}

TEST(Benchmarks, AreFoundByTheCellsId) {
  const ProgramResult r =
      RunProgram(kBenchmarks, {"--devices=cpu:0", "--benchmark_list_tests",
                               "--benchmark_filter=d2l/t1-t2-t3.*cpu"});
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_THAT(r.output, HasSubstr("BM_d2l_t1_t2_t3_AddOne_Each/device:cpu:0"));
  EXPECT_THAT(r.output, Not(HasSubstr("blockers")));
  EXPECT_THAT(r.output, Not(HasSubstr("cuda")));
}

TEST(Benchmarks, AnAbsentDeviceIsSkippedWithItsName) {
  ExpectBenchmarkSkipped(Tested(), "In5.*cuda", "cuda:0");
}

}  // namespace
}  // namespace d2l
