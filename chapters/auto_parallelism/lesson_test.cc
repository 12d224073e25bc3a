// Tests what is special to this lesson. Those of every chapter are in
// common/lesson/testing/chapter_tests.cc.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "common/lesson/testing/lesson_testing.h"

namespace d2l {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Neither launch blocking nor a queue of one may change a result.
const LessonRun& OneDevice() {
  return RunLesson(Tested(), {"--devices=cpu:0", "--launch_blocking"});
}
const LessonRun& TwoDevices() {
  return RunLesson(Tested(), {"--devices=cpu:0,cpu:1"});
}
const LessonRun& ThreeDevices() {
  return RunLesson(
      Tested(), {"--devices=cpu:0,cpu:1,cpu:2", "--max_queued_operations=1"});
}

std::string Reason(const LessonRun& run, const std::string& id, int claim) {
  for (const auto& cell : run.json["cells"]) {
    if (cell["id"] != id) continue;
    const auto& claimed = cell["claims"][claim];
    return claimed["evidence"].get<std::string>() + " " +
           claimed["reason"].get<std::string>();
  }
  return "";
}

// Every claim about two devices gives this reason, unless it is other programs.
TEST(Lesson, SaysWhenThereIsOnlyOneDevice) {
  for (const auto& [id, claim] : {std::pair{"000/In2", 0},
                                  {"000/In6", 0},
                                  {"000/In7", 0},
                                  {"000/In7", 1},
                                  {"d2l/mm-4000", 0},
                                  {"002/two-device-graph", 1},
                                  {"d2l/size-sweep", 0}}) {
    EXPECT_THAT(Reason(OneDevice(), id, claim),
                AnyOf(HasSubstr("There is only one device, cpu:0"),
                      HasSubstr("Other programs disturbed")))
        << id;
    EXPECT_THAT(Reason(TwoDevices(), id, claim),
                Not(HasSubstr("There is only one device")))
        << id;
  }
}

TEST(Lesson, RandomProgramsReachEveryStreamAndDevice) {
  EXPECT_THAT(Reason(OneDevice(), "d2l/random-dag", 0),
              HasSubstr(" 0 of these from another device"));
  for (const LessonRun* run : {&OneDevice(), &TwoDevices(), &ThreeDevices()}) {
    EXPECT_THAT(Reason(*run, "d2l/random-dag", 0), Not(StartsWith("0 of ")));
  }
  for (const LessonRun* run : {&TwoDevices(), &ThreeDevices()}) {
    EXPECT_THAT(Reason(*run, "d2l/random-dag", 0),
                Not(HasSubstr(" 0 of these from another device")));
  }
}

TEST(Lesson, ShowsGraphTimelineAndCurve) {
  for (const LessonRun* run : {&OneDevice(), &TwoDevices(), &ThreeDevices()}) {
    std::vector<std::string> names;
    for (const auto& cell : run->json["cells"]) {
      for (const auto& drawing : cell["drawings"]) {
        names.push_back(drawing["name"]);
      }
    }
    EXPECT_THAT(names, testing::IsSupersetOf({"both orders", "two-layer MLP",
                                              "timeline", "factor by n",
                                              "one more, of 8 operations"}));
  }
}

TEST(Benchmarks, AnAbsentDeviceIsSkippedWithItsName) {
  ExpectBenchmarkSkipped(Tested(), "In6.*device:cuda", "cuda:0");
  ExpectBenchmarkSkipped(Tested(), "In7.*devices:cpu", "cpu:1");
  ExpectBenchmarkSkipped(Tested(), "In7.*devices:cuda", "cuda:0");
}

}  // namespace
}  // namespace d2l
