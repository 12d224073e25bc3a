#include "common/profiler/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/device/device.h"
#include "common/profiler/profile_testing.h"

namespace d2l {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAreArray;

constexpr Device kCpu0(DeviceType::kCpu, 0);
constexpr Device kCpu1(DeviceType::kCpu, 1);

// All contents of a span, with names instead of indices.
std::string Described(const Profile& profile, const ProfiledSpan& span) {
  std::string text = absl::StrCat(
      profile.threads[span.thread].name, " ", span.name, " ",
      static_cast<int>(span.kind), " host ", span.host_begin, "-",
      span.host_end, " device ", span.device_begin, "-", span.device_end, " ",
      static_cast<int>(span.device_time), " bytes ", span.allocated_bytes,
      " number ", span.number, " inputs ", span.inputs.size());
  if (span.stream >= 0) {
    const ProfiledStream& stream = profile.streams[span.stream];
    absl::StrAppend(&text, " stream ", stream.name, " of ",
                    profile.devices[stream.device].device.ToString());
  }
  if (span.parent >= 0) {
    absl::StrAppend(&text, " in (",
                    Described(profile, profile.spans[span.parent]), ")");
  }
  return text;
}

std::string Described(const Profile& profile, const MemoryPoint& point) {
  return absl::StrCat(
      profile.devices[point.device].device.ToString(), " at ", point.time, " ",
      point.pinned, " ", point.change, " ", point.allocated, " ",
      point.in_flight, " ", point.reserved, " in ",
      point.span < 0 ? "" : Described(profile, profile.spans[point.span]));
}

template <typename Entries>
std::vector<std::string> AllDescribed(const Profile& profile,
                                      const Entries& entries) {
  std::vector<std::string> texts;
  for (const auto& entry : entries) texts.push_back(Described(profile, entry));
  return texts;
}

// The profile, moved by `nanos`, with memory points.
Profile Later(Profile profile, std::int64_t nanos) {
  for (std::size_t i = 0; i < profile.spans.size(); i += 7) {
    MemoryPoint point;
    point.time = profile.begin + static_cast<std::int64_t>(i);
    point.device = static_cast<int>(i % profile.devices.size());
    point.pinned = i % 2 == 1;
    point.change = 10 + static_cast<std::int64_t>(i);
    point.span = i % 3 == 0 ? -1 : static_cast<int>(i);
    profile.memory.push_back(point);
  }
  profile.begin += nanos;
  profile.end += nanos;
  for (ProfiledSpan& span : profile.spans) {
    span.host_begin += nanos;
    span.host_end += nanos;
    if (span.device_time == DeviceTime::kMeasured) {
      span.device_begin += nanos;
      span.device_end += nanos;
    }
  }
  for (MemoryPoint& point : profile.memory) point.time += nanos;
  return profile;
}

void ExpectInOrder(const Profile& profile) {
  for (std::size_t i = 0; i < profile.spans.size(); ++i) {
    const ProfiledSpan& span = profile.spans[i];
    EXPECT_LT(span.parent, static_cast<int>(i));
    if (i == 0) continue;
    const ProfiledSpan& before = profile.spans[i - 1];
    EXPECT_LE(before.thread, span.thread) << i;
    if (before.thread == span.thread) {
      EXPECT_LE(before.host_begin, span.host_begin) << i;
    }
  }
  EXPECT_TRUE(std::is_sorted(profile.memory.begin(), profile.memory.end(),
                             [](const MemoryPoint& a, const MemoryPoint& b) {
                               return a.time < b.time;
                             }));
}

TEST(MergeTest, NothingLosesOrGainsAnything) {
  for (const int count : {1, 2, 3, 7}) {
    std::vector<Profile> parts;
    std::vector<std::string> spans;
    std::vector<std::string> memory;
    std::int64_t end = 0;
    for (int i = 0; i < count; ++i) {
      Profile part = RandomProfile(10 * count + i, 60 + 10 * i);
      // The threads and the devices appear in another order.
      if (i % 2 == 1) {
        std::swap(part.threads[0], part.threads[1]);
        std::swap(part.devices[0].device, part.devices[2].device);
        std::swap(part.streams[0].name, part.streams[2].name);
      }
      part = Later(std::move(part), end);
      end = part.end;
      for (const std::string& text : AllDescribed(part, part.spans)) {
        spans.push_back(text);
      }
      for (const std::string& text : AllDescribed(part, part.memory)) {
        memory.push_back(text);
      }
      parts.push_back(std::move(part));
    }
    const std::int64_t begin = parts.front().begin;
    const Profile whole = Merge(std::move(parts));
    EXPECT_EQ(whole.begin, begin);
    EXPECT_EQ(whole.end, end);
    EXPECT_EQ(whole.threads.size(), 2u);
    EXPECT_EQ(whole.devices.size(), 3u);
    EXPECT_EQ(whole.streams.size(), 3u);
    ExpectInOrder(whole);
    EXPECT_THAT(AllDescribed(whole, whole.spans),
                UnorderedElementsAreArray(spans));
    EXPECT_THAT(AllDescribed(whole, whole.memory),
                UnorderedElementsAreArray(memory));
  }
}

TEST(MergeTest, NamesAreOneAndNotesAreKept) {
  ProfileBuilder first({kCpu0});
  first.Operation("add", 100, 110, 0, 120, 130);
  first.profile().notes = {"first."};
  first.profile().cut = 3;
  ProfileBuilder second({kCpu1, kCpu0});
  second.Begin(ProfiledKind::kRange, "cell", 200);
  second.Operation("mul", 210, 220, 1, 230, 240);
  second.End(250);
  second.Thread("front end 2");
  second.Operation("sub", 205, 215, 0, 225, 235);
  second.profile().notes = {"second.", "first."};
  second.profile().cut = 4;
  const Profile whole = Merge({first.Build(), second.Build()});

  std::vector<std::string> threads;
  for (const ProfiledThread& thread : whole.threads) {
    threads.push_back(thread.name);
  }
  EXPECT_THAT(threads, ElementsAre("front end", "front end 2"));
  std::vector<std::string> streams;
  for (const ProfiledStream& stream : whole.streams) {
    streams.push_back(absl::StrCat(stream.name, " ", stream.device));
  }
  EXPECT_THAT(streams, ElementsAre("cpu:0/1 0", "cpu:1/1 1"));
  std::vector<std::string> spans;
  for (const ProfiledSpan& span : whole.spans) {
    spans.push_back(absl::StrCat(span.name, " thread ", span.thread, " stream ",
                                 span.stream, " in ", span.parent));
  }
  EXPECT_THAT(spans, ElementsAre("add thread 0 stream 0 in -1",
                                 "cell thread 0 stream -1 in -1",
                                 "mul thread 0 stream 0 in 1",
                                 "sub thread 1 stream 1 in -1"));
  EXPECT_THAT(whole.notes, ElementsAre("first.", "second.", "first."));
  EXPECT_EQ(whole.cut, 7);
  EXPECT_EQ(whole.begin, 100);
  EXPECT_EQ(whole.end, 250);
}

TEST(MergeTest, OfNothingIsNothing) {
  EXPECT_THAT(Merge({}).spans, IsEmpty());
  const Profile empty = Merge({Profile(), Profile()});
  EXPECT_THAT(empty.spans, IsEmpty());
  EXPECT_THAT(empty.threads, IsEmpty());
}

TEST(MergeTest, PutsDevicesAndStreamsIntoTheirOrder) {
  ProfileBuilder builder(
      {Device(DeviceType::kCpu, 1), Device(DeviceType::kCpu, 0)});
  builder.profile().streams.push_back({"cpu:0/10", 1});
  builder.profile().streams.push_back({"cpu:0/2", 1});
  for (int stream = 0; stream < 4; ++stream) {
    builder.Operation(builder.profile().streams[stream].name, 0, 1, stream, 2,
                      3);
  }
  builder.Add(ProfiledKind::kView, "view", 4, 5);
  MemoryPoint point;
  point.device = 0;
  builder.profile().memory = {point};
  const Profile profile = Merge({builder.Build()});
  std::vector<std::string> streams;
  for (const ProfiledStream& stream : profile.streams) {
    streams.push_back(absl::StrCat(stream.name, " ", stream.device));
  }
  EXPECT_THAT(streams,
              ElementsAre("cpu:0/1 0", "cpu:0/2 0", "cpu:0/10 0", "cpu:1/1 1"));
  for (int i = 0; i < 4; ++i) {
    const ProfiledSpan& span = profile.spans[i];
    EXPECT_EQ(profile.streams[span.stream].name, span.name);
  }
  EXPECT_EQ(profile.spans[4].stream, -1);
  EXPECT_EQ(profile.devices[1].device.ToString(), "cpu:1");
  EXPECT_EQ(profile.memory[0].device, 1);
}

}  // namespace
}  // namespace d2l
