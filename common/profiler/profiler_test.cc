#include "common/profiler/profiler.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/source_location.h"
#include "common/base/timer.h"
#include "common/device/device_table.h"
#include "common/device/failure.h"
#include "common/device/nvtx_range.h"
#include "common/device/stream_stall.h"
#include "common/device/testing/testing.h"
#include "common/ops/ops.h"
#include "common/profiler/key_averages.h"
#include "common/profiler/peaks.h"
#include "common/profiler/profile.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> NamesOf(const Profile& profile) {
  std::vector<std::string> names;
  for (const ProfiledSpan& span : profile.spans) names.push_back(span.name);
  return names;
}

std::int64_t CountOf(const Profile& profile, const std::string& name) {
  return std::count_if(
      profile.spans.begin(), profile.spans.end(),
      [&](const ProfiledSpan& span) { return span.name == name; });
}

// The message of the std::logic_error that f throws, or "nothing thrown".
std::string LogicErrorOf(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "nothing thrown";
}

std::string Here(int line) {
  return absl::StrCat("common/profiler/profiler_test.cc:", line);
}

// What every profile promises.
void ExpectConsistent(const Profile& profile) {
  EXPECT_LE(profile.begin, profile.end);
  for (std::size_t i = 0; i < profile.spans.size(); ++i) {
    const ProfiledSpan& span = profile.spans[i];
    SCOPED_TRACE(absl::StrCat("span ", i, ", ", span.name));
    ASSERT_GE(span.thread, 0);
    ASSERT_LT(span.thread, static_cast<int>(profile.threads.size()));
    EXPECT_LE(span.host_begin, span.host_end);
    ASSERT_LT(span.parent, static_cast<int>(i));
    if (span.parent >= 0) {
      const ProfiledSpan& parent = profile.spans[span.parent];
      EXPECT_EQ(parent.thread, span.thread);
      EXPECT_LE(parent.host_begin, span.host_begin);
      EXPECT_GE(parent.host_end, span.host_end);
    }
    if (i > 0 && profile.spans[i - 1].thread == span.thread) {
      EXPECT_LE(profile.spans[i - 1].host_begin, span.host_begin);
    }
    ASSERT_LT(span.stream, static_cast<int>(profile.streams.size()));
    EXPECT_EQ(span.stream >= 0, span.kind == ProfiledKind::kOperation);
    if (span.device_time == DeviceTime::kMeasured) {
      EXPECT_LE(span.device_begin, span.device_end);
      EXPECT_GT(span.device_begin, 0);
    } else {
      EXPECT_EQ(span.device_nanos(), 0);
    }
  }
  for (const ProfiledStream& stream : profile.streams) {
    ASSERT_LT(stream.device, static_cast<int>(profile.devices.size()));
  }
  for (std::size_t i = 1; i < profile.memory.size(); ++i) {
    EXPECT_LE(profile.memory[i - 1].time, profile.memory[i].time);
  }
}

class ProfilerDeviceTest : public testing::TestWithParam<Device> {
 protected:
  void SetUp() override { Synchronize(GetParam()); }
  void TearDown() override {
    try {
      Synchronize(GetParam());
    } catch (const AsyncError&) {
    }
  }
  const Device device_ = GetParam();
};

// The wait is within the call that was blocked, and the call's times are its
// own.
TEST_P(ProfilerDeviceTest, RecordsThatAQueueIsFull) {
  constexpr int kBound = 16;
  Stream& stream = NewStream(device_, kBound);
  const Tensor x = Ones({2}, device_);
  Profile profile;
  std::int64_t waits = 0;
  // The queue may have room again before the front end polls.
  for (int i = 0; i < 1000 && waits == 0; ++i) {
    Profiler profiler;
    {
      const ProfileScope scope(profiler);
      StreamStall stall(stream);
      std::thread release([&] {
        while (stream.QueuedOperations() <= kBound) std::this_thread::yield();
        stall.Release();
      });
      const StreamGuard guard(stream);
      // In place: cudaMalloc might wait for the stream that is held.
      for (int op = 0; op < 2 * kBound; ++op) FillInPlace(x, 1);
      release.join();
    }
    profile = profiler.profile();
    waits = CountOf(profile, "front end blocked: queue full 16/16");
  }
  ExpectConsistent(profile);
  EXPECT_EQ(CountOf(profile, "fill"), 2 * kBound);
  EXPECT_GT(waits, 0);
  for (const ProfiledSpan& span : profile.spans) {
    if (span.kind != ProfiledKind::kQueueFull) continue;
    EXPECT_EQ(span.name, "front end blocked: queue full 16/16");
    ASSERT_GE(span.parent, 0);
    EXPECT_EQ(profile.spans[span.parent].name, "fill");
  }
}

