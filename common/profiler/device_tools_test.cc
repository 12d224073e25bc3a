// The tools of others: times that a device's stream does not take itself
// (CUPTI), and ranges for those who watch from outside (NVTX).

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "common/base/source_location.h"
#include "common/device/device.h"
#include "common/device/device_times.h"
#include "common/device/nvtx_range.h"
#include "common/device/op_label.h"
#include "common/device/stream.h"
#include "common/ops/ops.h"
#include "common/ops/primitive.h"
#include "common/ops/record.h"
#include "common/profiler/collector.h"
#include "common/profiler/profile.h"
#include "common/profiler/profiler.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const Device kCpu(DeviceType::kCpu, 0);

// Knows what the test tells it, by the number of the operation.
class TestTimes : public DeviceTimes {
 public:
  bool available() const override { return is_available; }
  void End() override { ++ended; }
  void Collect(absl::Span<const EnqueuedOp> ops) override {
    for (const EnqueuedOp& op : ops) collected.push_back(op.number);
  }
  FoundTime Find(const EnqueuedOp& op) const override {
    const auto found = known.find(op.number);
    return found == known.end() ? FoundTime() : found->second;
  }
  std::vector<std::string> Notes() const override { return notes; }

  bool is_available = true;
  int ended = 0;
  std::vector<std::uint64_t> collected;
  std::map<std::uint64_t, FoundTime> known;
  std::vector<std::string> notes;
};

// What the next recording gets.
std::shared_ptr<TestTimes>& NextTimes() {
  static auto& times = *new std::shared_ptr<TestTimes>;
  return times;
}
int begun = 0;

internal::RecordingOptions Options() {
  internal::RecordingOptions options;
  options.max_records = 1000;
  options.begin_timing = []() -> std::shared_ptr<DeviceTimes> {
    ++begun;
    return NextTimes();
  };
  return options;
}

// x + 1 on a device that leaves the time to a tool where it may.
class Addition final : public Primitive {
 public:
  explicit Addition(std::shared_ptr<Primitive> add) : add_(std::move(add)) {}

  const char* name() const override { return "addition"; }
  ValueSpec Infer(Inputs inputs, int output) const override {
    return add_->Infer(inputs, output);
  }
  std::uint64_t Launch(Stream& stream, const OpLabel& label, Inputs inputs,
                       Outputs outputs) const override {
    OpStamps* const stamps = label.stamps();
    if (stamps == nullptr || stamps->begin != OpStamps::kOptional) {
      return add_->Launch(stream, label, inputs, outputs);
    }
    StampEnd(stamps, OpStamps::kElsewhere);
    return add_->Launch(stream, OpLabel(name()), inputs, outputs);
  }
  std::unique_ptr<Primitive> Clone() const override {
    return std::make_unique<Addition>(*this);
  }

 private:
  const std::shared_ptr<Primitive> add_;
};

class LastPrimitive : public OpListener {
 public:
  void OnOp(const OpRecord& record) override {
    primitive = record.primitive->Clone();
  }
  std::shared_ptr<Primitive> primitive;
};

class DeviceTimesTest : public testing::Test {
 protected:
  DeviceTimesTest() {
    LastPrimitive last;
    const ScopedOpListener listen(&last);
    Tensor y = x_ + 1;
    add_ = last.primitive;
    NextTimes() = times_;
    begun = 0;
  }

  // Returns its number in its stream.
  std::uint64_t Request() {
    Tensor y = Apply(Addition(add_), {&x_}, SourceLocation::Current());
    return y.storage()->written_by();
  }

  Tensor x_ = Ones({3}, kCpu);
  std::shared_ptr<Primitive> add_;
  std::shared_ptr<TestTimes> times_ = std::make_shared<TestTimes>();
};

