// Profiles made by hand, for tests of tables and exports.
//
//   ProfileBuilder builder({Device(DeviceType::kCpu, 0)});
//   builder.Begin(ProfiledKind::kRange, "forward", 1000);
//   builder.Operation("matmul", 1100, 1300, /*stream=*/0, 2000, 5000);
//   builder.Add(ProfiledKind::kView, "reshape", 1400, 1450);
//   builder.End(1500);
//   const Profile profile = builder.Build();
//
// Times are nanoseconds, of any clock. Nothing is checked: a test may make a
// Profile that no Profiler would.

#ifndef D2L_COMMON_PROFILER_PROFILE_TESTING_H_
#define D2L_COMMON_PROFILER_PROFILE_TESTING_H_

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/device/device.h"
#include "common/profiler/peaks.h"
#include "common/profiler/profile.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"

namespace d2l {

// A device of 100 GFLOP/s, with 200 GB/s for at most 1 MB, else 10 GB/s, and
// half of these for copies. Enqueueing takes at least 100 ns.
inline Peaks RoundPeaks() {
  return {1e11,
          {{"L2", 1'000'000, 2e11, 1e11}, {"memory", 1'000'000'000, 1e10, 5e9}},
          1e-7};
}

class ProfileBuilder {
 public:
  // Stream i, such as "cpu:0/1", belongs to devices[i].
  explicit ProfileBuilder(const std::vector<Device>& devices) {
    for (const Device device : devices) {
      const int index = static_cast<int>(profile_.devices.size());
      profile_.devices.push_back({device, device.ToString(), {}});
      profile_.streams.push_back({device.ToString() + "/1", index});
    }
    profile_.threads.push_back({"front end"});
  }

  // The spans that follow belong to another thread.
  void Thread(std::string name) {
    open_.clear();
    profile_.threads.push_back({std::move(name)});
  }

  // Spans that are added until End are within this span.
  void Begin(ProfiledKind kind, std::string name, std::int64_t host_begin) {
    Add(kind, std::move(name), host_begin, host_begin);
    open_.push_back(static_cast<int>(profile_.spans.size()) - 1);
  }
  void End(std::int64_t host_end) {
    profile_.spans[open_.back()].host_end = host_end;
    profile_.end = std::max(profile_.end, host_end);
    open_.pop_back();
  }

  // A span without a device time. The reference is valid until the next call;
  // use it to set the span's other fields.
  ProfiledSpan& Add(ProfiledKind kind, std::string name,
                    std::int64_t host_begin, std::int64_t host_end) {
    if (profile_.spans.empty()) profile_.begin = host_begin;
    profile_.begin = std::min(profile_.begin, host_begin);
    profile_.end = std::max(profile_.end, host_end);
    ProfiledSpan span;
    span.kind = kind;
    span.name = std::move(name);
    span.thread = static_cast<int>(profile_.threads.size()) - 1;
    span.parent = open_.empty() ? -1 : open_.back();
    span.host_begin = host_begin;
    span.host_end = host_end;
    profile_.spans.push_back(std::move(span));
    return profile_.spans.back();
  }

  // An operation whose time on the device was measured.
  ProfiledSpan& Operation(std::string name, std::int64_t host_begin,
                          std::int64_t host_end, int stream,
                          std::int64_t device_begin, std::int64_t device_end) {
    ProfiledSpan& span = Operation(std::move(name), host_begin, host_end,
                                   stream, DeviceTime::kMeasured);
    span.device_begin = device_begin;
    span.device_end = device_end;
    profile_.end = std::max(profile_.end, device_end);
    return span;
  }

  // An operation without a device time, and why.
  ProfiledSpan& Operation(std::string name, std::int64_t host_begin,
                          std::int64_t host_end, int stream,
                          DeviceTime device_time) {
    ProfiledSpan& span =
        Add(ProfiledKind::kOperation, std::move(name), host_begin, host_end);
    span.stream = stream;
    span.number = ++operations_;
    span.device_time = device_time;
    return span;
  }

  // Memory points, notes, cut.
  Profile& profile() { return profile_; }
  Profile Build() const { return profile_; }

 private:
  Profile profile_;
  std::vector<int> open_;  // indices of spans
  std::uint64_t operations_ = 0;
};

// Up to `spans` spans on two threads that request operations of cpu:0, cpu:1
// and cpu:2: nested, recursive, of all kinds, some without a device time, some
// of no duration. The same seed makes the same Profile on every machine.
inline Profile RandomProfile(unsigned seed, int spans) {
  std::mt19937 random(seed);
  const auto below = [&random](unsigned bound) {
    return static_cast<int>(random() % bound);
  };
  ProfileBuilder builder({Device(DeviceType::kCpu, 0),
                          Device(DeviceType::kCpu, 1),
                          Device(DeviceType::kCpu, 2)});
  std::int64_t device_now[3] = {0, 0, 0};
  std::int64_t now = 1000;
  for (int thread = 0; thread < 2; ++thread) {
    if (thread > 0) {
      builder.Thread("front end 2");
      now = 1000 + below(500);
    }
    int depth = 0;
    for (int i = 0; i < spans / 2; ++i) {
      now += below(200);
      const int choice = below(10);
      if (choice < 3 && depth < 6) {
        builder.Begin(ProfiledKind::kRange, absl::StrCat("range ", below(3)),
                      now);
        ++depth;
      } else if (choice < 5 && depth > 0) {
        builder.End(now);
        --depth;
      } else if (choice < 6) {
        const ProfiledKind kinds[] = {ProfiledKind::kView, ProfiledKind::kRead,
                                      ProfiledKind::kWait};
        const int kind = below(3);
        const std::int64_t begin = now;
        now += below(1000);
        builder.Add(kinds[kind], absl::StrCat("host ", kind), begin, now);
      } else {
        const std::int64_t begin = now;
        now += below(1000);
        const int stream = below(3);
        const std::string name = absl::StrCat("operation ", below(5));
        const DeviceTime times[] = {DeviceTime::kMeasured,
                                    DeviceTime::kMeasured, DeviceTime::kNotRun,
                                    DeviceTime::kUnmeasured};
        const DeviceTime time = times[below(4)];
        std::int64_t& device = device_now[stream];
        device = std::max(device, now) + below(300);
        const std::int64_t device_begin = device;
        device += below(5000);
        ProfiledSpan& span =
            time == DeviceTime::kMeasured
                ? builder.Operation(name, begin, now, stream, device_begin,
                                    device)
                : builder.Operation(name, begin, now, stream, time);
        span.inputs = {{Shape{below(2) + 1, 3}, DType::kFloat32}};
        span.allocated_bytes = 4 * below(1000);
      }
    }
    while (depth-- > 0) builder.End(now += below(200));
  }
  return builder.Build();
}

}  // namespace d2l

#endif  // D2L_COMMON_PROFILER_PROFILE_TESTING_H_