TEST_P(ProfilerDeviceTest, RecordsWhatWasAskedForWhereAndWhen) {
  const Tensor x = Ones({3, 2}, device_);
  Synchronize(device_);
  Profiler profiler;
  const std::int64_t before = NowNanos();
  profiler.Start();
  const Tensor y = MatMul(x, T(x));
  const int line = __LINE__ - 1;
  Synchronize(device_);
  profiler.Stop();
  const std::int64_t after = NowNanos();

  const Profile& profile = profiler.profile();
  ExpectConsistent(profile);
  EXPECT_THAT(NamesOf(profile),
              ElementsAre("transpose", "matmul", "synchronize"));
  const ProfiledSpan& view = profile.spans[0];
  EXPECT_EQ(view.kind, ProfiledKind::kView);
  EXPECT_EQ(view.device_time, DeviceTime::kNothing);
  EXPECT_EQ(view.stream, -1);
  const ProfiledSpan& product = profile.spans[1];
  EXPECT_EQ(product.kind, ProfiledKind::kOperation);
  EXPECT_EQ(product.device_time, DeviceTime::kMeasured);
  EXPECT_EQ(product.line().ToString(), Here(line));
  ASSERT_EQ(product.inputs.size(), 2u);
  EXPECT_EQ(product.inputs[0].shape, Shape({3, 2}));
  EXPECT_EQ(product.inputs[1].shape, Shape({2, 3}));
  EXPECT_EQ(product.inputs[1].dtype, DType::kFloat32);
  EXPECT_EQ(profile.streams[product.stream].name,
            DefaultStream(device_).name());
  EXPECT_EQ(profile.devices[0].device, device_);
  EXPECT_EQ(profile.devices[0].description, GetDeviceInfo(device_).Describe());
  EXPECT_GE(product.host_begin, before);
  EXPECT_LE(product.host_end, after);
  EXPECT_EQ(profile.spans[2].kind, ProfiledKind::kWait);
  EXPECT_EQ(profile.cut, 0);
  EXPECT_THAT(profile.notes, IsEmpty());
}

TEST_P(ProfilerDeviceTest, AnOperationOnListsIsOneCall) {
  const std::vector<Tensor> y = {Ones({5}, device_), Ones({2, 3}, device_)};
  const std::vector<Tensor> x = {Ones({5}, device_), Ones({2, 3}, device_)};
  Synchronize(device_);
  Profiler profiler;
  {
    ProfileScope scope(profiler);
    AxpbyInPlace(y, 2, x, 3);
  }
  const Profile& profile = profiler.profile();
  ExpectConsistent(profile);
  ASSERT_EQ(profile.spans[0].name, "axpby");
  EXPECT_EQ(profile.spans[0].device_time, DeviceTime::kMeasured);
  ASSERT_EQ(profile.spans[0].inputs.size(), 4u);
  EXPECT_EQ(profile.spans[0].inputs[3].shape, Shape({2, 3}));
  EXPECT_EQ(profile.spans[0].cost.flop, 3 * 11);
  EXPECT_EQ(profile.spans[0].cost.bytes, 3 * 4 * 11);
  EXPECT_EQ(profile.spans[0].cost.written, 0);
  for (std::size_t i = 1; i < profile.spans.size(); ++i) {
    EXPECT_NE(profile.spans[i].name, "axpby");
  }
}

