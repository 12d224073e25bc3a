#include "common/drawing/roofline.h"

#include <string>

#include "common/device/device.h"
#include "common/profiler/profile.h"
#include "common/profiler/profile_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ProfileBuilder OneDevice() {
  ProfileBuilder builder({Device(DeviceType::kCpu, 0)});
  // 100 operations a byte at 50 GFLOP/s, in two calls; 0.1 at 1 GFLOP/s.
  for (int i = 0; i < 2; ++i) {
    builder.Operation("matmul", 0, 1, 0, 0, 20'000'000).cost = {1'000'000'000,
                                                                10'000'000};
  }
  builder.Operation("add", 2, 3, 0, 0, 1'000'000).cost = {1'000'000,
                                                          10'000'000};
  builder.Operation("clone", 4, 5, 0, 0, 1'000'000).cost = {0, 10'000'000};
  builder.Operation("failed", 8, 9, 0, DeviceTime::kNotRun).cost = {10, 10};
  return builder;
}

TEST(Roofline, DrawsOperationsBelowTheRoofs) {
  ProfileBuilder builder = OneDevice();
  builder.profile().devices[0].peaks = RoundPeaks();
  const Drawing drawing = DrawRoofline(builder.Build(), "roofline");
  // The memory's roof rises from 1 GFLOP/s at 0.1 to 100 at 10, and the
  // addition lies on it; the cache's roof reaches the top at 0.5.
  EXPECT_EQ("\n" + drawing.text, R"(
GFLOP/s
100 +                .#                              .+.......................+
    |            ....                            ....
    |        ....                            ....                             *
    |    ....                            ....
    | ...                             ...
    |#                            ....
    |                         ....
 10 +                     ....
    |                 ....
    |              ...
    |          ....
    |      ....
    |  ....
  1 +2.
     +-----------------------+------------------------+-----------------------+
    0.1                      1                       10                      100
                                                        operations for each byte
* matmul, o add, + memory, 10.0 GB/s, # L2, 200 GB/s; 2, 3, ...: number of lines
at one place
)");
  EXPECT_THAT(drawing.svg, HasSubstr("matmul: 100, 50"));
  EXPECT_THAT(drawing.svg, HasSubstr("add: 0.1, 1"));
  for (const char* other : {"clone", "failed"}) {
    EXPECT_THAT(drawing.svg, Not(HasSubstr(other)));
  }
}

TEST(Roofline, WithoutPeaksSaysSo) {
  for (const Profile& profile : {OneDevice().Build(), Profile()}) {
    const Drawing drawing = DrawRoofline(profile, "roofline");
    EXPECT_THAT(drawing.text, HasSubstr("peaks of the device were not"));
    EXPECT_THAT(drawing.svg, HasSubstr("peaks of the device were not"));
  }
}

}  // namespace
}  // namespace d2l
