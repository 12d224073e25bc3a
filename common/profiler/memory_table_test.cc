#include "common/profiler/memory_table.h"

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "common/base/source_location.h"
#include "common/device/device.h"
#include "common/profiler/profile.h"
#include "common/profiler/profile_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr Device kCpu0(DeviceType::kCpu, 0);
constexpr Device kCpu1(DeviceType::kCpu, 1);
constexpr std::int64_t kKiB = 1024;

MemoryPoint Point(std::int64_t time, int device, std::int64_t change,
                  std::int64_t allocated, std::int64_t pending,
                  std::int64_t reserved, int span) {
  return {time,      device,  /*pinned=*/false, change,
          allocated, pending, reserved,         span};
}

// 100 KiB in use on cpu:0 at the start; two products; a copy's pinned memory.
Profile Small() {
  ProfileBuilder builder({kCpu0, kCpu1});
  for (int i = 0; i < 2; ++i) {
    ProfiledSpan& span =
        builder.Operation("matmul", 1'000'000 + 100'000 * i,
                          1'050'000 + 100'000 * i, 0, 2'000'000, 3'000'000);
    span.allocated_bytes = (i + 1) * 64 * kKiB;
    span.requested_at = SourceLocation("common/ops/matmul.cc", 7);
    span.requested_by = SourceLocation("lesson.cc", 40 + i);
  }
  builder.Operation("add", 1'200'000, 1'210'000, 0, 3'000'000, 3'100'000)
      .allocated_bytes = 512;
  builder.Add(ProfiledKind::kView, "reshape", 1'300'000, 1'310'000);
  Profile& profile = builder.profile();
  profile.devices[0].description = "cpu:0 (virtual, 1 core)";
  profile.memory = {
      Point(1'001'000, 0, 64 * kKiB, 164 * kKiB, 0, 2048 * kKiB, 0),
      Point(1'090'000, 0, -100 * kKiB, 64 * kKiB, 100 * kKiB, 2048 * kKiB, -1),
      Point(1'101'000, 0, 128 * kKiB, 192 * kKiB, 100 * kKiB, 3072 * kKiB, 1),
      Point(1'201'000, 0, 512, 192 * kKiB + 512, 0, 3072 * kKiB, 2),
      Point(1'250'000, 0, 2 * kKiB, 194 * kKiB + 512, 0, 3072 * kKiB, -1)};
  MemoryPoint pinned =
      Point(1'400'000, 1, 16 * kKiB, 16 * kKiB, 0, 32 * kKiB, -1);
  pinned.pinned = true;
  profile.memory.push_back(pinned);
  profile.notes = {"A note."};
  return builder.Build();
}

TEST(MemoryTableTest, Golden) {
  EXPECT_EQ(
      MemoryTable(Small()),
      R"(--------------------------------------  ------------  ------------  ------------
                                  Name    # of Calls   Bytes taken       Largest
--------------------------------------  ------------  ------------  ------------
                                matmul             2     192.0 KiB     128.0 KiB
               (no recorded operation)             1       2.0 KiB       2.0 KiB
                                   add             1         512 B         512 B
--------------------------------------  ------------  ------------  ------------
cpu:0 (virtual, 1 core)
  in use at the start  100.0 KiB
  peak                 292.0 KiB, 101 us after the start
                       matmul (lesson.cc:41)
  reserved at most     3.0 MiB
cpu:1
  nothing was taken or returned
pinned host memory of cpu:1
  in use at the start  0 B
  peak                 16.0 KiB, 400 us after the start
                       no recorded operation
  reserved at most     32.0 KiB
A note.
)");
}

TEST(MemoryTableTest, FitsIn80Columns) {
  Profile profile = Small();
  profile.spans[0].name = std::string(200, 'n');
  for (const std::string& line :
       std::vector<std::string>(absl::StrSplit(MemoryTable(profile), '\n'))) {
    EXPECT_LE(line.size(), 80u) << line;
  }
}

TEST(MemoryTableTest, TheRowLimitSaysWhatItLeavesOut) {
  EXPECT_THAT(MemoryTable(Small(), 1),
              HasSubstr("\n(2 rows more; row_limit is 1)\n"));
  EXPECT_THAT(MemoryTable(Small(), 1), Not(HasSubstr("add")));
  EXPECT_EQ(MemoryTable(Small(), 3), MemoryTable(Small(), -1));
}

TEST(MemoryTableTest, NothingTaken) {
  EXPECT_EQ(MemoryTable(Profile()), "No operation took memory.\n");
  EXPECT_EQ(MemoryTable(ProfileBuilder({kCpu0}).Build()),
            "No operation took memory.\ncpu:0\n  nothing was taken or "
            "returned\n");
}

TEST(MemoryByDeviceTest, APeakAtTheStart) {
  ProfileBuilder builder({kCpu0});
  builder.Add(ProfiledKind::kView, "reshape", 1000, 2000);
  // 300 bytes in use and 50 in flight; 200 of them go to queued work.
  builder.profile().memory = {Point(1500, 0, -200, 100, 250, 500, 0),
                              Point(1600, 0, 10, 110, 0, 500, 0)};
  const MemoryOfDevice memory = MemoryByDevice(builder.Build())[0];
  EXPECT_EQ(memory.in_use_at_start, 300);
  EXPECT_EQ(memory.peak, 350);
  EXPECT_EQ(memory.peak_time, 1000);
  EXPECT_EQ(memory.peak_span, -1);
  EXPECT_THAT(MemoryTable(builder.Build()),
              HasSubstr("peak                 350 B, at the start\n"));
}

TEST(MemoryByDeviceTest, AgreesWithALookAtEachDevice) {
  std::mt19937 random(5);
  for (int devices = 1; devices <= 3; ++devices) {
    ProfileBuilder builder({});
    Profile& profile = builder.profile();
    std::vector<std::int64_t> allocated(devices, 1000);
    std::vector<std::int64_t> peak(devices, 1000);
    std::vector<std::int64_t> peak_time(devices, 0);
    for (int i = 0; i < devices; ++i) {
      const Device device(DeviceType::kCpu, i);
      profile.devices.push_back({device, device.ToString()});
    }
    for (std::int64_t time = 1; time <= 500; ++time) {
      const int device = static_cast<int>(random() % devices);
      const std::int64_t change =
          static_cast<std::int64_t>(random() % 200) - allocated[device] / 10;
      allocated[device] += change;
      if (allocated[device] > peak[device]) {
        peak[device] = allocated[device];
        peak_time[device] = time;
      }
      profile.memory.push_back(Point(time, device, change, allocated[device], 0,
                                     allocated[device], -1));
    }
    const std::vector<MemoryOfDevice> memory = MemoryByDevice(profile);
    ASSERT_EQ(memory.size(), static_cast<std::size_t>(devices));
    for (int i = 0; i < devices; ++i) {
      EXPECT_EQ(memory[i].device, i);
      EXPECT_EQ(memory[i].in_use_at_start, 1000);
      EXPECT_EQ(memory[i].peak, peak[i]);
      EXPECT_EQ(memory[i].peak_time, peak_time[i]);
    }
  }
}

TEST(MemoryByOperationTest, TakesEveryByteOnce) {
  const Profile profile = RandomProfile(/*seed=*/9, /*spans=*/300);
  std::int64_t bytes = 0;
  std::int64_t calls = 0;
  for (const ProfiledSpan& span : profile.spans) {
    bytes += span.allocated_bytes;
    calls += span.allocated_bytes > 0 ? 1 : 0;
  }
  std::int64_t largest = -1;
  for (const OperationMemory& operation : MemoryByOperation(profile)) {
    if (largest >= 0) {
      EXPECT_LE(operation.bytes, largest);
    }
    largest = operation.bytes;
    bytes -= operation.bytes;
    calls -= operation.calls;
    EXPECT_GE(operation.largest * operation.calls, operation.bytes);
    EXPECT_LE(operation.largest, operation.bytes);
  }
  EXPECT_EQ(bytes, 0);
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace d2l