TEST_P(ProfilerDeviceTest, TellsRequestQueueAndWorkApart) {
  const Tensor x = Ones({100, 100}, device_);
  MatMul(x, x);  // includes the work of the first time only
  Synchronize(device_);
  if (LaunchBlocking()) GTEST_SKIP() << "nothing can be held up";
  Profiler profiler;
  std::int64_t released = 0;
  {
    ProfileScope scope(profiler);
    StreamStall stall(DefaultStream(device_));
    MatMul(x, x);
    released = NowNanos();
    stall.Release();
    Synchronize(device_);
  }
  const Profile& profile = profiler.profile();
  ExpectConsistent(profile);
  const ProfiledSpan& product = profile.spans[0];
  EXPECT_EQ(product.name, "matmul");
  EXPECT_LE(product.host_end, released);
  // The clocks of a GPU and of the host agree to some microseconds.
  const std::int64_t error = device_.type() == DeviceType::kCpu ? 0 : 100'000;
  EXPECT_GE(product.device_begin, released - error);
  EXPECT_GE(product.queue_nanos(), released - product.host_end - error);
  EXPECT_GT(product.device_nanos(), 0);
}

TEST_P(ProfilerDeviceTest, WhatFailedOrWasSkippedHasNoDeviceTime) {
  const Tensor x = Arange(10, device_);
  const Tensor wrong = FromVector<std::int64_t>({3, 77}, {2}, device_);
  Profiler profiler;
  {
    ProfileScope scope(profiler);
    // IndexSelect fails after the addition is enqueued, which would throw if it
    // had failed before.
    StreamStall stall(CurrentStream(device_));
    const Tensor selected = IndexSelect(x, 0, wrong);
    const Tensor z = selected + 1;
    stall.Release();
    EXPECT_THROW(Synchronize(device_), AsyncError);
    Tensor fine = x + 1;
  }
  const Profile& profile = profiler.profile();
  ExpectConsistent(profile);
  ASSERT_GE(profile.spans.size(), 2u);
  EXPECT_EQ(profile.spans[0].device_time, DeviceTime::kNotRun);
  EXPECT_EQ(profile.spans.back().device_time, DeviceTime::kMeasured);
  const KeyAverages averages(profile);
  EXPECT_EQ(averages.rows()[0].measured_calls, 0);
  EXPECT_THAT(averages.Table(), HasSubstr("n/a"));
}

TEST_P(ProfilerDeviceTest, MemoryIsWhatTheDevicesAccountSays) {
  ProfilerOptions options;
  options.profile_memory = true;
  Profiler profiler(options);
  const Tensor x = Ones({1000}, device_);
  Synchronize(device_);
  const std::int64_t before = Memory(device_).Stats().allocated;
  {
    ProfileScope scope(profiler);
    Tensor y = x + 1;
    y = Tensor();
  }
  const Profile& profile = profiler.profile();
  ExpectConsistent(profile);
  ASSERT_EQ(profile.spans.size(), 1u);
  EXPECT_GE(profile.spans[0].allocated_bytes, 4000);
  ASSERT_EQ(profile.memory.size(), 2u);
  const MemoryPoint& taken = profile.memory[0];
  EXPECT_EQ(taken.span, 0);
  EXPECT_EQ(taken.change, profile.spans[0].allocated_bytes);
  EXPECT_EQ(taken.allocated, before + taken.change);
  EXPECT_GE(taken.reserved, taken.allocated);
  const MemoryPoint& returned = profile.memory[1];
  EXPECT_EQ(returned.change, -taken.change);
  EXPECT_EQ(returned.allocated, before);
  EXPECT_EQ(returned.span, -1) << "no call was going on";
}

