// Tests what is special to this lesson. Those of every chapter are in
// common/lesson/testing/chapter_tests.cc.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/lesson/testing/lesson_testing.h"

namespace d2l {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

const LessonRun& OnTwoDevices() {
  return RunLesson(Tested(), {"--devices=cpu:0,cpu:1"});
}

TEST(Lesson, ShowsWhichDeviceIsBusy) {
  const std::string& output = OnTwoDevices().output;
  EXPECT_THAT(output, ContainsRegex("\n\\| cpu:0 .* [1-9][0-9]* % \\|\n"));
  EXPECT_THAT(output, ContainsRegex("\n\\| cpu:1 .*   0 % \\|\n"));
  EXPECT_THAT(output, HasSubstr(" lesson "));
}

TEST(Lesson, PrintsALayerAsPyTorchDoes) {
  EXPECT_THAT(OnTwoDevices().output,
              HasSubstr("\nLinear(in_features=10, out_features=1, bias=True)"));
}

TEST(Lesson, RebindsAHandleAndSumsEverywhere) {
  const std::string& output = OnTwoDevices().output;
  EXPECT_THAT(output,
              HasSubstr("first:         tensor([[3., 3.]], device='cpu:0')\n"
                        "                          tensor([[2., 2.]], "
                        "device='cpu:1')\n"));
  const std::string claims = Claims(OnTwoDevices());
  EXPECT_THAT(claims, HasSubstr("HOLDS  The book's first allreduce leaves the "
                                "sum on one device only: 1 of 2 devices."));
  EXPECT_THAT(claims, HasSubstr("all devices the sum: 2 of 2 devices."));
  EXPECT_THAT(output, HasSubstr("\ntensor([[10, 11, 12, 13, 14],\n        [15, "
                                "16, 17, 18, 19]], device='cpu:1')\n"));
}

TEST(Lesson, WrapsLoadsAndRefuses) {
  const std::string& output = OnTwoDevices().output;
  EXPECT_THAT(output,
              HasSubstr("\nDataParallel(\n  (module): Linear(in_features="
                        "10, out_features=1, bias=True)\n)\n"));
  EXPECT_THAT(output, HasSubstr("there is no device 3"));
  EXPECT_THAT(output, HasSubstr("Error(s) in loading state_dict for Linear:"));
  EXPECT_THAT(output, HasSubstr("Missing key(s) in state_dict: \"weight\", "
                                "\"bias\"."));
  const std::string claims = Claims(OnTwoDevices());
  EXPECT_THAT(claims, HasSubstr("HOLDS  The file is loaded, and the parameters "
                                "equal those"));
  EXPECT_THAT(claims, HasSubstr("HOLDS  The file is loaded, and the parameters "
                                "on all devices"));
}

TEST(Lesson, OneDeviceAndTwoLearnTheSame) {
  EXPECT_THAT(
      OnTwoDevices().output,
      HasSubstr("HOLDS  One device and two end with the same accuracy"));
}

TEST(Lesson, EndsAsTheCourseDoes) {
  const std::string& output = OnTwoDevices().output;
  EXPECT_THAT(output,
              ContainsRegex("batch normalization: test acc: 0\\.[0-9]"));
  // The notebook's weights are not to blame: the network decides.
  const std::string claims = Claims(OnTwoDevices());
  EXPECT_THAT(claims,
              HasSubstr("HOLDS  With batch normalization, LeNet learns"));
  EXPECT_THAT(
      claims,
      HasSubstr("HOLDS  Without batch normalization, LeNet stays at chance"));
}

TEST(Lesson, SimulatesTheBooksFigures) {
  const std::string& output = OnTwoDevices().output;
  for (const char* row :
       {"one adds +60.00 ms .* 60.00 ms", "the CPU adds +80.00 ms .* 80.00 ms",
        "each a quarter +15.00 ms .* 15.00 ms", "ring +5.93 ms .* 5.19 ms"}) {
    EXPECT_THAT(output, ContainsRegex(row));
  }
  EXPECT_THAT(output,
              HasSubstr("HOLDS  After 20 steps all workers have the same"));
}

TEST(Lesson, SimulatesNetworks) {
  const std::string& output = OnTwoDevices().output;
  for (const char* row : {"a ring +7\\.78 ms +20\\.6 +36\\.0 GB/s",
                          "two rings +5\\.19 ms +30\\.9 +54\\.0 GB/s",
                          "64 workers, servers: 64 +25\\.6 ms"}) {
    EXPECT_THAT(output, ContainsRegex(row));
  }
  EXPECT_THAT(Claims(OnTwoDevices()), HasSubstr("bit for bit: 10 of 10."));
}

TEST(Lesson, ReplicasStayEqualOnlyWithTheAllReduce) {
  const std::string& output = OnTwoDevices().output;
  EXPECT_THAT(output, HasSubstr("HOLDS  With the allreduce the replicas are "
                                "equal; they differ by: 0."));
  EXPECT_THAT(output, HasSubstr("HOLDS  Without the allreduce the replicas "
                                "drift apart"));
}

TEST(Benchmarks, AnAbsentDeviceIsSkippedWithItsName) {
  ExpectBenchmarkSkipped(Tested(), "straggler_Even.*devices:cpu", "cpu:1");
}

}  // namespace
}  // namespace d2l