TEST_F(DeviceTimesTest, TheToolsTimesAreTheProfiles) {
  internal::Collector& collector = internal::Collector::Get();
  const auto recording = collector.Start(Options());
  std::vector<std::uint64_t> numbers;
  for (int i = 0; i < 5; ++i) numbers.push_back(Request());
  Tensor own = x_ * 2;
  EXPECT_EQ(times_->ended, 0);
  collector.Stop(*recording);
  EXPECT_EQ(times_->ended, 1);
  times_->known[numbers[0]] = {1000, 1500, ""};
  times_->known[numbers[1]] = {0, 0, "the tool has seen nothing"};
  times_->known[numbers[2]] = {2000, 2001, ""};
  times_->known[numbers[3]] = {0, 0, "the tool has seen nothing"};
  times_->notes = {"The tool lost 3 records.", "It was slow."};

  const Profile profile = recording->ToProfile();
  EXPECT_EQ(times_->collected, numbers);
  ASSERT_EQ(profile.spans.size(), 6u);
  for (const int i : {0, 2}) {
    const ProfiledSpan& span = profile.spans[i];
    EXPECT_EQ(span.name, "addition");
    EXPECT_EQ(span.device_time, DeviceTime::kMeasured);
    EXPECT_EQ(span.device_begin, times_->known[numbers[i]].begin);
    EXPECT_EQ(span.device_end, times_->known[numbers[i]].end);
  }
  for (const int i : {1, 3, 4}) {
    EXPECT_EQ(profile.spans[i].device_time, DeviceTime::kUnmeasured);
    EXPECT_EQ(profile.spans[i].device_begin, 0);
    EXPECT_EQ(profile.spans[i].device_end, 0);
  }
  EXPECT_EQ(profile.spans[5].device_time, DeviceTime::kMeasured);
  EXPECT_GE(profile.spans[5].device_begin, profile.begin);
  EXPECT_THAT(profile.notes,
              ElementsAre("1 operation has no device time: the device did the "
                          "work, but could not take the time.",
                          "2 operations have no device time: the tool has seen "
                          "nothing.",
                          "The tool lost 3 records.", "It was slow."));
}

TEST_F(DeviceTimesTest, WithoutTheToolTheDeviceTakesTheTimes) {
  internal::Collector& collector = internal::Collector::Get();
  times_->is_available = false;
  times_->notes = {"The tool was refused."};
  const auto refused = collector.Start(Options());
  Request();
  collector.Stop(*refused);
  NextTimes() = nullptr;
  const auto none = collector.Start(Options());
  Request();
  collector.Stop(*none);
  const Profile of_refused = refused->ToProfile();
  const Profile of_none = none->ToProfile();
  EXPECT_EQ(begun, 2);
  for (const Profile* const profile : {&of_refused, &of_none}) {
    ASSERT_EQ(profile->spans.size(), 1u);
    EXPECT_EQ(profile->spans[0].device_time, DeviceTime::kMeasured);
    EXPECT_GE(profile->spans[0].device_begin, profile->begin);
  }
  EXPECT_THAT(of_refused.notes, ElementsAre("The tool was refused."));
  EXPECT_THAT(of_none.notes, IsEmpty());
  EXPECT_THAT(times_->collected, IsEmpty());
}

TEST_F(DeviceTimesTest, RecordingsThatOverlapShareThem) {
  internal::Collector& collector = internal::Collector::Get();
  const auto first = collector.Start(Options());
  const std::uint64_t only_first = Request();
  const auto second = collector.Start(Options());
  const std::uint64_t both = Request();
  collector.Stop(*first);
  EXPECT_EQ(times_->ended, 0);
  const std::uint64_t only_second = Request();
  collector.Stop(*second);
  EXPECT_EQ(times_->ended, 1);
  EXPECT_EQ(begun, 1);
  times_->known[only_first] = {10, 11, ""};
  times_->known[both] = {20, 22, ""};
  times_->known[only_second] = {30, 33, ""};
  const Profile of_first = first->ToProfile();
  const Profile of_second = second->ToProfile();
  ASSERT_EQ(of_first.spans.size(), 2u);
  ASSERT_EQ(of_second.spans.size(), 2u);
  EXPECT_EQ(of_first.spans[0].device_end, 11);
  EXPECT_EQ(of_first.spans[1].device_end, 22);
  EXPECT_EQ(of_second.spans[0].device_end, 22);
  EXPECT_EQ(of_second.spans[1].device_end, 33);
}

// ---- Ranges.

class Marker : public RangeMarker {
 public:
  void Push(const char* literal) override { Push(std::string(literal)); }
  void Push(const std::string& name) override { told.push_back(name); }
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