// As a recursion does: memory is taken on the way in, and given back on the way
// out, with a call between two levels.
TEST_P(ProfilerDeviceTest, MemoryIsOfTheInnermostSpan) {
  ProfilerOptions options;
  options.profile_memory = true;
  Profiler profiler(options);
  {
    ProfileScope scope(profiler);
    std::vector<std::unique_ptr<RecordFunction>> ranges;
    std::vector<Tensor> kept;
    for (int i = 0; i < 100; ++i) {
      ranges.push_back(
          std::make_unique<RecordFunction>(absl::StrCat("level ", i)));
      kept.push_back(Ones({1000 + i}, device_));
    }
    while (!ranges.empty()) {
      if (ranges.size() % 3 == 0) kept.back() + 1;
      kept.pop_back();
      ranges.pop_back();
    }
  }
  const Profile& profile = profiler.profile();
  ExpectConsistent(profile);
  EXPECT_GE(profile.memory.size(), 200u);
  int within = 0;
  for (const MemoryPoint& point : profile.memory) {
    int innermost = -1;
    for (std::size_t i = 0; i < profile.spans.size(); ++i) {
      const ProfiledSpan& span = profile.spans[i];
      if (span.host_begin <= point.time && point.time <= span.host_end) {
        innermost = static_cast<int>(i);
      }
    }
    EXPECT_EQ(point.span, innermost);
    within += innermost >= 0 ? 1 : 0;
  }
  EXPECT_GE(within, 190);
}

TEST_P(ProfilerDeviceTest, ReadsAreCallsOfTheHost) {
  const Tensor x = Ones({1}, device_);
  Profiler profiler;
  {
    ProfileScope scope(profiler);
    Item(x + 1);
  }
  const Profile& profile = profiler.profile();
  ExpectConsistent(profile);
  EXPECT_EQ(CountOf(profile, "add"), 1);
  EXPECT_EQ(CountOf(profile, "item"), 1);
  EXPECT_EQ(profile.spans.back().kind, ProfiledKind::kRead);
}

TEST_P(ProfilerDeviceTest, BoundsAreMeasuredOnceAndHeldAgainstCosts) {
  ProfilerOptions options;
  options.with_bounds = true;
  Profiler profiler(options);
  const Tensor x = Rand({64, 32}, GetParam()), y = Rand({32, 16}, GetParam());
  {
    const ProfileScope scope(profiler);
    MatMul(x, y);
    T(x);
  }
  const Profile& profile = profiler.profile();
  ASSERT_EQ(profile.spans.size(), 2u);
  EXPECT_EQ(profile.spans[0].cost.flop, 2 * 64 * 32 * 16);
  EXPECT_EQ(profile.spans[0].cost.bytes, 4 * (64 * 32 + 32 * 16 + 64 * 16));
  EXPECT_EQ(profile.spans[1].cost.bytes, 0);
  const Peaks& peaks = PeaksOf(GetParam());
  EXPECT_EQ(&peaks, &PeaksOf(GetParam()));
  const bool modelled = GetDeviceInfo(GetParam()).kind == DeviceKind::kModelled;
  EXPECT_EQ(peaks.measured(), !modelled);
  EXPECT_EQ(BoundOf(profile, profile.spans[0]).kind == BoundKind::kNone,
            modelled);
  EXPECT_EQ(BoundOf(profile, profile.spans[1]).kind, BoundKind::kNone);
  if (modelled) return;
  EXPECT_EQ(profile.devices[0].peaks.flop_per_second, peaks.flop_per_second);
  std::int64_t before = 0;
  for (const Bandwidth& one : peaks.bandwidths) {
    EXPECT_GT(one.bytes, before) << one.name;
    EXPECT_GT(one.copied_per_second, 0) << one.name;
    EXPECT_GE(one.bytes_per_second, one.copied_per_second) << one.name;
    before = one.bytes;
  }
  EXPECT_GT(peaks.enqueue_seconds, 0);
}

INSTANTIATE_TEST_SUITE_P(All, ProfilerDeviceTest,
                         testing::ValuesIn(AllDevices()), DeviceTestName);

TEST(ProfilerTest, RangesNest) {
  const Tensor x = Ones({2}, Devices()[0].device);
  Profiler profiler;
  {
    ProfileScope scope(profiler);
    {
      RecordFunction epoch("epoch");
      for (int i = 0; i < 2; ++i) {
        RecordFunction batch(absl::StrCat("batch ", i));
        Tensor y = x + i;
      }
      Tensor z = x * 2;
    }
    RecordFunction outside("outside");
  }
  const Profile& profile = profiler.profile();
  ExpectConsistent(profile);
  EXPECT_THAT(NamesOf(profile),
              ElementsAre("epoch", "batch 0", "add", "batch 1", "add", "mul",
                          "outside"));
  std::vector<int> parents;
  for (const ProfiledSpan& span : profile.spans) parents.push_back(span.parent);
  EXPECT_THAT(parents, ElementsAre(-1, 0, 1, 0, 3, 0, -1));
}

TEST(ProfilerTest, ARangeThatIsStillOpenCountsUpToTheEnd) {
  Profiler profiler;
  profiler.Start();
  {
    RecordFunction open("open");
    profiler.Stop();
    const Profile& profile = profiler.profile();
    ExpectConsistent(profile);
    ASSERT_EQ(profile.spans.size(), 1u);
    EXPECT_EQ(profile.spans[0].host_end, profile.end);
    EXPECT_THAT(profile.notes,
                ElementsAre(HasSubstr("1 range was still open")));
  }
}

TEST(ProfilerTest, NamesMayBeAnyText) {
  const std::string name = "\"quoted\" \\ 前向\n\x01";
  Profiler profiler;
  {
    ProfileScope scope(profiler);
    RecordFunction range(name);
  }
  EXPECT_THAT(NamesOf(profiler.profile()), ElementsAre(name));
}

TEST(ProfilerTest, NothingIsRecordedBeforeStartAndAfterStop) {
  const Device device = Devices()[0].device;
  Tensor x = Ones({2}, device);
  RecordFunction before("before");
  Profiler profiler;
  profiler.Start();
  Tensor y = x * 3;
  profiler.Stop();
  Tensor z = x + y;
  EXPECT_THAT(NamesOf(profiler.profile()), ElementsAre("mul"));
}

TEST(ProfilerTest, AnEmptyProfile) {
  Profiler profiler;
  EXPECT_THAT(profiler.profile().spans, IsEmpty()) << "never started";
  profiler.Start();
  profiler.Stop();
  EXPECT_THAT(profiler.profile().spans, IsEmpty());
  EXPECT_FALSE(profiler.KeyAverages().Table().empty());
}

TEST(ProfilerTest, CallsThatDoNotGoTogetherNameBothLines) {
  Profiler profiler;
  const auto stop = [&](int line) {
    profiler.Stop(SourceLocation("b.cc", line));
  };
  EXPECT_EQ(LogicErrorOf([&] { stop(1); }),
            "[profiler] stopped at b.cc:1, but it was never started; each Stop "
            "needs a Start");
  profiler.Start(SourceLocation("a.cc", 10));
  EXPECT_EQ(
      LogicErrorOf([&] { profiler.Start(SourceLocation("b.cc", 3)); }),
      "[profiler] started at b.cc:3, but it runs already, since a.cc:10; call "
      "Stop first, or use another Profiler");
  EXPECT_THAT(
      LogicErrorOf([&] { profiler.profile(SourceLocation("b.cc", 4)); }),
      HasSubstr("asked for at b.cc:4, but the profiler still runs, "
                "since a.cc:10; call Stop first"));
  stop(5);
  EXPECT_EQ(LogicErrorOf([&] { stop(6); }),
            "[profiler] stopped at b.cc:6, but it was stopped before, at "
            "b.cc:5; each Stop needs a Start");
}

TEST(ProfilerTest, OptionsThatMakeNoSenseAreRefused) {
  ProfilerOptions options;
  options.max_records = 0;
  EXPECT_THROW(Profiler{options}, std::invalid_argument);
}

TEST(ProfilerTest, OneInsideAnotherBothRecord) {
  const Tensor x = Ones({2}, Devices()[0].device);
  Profiler outer;
  Profiler inner;
  Profiler overlapping;
  outer.Start();
  Tensor y = x + 1;
  inner.Start();
  y = x * 2;
  overlapping.Start();
  y = x - 1;
  inner.Stop();
  y = x / 2;
  outer.Stop();
  y = Exp(x);
  overlapping.Stop();
  EXPECT_THAT(NamesOf(outer.profile()),
              ElementsAre("add", "mul", "sub", "div"));
  EXPECT_THAT(NamesOf(inner.profile()), ElementsAre("mul", "sub"));
  EXPECT_THAT(NamesOf(overlapping.profile()), ElementsAre("sub", "div", "exp"));
  for (Profiler* profiler : {&outer, &inner, &overlapping}) {
    EXPECT_EQ(profiler->profile().cut, 0);
  }
  for (const ProfiledSpan& span : outer.profile().spans) {
    EXPECT_EQ(span.device_time, DeviceTime::kMeasured) << span.name;
  }
}

TEST(ProfilerTest, ManyRecordsAreCutAndCounted) {
  const Tensor x = Ones({1}, Devices()[0].device);
  ProfilerOptions options;
  options.max_records = 1000;
  Profiler bounded(options);
  Profiler unbounded;
  bounded.Start();
  unbounded.Start();
  for (int i = 0; i < 4000; ++i) Tensor y = x + 1;
  unbounded.Stop();
  bounded.Stop();
  const Profile& profile = bounded.profile();
  EXPECT_EQ(profile.spans.size(), 1024u) << "two chunks of 512";
  EXPECT_EQ(profile.cut, 4000 - 1024);
  EXPECT_THAT(profile.notes,
              ElementsAre("2976 calls were not recorded: there was room for "
                          "1000 (ProfilerOptions::max_records)."));
  EXPECT_THAT(bounded.KeyAverages().Table(), HasSubstr("2976 calls were not"));
  EXPECT_EQ(unbounded.profile().spans.size(), 4000u);
  EXPECT_EQ(unbounded.profile().cut, 0);
}

TEST(ProfilerTest, TenMillionCallsTakeBoundedMemory) {
  ProfilerOptions options;
  options.max_records = 1000;
  Profiler profiler(options);
  profiler.Start();
  for (int i = 0; i < 10'000'000; ++i) RecordFunction range("r");
  profiler.Stop();
  EXPECT_EQ(profiler.profile().spans.size(), 1024u);
  EXPECT_EQ(profiler.profile().cut, 10'000'000 - 1024);
}

TEST(ProfilerTest, AFullOuterOneDoesNotHinderAnInnerOne) {
  const Tensor x = Ones({1}, Devices()[0].device);
  ProfilerOptions options;
  options.max_records = 1;
  Profiler outer(options);
  outer.Start();
  for (int i = 0; i < 600; ++i) Tensor y = x + 1;
  Profiler inner;
  inner.Start();
  for (int i = 0; i < 100; ++i) Tensor y = x + 1;
  inner.Stop();
  outer.Stop();
  EXPECT_EQ(inner.profile().spans.size(), 100u);
  EXPECT_EQ(inner.profile().cut, 0);
  EXPECT_EQ(outer.profile().spans.size(), 512u);
  EXPECT_EQ(outer.profile().cut, 188);
}

TEST(ProfilerTest, ShapesOfAnyNumberAndSize) {
  const Device device = Devices()[0].device;
  const Tensor deep = Ones({1, 2, 1, 2, 1, 2, 1, 2}, device);
  const Tensor one = Ones({1}, device);
  const std::vector<Tensor> six(6, one);
  Profiler profiler;
  {
    ProfileScope scope(profiler);
    Tensor y = deep + deep;
    Tensor z = Cat(six);
    Tensor wide = Expand(one, {std::int64_t{1} << 40});
    Tensor narrow = Slice(wide, 0, 0, 1);
  }
  const Profile& profile = profiler.profile();
  ExpectConsistent(profile);
  ASSERT_EQ(profile.spans[0].inputs.size(), 2u);
  EXPECT_EQ(profile.spans[0].inputs[1].shape, deep.shape());
  ASSERT_EQ(profile.spans[1].inputs.size(), 6u);
  EXPECT_EQ(profile.spans[1].inputs[5].shape, one.shape());
  EXPECT_EQ(profile.spans.back().inputs[0].shape,
            Shape({std::int64_t{1} << 40}));
}

TEST(ProfilerTest, SeveralThreadsAndDevices) {
  constexpr int kThreads = 3;
  constexpr int kCalls = 400;
  const std::vector<DeviceInfo>& devices = Devices();
  ProfilerOptions options;
  options.profile_memory = true;
  Profiler profiler(options);
  Profiler often;
  profiler.Start();
  std::atomic<int> at_work{kThreads};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const Device device = devices[t % devices.size()].device;
      RecordFunction range(absl::StrCat("thread ", t));
      Tensor x = Ones({10 + t}, device);
      for (int i = 0; i < kCalls; ++i) {
        x = x * 0.5 + 1;
        if (i % 100 == 0) Synchronize(device);
      }
      at_work.fetch_sub(1);
    });
  }
  // Other threads start and end meanwhile.
  while (at_work.load() > 0) {
    ProfileScope scope(often);
  }
  for (std::thread& thread : threads) thread.join();
  profiler.Stop();
  const Profile& profile = profiler.profile();
  ExpectConsistent(profile);
  ExpectConsistent(often.profile());
  EXPECT_EQ(profile.threads.size(), static_cast<std::size_t>(kThreads));
  EXPECT_EQ(CountOf(profile, "mul"), kThreads * kCalls);
  EXPECT_EQ(CountOf(profile, "add"), kThreads * kCalls);
  EXPECT_EQ(CountOf(profile, "synchronize"), kThreads * 4);
  EXPECT_EQ(profile.cut, 0);
  for (const ProfiledSpan& span : profile.spans) {
    if (span.kind != ProfiledKind::kOperation) continue;
    EXPECT_EQ(span.device_time, DeviceTime::kMeasured) << span.name;
    EXPECT_GE(span.parent, 0) << "each is in its thread's range";
  }
  // Work on one stream is done one by one.
  for (std::size_t s = 0; s < profile.streams.size(); ++s) {
    std::vector<const ProfiledSpan*> work;
    for (const ProfiledSpan& span : profile.spans) {
      if (span.stream == static_cast<int>(s)) work.push_back(&span);
    }
    std::sort(work.begin(), work.end(),
              [](const ProfiledSpan* a, const ProfiledSpan* b) {
                return a->number < b->number;
              });
    for (std::size_t i = 1; i < work.size(); ++i) {
      EXPECT_LE(work[i - 1]->device_end, work[i]->device_begin);
    }
  }
}

TEST(ProfilerTest, AProfilerMayGoWhileItsOperationsAreQueued) {
  const Device device = Devices()[0].device;
  if (LaunchBlocking()) GTEST_SKIP() << "nothing can be held up";
  Tensor x = Ones({1}, device);
  x = x + 1;
  Synchronize(device);
  StreamStall stall(DefaultStream(device));
  for (int i = 0; i < 3; ++i) {
    Profiler profiler;
    ProfileScope scope(profiler);
    x = x + 1;
  }
  stall.Release();
  EXPECT_EQ(Item(x), 5);
}

// ---- Ranges for tools that watch from outside (NVTX).

class Marker : public RangeMarker {
 public:
  void Push(const char* name) override { told.push_back(name); }
  void Pop() override { told.push_back("end"); }

  std::vector<std::string> told;
};

TEST(NvtxRangeTest, RangesAreMarkedWithAndWithoutAProfiler) {
  { const RecordFunction unheard("unheard"); }
  Marker marker;
  SetRangeMarker(&marker);
  Profiler profiler;
  {
    const RecordFunction outer("outer");
    profiler.Start();
    const RecordFunction inner("inner");
  }
  profiler.Stop();
  SetRangeMarker(nullptr);
  EXPECT_THAT(marker.told, ElementsAre("outer", "inner", "end", "end"));
  ASSERT_EQ(profiler.profile().spans.size(), 1u);
  EXPECT_EQ(profiler.profile().spans[0].name, "inner");
}

}  // namespace
}  // namespace d2l
