#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/profiler/export.h"
#include "common/profiler/key_averages.h"
#include "common/profiler/profile_testing.h"

namespace d2l {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Track = std::pair<std::int64_t, std::int64_t>;  // process, number

const std::vector<Device> kTwoDevices = {Device(DeviceType::kCpu, 0),
                                         Device(DeviceType::kCpu, 1)};

std::int64_t Nanos(const json& micros) {
  return std::llround(micros.get<double>() * 1000);
}

Track TrackOf(const json& event) { return {event.at("pid"), event.at("tid")}; }

std::vector<json> EventsOf(const json& trace, const std::string& phase) {
  std::vector<json> events;
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") == phase) events.push_back(event);
  }
  return events;
}

json SliceNamed(const json& trace, const std::string& name,
                const std::string& process) {
  std::map<std::int64_t, std::string> processes;
  for (const json& event : EventsOf(trace, "M")) {
    if (event.at("name") == "process_name") {
      processes[event.at("pid")] = event.at("args").at("name");
    }
  }
  for (const json& slice : EventsOf(trace, "X")) {
    if (slice.at("name") == name && processes.at(slice.at("pid")) == process) {
      return slice;
    }
  }
  ADD_FAILURE() << "no slice " << name << " of " << process;
  return json();
}

// Checks that an event has the fields that the format requires.
void CheckFields(const json& event) {
  SCOPED_TRACE(event.dump());
  const std::string phase = event.at("ph");
  EXPECT_TRUE(event.at("pid").is_number_integer());
  EXPECT_TRUE(event.at("tid").is_number_integer());
  EXPECT_FALSE(event.at("name").get<std::string>().empty());
  if (phase == "M") {
    const std::string name = event.at("name");
    if (absl::EndsWith(name, "_name")) {
      EXPECT_TRUE(event.at("args").at("name").is_string());
    } else {
      EXPECT_TRUE(event.at("args").at("sort_index").is_number_integer());
    }
    return;
  }
  EXPECT_TRUE(event.at("ts").is_number());
  if (phase == "X") {
    EXPECT_GE(event.at("dur").get<double>(), 0);
    EXPECT_TRUE(event.at("args").is_object());
  } else if (phase == "s" || phase == "f") {
    EXPECT_TRUE(event.at("id").is_number_integer());
    if (phase == "f") {
      EXPECT_EQ(event.at("bp"), "e");
    }
  } else if (phase == "C") {
    for (const json& value : event.at("args")) {
      EXPECT_TRUE(value.is_number());
    }
  } else {
    EXPECT_EQ(phase, "i");
    EXPECT_EQ(event.at("s"), "g");
  }
}

struct Slice {
  std::int64_t begin;
  std::int64_t end;
};

// Checks that a track's slices, in the order of the file, nest or are disjoint:
// a later one begins within the innermost open one and ends within it too.
void CheckNesting(std::vector<Slice> slices, bool may_nest) {
  std::stable_sort(slices.begin(), slices.end(),
                   [](Slice a, Slice b) { return a.begin < b.begin; });
  std::vector<Slice> open;
  for (const Slice slice : slices) {
    while (!open.empty() && open.back().end <= slice.begin) open.pop_back();
    if (!open.empty()) {
      EXPECT_TRUE(may_nest);
      EXPECT_LE(slice.end, open.back().end);
    }
    open.push_back(slice);
  }
}

// Checks what must hold of any trace; returns it.
json Validated(const std::string& text) {
  json trace = json::parse(text);
  std::set<Track> named;
  std::set<std::int64_t> processes;
  std::map<Track, std::vector<Slice>> slices;
  std::map<std::int64_t, std::vector<json>> starts;
  std::map<std::int64_t, std::vector<json>> ends;
  json previous;
  for (const json& event : trace.at("traceEvents")) {
    CheckFields(event);
    const std::string phase = event.at("ph");
    if (event.at("name") == "thread_name") {
      EXPECT_TRUE(named.insert(TrackOf(event)).second);
    } else if (event.at("name") == "process_name") {
      EXPECT_TRUE(processes.insert(event.at("pid").get<std::int64_t>()).second);
    } else if (phase == "X") {
      const std::int64_t begin = Nanos(event.at("ts"));
      slices[TrackOf(event)].push_back({begin, begin + Nanos(event.at("dur"))});
    } else if (phase == "s" || phase == "f") {
      (phase == "s" ? starts : ends)[event.at("id")].push_back(event);
      // Bound to the slice that stands before it, and within that slice.
      EXPECT_EQ(previous.at("ph"), "X");
      EXPECT_EQ(TrackOf(previous), TrackOf(event));
      const std::int64_t begin = Nanos(previous.at("ts"));
      if (phase == "f") {
        EXPECT_EQ(Nanos(event.at("ts")), begin);
      } else {
        EXPECT_GE(Nanos(event.at("ts")), begin);
        EXPECT_LE(Nanos(event.at("ts")), begin + Nanos(previous.at("dur")));
      }
    }
    previous = event;
  }
  for (const auto& [track, of_track] : slices) {
    SCOPED_TRACE(absl::StrCat("track ", track.first, "/", track.second));
    EXPECT_EQ(named.count(track), 1u);
    EXPECT_EQ(processes.count(track.first), 1u);
    EXPECT_EQ(processes.count(track.second), 0u);
    CheckNesting(of_track, /*may_nest=*/track.first == 1);
  }
  EXPECT_EQ(starts.size(), ends.size());
  for (const auto& [id, start] : starts) {
    SCOPED_TRACE(id);
    EXPECT_EQ(start.size(), 1u);
    const auto end = ends.find(id);
    if (end == ends.end()) {
      ADD_FAILURE() << "an arrow without an end";
      continue;
    }
    EXPECT_EQ(end->second.size(), 1u);
    EXPECT_LE(Nanos(start[0].at("ts")), Nanos(end->second[0].at("ts")));
  }
  return trace;
}

TEST(ChromeTrace, WritesWhatIsKnownOfAnOperation) {
  ProfileBuilder builder(kTwoDevices);
  builder.Begin(ProfiledKind::kRange, "forward", 1'000'000);
  ProfiledSpan& span = builder.Operation("matmul", 1'001'234, 1'003'000, 1,
                                         1'010'500, 1'090'007);
  span.inputs = {{Shape{2, 3}, DType::kFloat32}, {Shape{}, DType::kInt64}};
  span.requested_at = SourceLocation("net.cc", 12);
  span.requested_by = SourceLocation("lesson.cc", 40);
  span.number = 17;
  span.in_place = true;
  span.allocated_bytes = 24;
  builder.End(1'200'000);
  const json trace = Validated(ToChromeTrace(builder.Build()));

  const json host = SliceNamed(trace, "matmul", "front end");
  EXPECT_EQ(host.at("ts"), 1.234);
  EXPECT_EQ(host.at("dur"), 1.766);
  EXPECT_EQ(host.at("cat"), "cpu_op");
  const json device = SliceNamed(trace, "matmul", "cpu:1");
  EXPECT_EQ(device.at("ts"), 10.5);
  EXPECT_EQ(device.at("dur"), 79.507);
  EXPECT_EQ(device.at("cat"), "kernel");
  json expected = {{"shapes", "(2, 3), ()"},   {"dtypes", "float32, int64"},
                   {"line", "lesson.cc:40"},   {"requested_at", "net.cc:12"},
                   {"stream_name", "cpu:1/1"}, {"number", 17},
                   {"in_place", true},         {"allocated_bytes", 24},
                   {"host_us", 1.766},         {"queue_us", 7.5},
                   {"device_us", 79.507},      {"correlation", 2}};
  // Tools take what has a stream for work of a device.
  EXPECT_EQ(host.at("args"), expected);
  expected["device"] = 1;
  expected["stream"] = device.at("tid");
  EXPECT_EQ(device.at("args"), expected);
  EXPECT_EQ(EventsOf(trace, "X").size(), 3u);
  EXPECT_EQ(SliceNamed(trace, "forward", "front end").at("dur"), 200);
}

TEST(ChromeTrace, WritesAReasonWhereThereIsNoDeviceTime) {
  ProfileBuilder builder(kTwoDevices);
  builder.Operation("failed", 10, 20, 0, DeviceTime::kNotRun);
  builder.Operation("unknown", 30, 40, 0, DeviceTime::kUnmeasured);
  builder.Add(ProfiledKind::kView, "reshape", 50, 60);
  builder.Add(ProfiledKind::kWait, "synchronize", 70, 80);
  const json trace = Validated(ToChromeTrace(builder.Build()));
  const auto args = [&](const char* name) {
    return SliceNamed(trace, name, "front end").at("args");
  };
  EXPECT_THAT(args("failed").at("no_device_time"),
              HasSubstr("failed, or was skipped"));
  EXPECT_THAT(args("unknown").at("no_device_time"), HasSubstr("not measured"));
  EXPECT_THAT(args("reshape").at("no_device_time"),
              HasSubstr("launches nothing"));
  EXPECT_FALSE(args("synchronize").contains("no_device_time"));
  for (const json& slice : EventsOf(trace, "X")) {
    EXPECT_FALSE(slice.at("args").contains("device_us"));
    EXPECT_FALSE(slice.at("args").contains("queue_us"));
  }
  EXPECT_EQ(EventsOf(trace, "X").size(), 4u);
  EXPECT_TRUE(EventsOf(trace, "s").empty());
}

TEST(ChromeTrace, HasTheCategoriesOfPyTorch) {
  ProfileBuilder builder(kTwoDevices);
  builder.Begin(ProfiledKind::kRange, "step", 0);
  builder.Operation("to", 10, 20, 0, 30, 40);
  builder.Operation("tanh", 50, 60, 1, 70, 80);
  builder.Add(ProfiledKind::kView, "view", 90, 100);
  builder.Add(ProfiledKind::kRead, "item", 110, 120);
  builder.Add(ProfiledKind::kWait, "synchronize", 130, 140);
  builder.Add(ProfiledKind::kQueueFull, "queue full", 150, 160);
  builder.End(200);
  const json trace = Validated(ToChromeTrace(builder.Build()));
  std::vector<std::string> categories;
  std::map<std::int64_t, int> correlated;
  for (const json& slice : EventsOf(trace, "X")) {
    categories.push_back(absl::StrCat(slice.at("name").get<std::string>(), " ",
                                      slice.at("cat").get<std::string>()));
    const json& args = slice.at("args");
    if (args.contains("correlation")) ++correlated[args.at("correlation")];
    EXPECT_EQ(args.contains("stream"), slice.at("pid") != 1);
  }
  EXPECT_THAT(
      categories,
      ElementsAre("step user_annotation", "to cpu_op", "Memcpy (to) gpu_memcpy",
                  "tanh cpu_op", "tanh kernel", "view cpu_op", "item cpu_op",
                  "synchronize cuda_runtime", "queue full cuda_runtime"));
  EXPECT_THAT(correlated, ElementsAre(std::pair(2, 2), std::pair(3, 2)));
}

TEST(ChromeTrace, SaysWhatBoundsAnOperation) {
  ProfileBuilder builder(kTwoDevices);
  builder.Operation("add", 10, 20, 0, 30, 40'000).cost = {1000, 200'000};
  builder.profile().devices[0].peaks = RoundPeaks();
  const json trace = Validated(ToChromeTrace(builder.Build()));
  const json args = SliceNamed(trace, "add", "cpu:0").at("args");
  EXPECT_EQ(args.at("flop"), 1000);
  EXPECT_EQ(args.at("bytes"), 200'000);
  EXPECT_EQ(args.at("bound"), "memory");
  EXPECT_DOUBLE_EQ(args.at("bound_us"), 1);
  EXPECT_THAT(trace.at("otherData").at("peaks").at(0), HasSubstr("GFLOP/s"));
}

TEST(ChromeTrace, MovesDeviceWorkThatClocksMakeOverlap) {
  ProfileBuilder builder(kTwoDevices);
  builder.Operation("early", 1000, 1100, 0, 990, 2000);  // before its request
  builder.Operation("late", 1200, 1300, 0, 1995, 2500);
  builder.Operation("lost", 1400, 1500, 0, 2100, 2400);
  const json trace = Validated(ToChromeTrace(builder.Build()));
  const auto slice = [&](const char* name) {
    const json found = SliceNamed(trace, name, "cpu:0");
    return std::make_pair(Nanos(found.at("ts")), Nanos(found.at("dur")));
  };
  EXPECT_EQ(slice("early"), std::make_pair(0L, 1000L));
  EXPECT_EQ(slice("late"), std::make_pair(1000L, 500L));
  EXPECT_EQ(slice("lost"), std::make_pair(1500L, 0L));
  // The times in the arguments are still the measured ones.
  EXPECT_EQ(SliceNamed(trace, "lost", "cpu:0").at("args").at("device_us"), 0.3);
}

TEST(ChromeTrace, IsValidForRandomProfiles) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    const Profile profile = RandomProfile(seed, 400);
    const json trace = Validated(ToChromeTrace(profile));
    std::size_t expected = profile.spans.size();
    for (const ProfiledSpan& span : profile.spans) {
      if (span.device_time == DeviceTime::kMeasured) ++expected;
    }
    EXPECT_EQ(EventsOf(trace, "X").size(), expected);
  }
}

TEST(ChromeTrace, IsValidForAnEmptyProfile) {
  const json nothing = Validated(ToChromeTrace(Profile()));
  EXPECT_TRUE(EventsOf(nothing, "X").empty());
  Validated(ToChromeTrace(ProfileBuilder(kTwoDevices).Build()));
}

TEST(ChromeTrace, KeepsAnyName) {
  ProfileBuilder builder(kTwoDevices);
  const std::string good =
      "say \"hi\" \\ </script> \x01\n\t \xc3\xa9 \xe8\xae\xa1";
  builder.Add(ProfiledKind::kRange, good, 0, 10);
  builder.Add(ProfiledKind::kRange, "bad \xff\xc3( \xed\xa0\x80", 20, 30);
  builder.profile().notes = {good};
  const json trace = Validated(ToChromeTrace(builder.Build()));
  const std::vector<json> slices = EventsOf(trace, "X");
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_EQ(slices[0].at("name"), good);
  const std::string lost = "\xef\xbf\xbd";
  EXPECT_EQ(slices[1].at("name"),
            "bad " + lost + lost + "( " + lost + lost + lost);
  EXPECT_EQ(trace.at("otherData").at("notes"), json({good}));
}

TEST(ChromeTrace, LeavesOutWhatDoesNotFitAndSaysSo) {
  for (const std::int64_t max_spans : {0, 1, 7, 150, 399}) {
    SCOPED_TRACE(max_spans);
    const Profile profile = RandomProfile(3, 800);
    ExportOptions options;
    options.max_spans = max_spans;
    const json trace = Validated(ToChromeTrace(profile, options));
    std::int64_t kept = 0;
    for (const json& slice : EventsOf(trace, "X")) {
      kept += slice.at("pid") == 1 ? 1 : 0;
    }
    EXPECT_EQ(kept, max_spans);
    const SpansThatFit fit = FitSpans(profile, options);
    EXPECT_EQ(trace.at("otherData").at("cut"), fit.cut);
    EXPECT_EQ(trace.at("otherData").at("notes").back(), fit.note);
    std::vector<std::int64_t> cut_at;
    for (const json& instant : EventsOf(trace, "i")) {
      EXPECT_THAT(instant.at("name"), HasSubstr(fit.note));
      cut_at.push_back(Nanos(instant.at("ts")) + profile.begin);
    }
    EXPECT_EQ(cut_at, fit.cut_at);
  }
}

TEST(ChromeTrace, SaysNothingOfACutWhereThereIsNone) {
  const Profile profile = RandomProfile(3, 100);
  ExportOptions options;
  options.max_spans = static_cast<std::int64_t>(profile.spans.size());
  const json trace = Validated(ToChromeTrace(profile, options));
  EXPECT_EQ(trace.at("otherData").at("cut"), 0);
  EXPECT_TRUE(trace.at("otherData").at("notes").empty());
  EXPECT_TRUE(EventsOf(trace, "i").empty());
}

// A parent that lasts to the end stays around the children that are left.
TEST(ChromeTrace, KeepsAParentWhoseChildrenAreCut) {
  ProfileBuilder builder(kTwoDevices);
  builder.Begin(ProfiledKind::kRange, "step", 0);
  builder.Operation("add", 0, 10, 0, 20, 30);
  builder.Operation("add", 15, 20, 0, 30, 40);
  builder.End(100);
  ExportOptions options;
  options.max_spans = 1;
  const json trace = Validated(ToChromeTrace(builder.Build(), options));
  const std::vector<json> slices = EventsOf(trace, "X");
  ASSERT_EQ(slices.size(), 1u);
  EXPECT_EQ(slices[0].at("name"), "step");
  EXPECT_EQ(Nanos(slices[0].at("dur")), 100);
}

TEST(ChromeTrace, KeepsParentsThatBeginWithTheirChildren) {
  constexpr int kDepth = 60;
  ProfileBuilder builder(kTwoDevices);
  for (int i = 0; i < kDepth; ++i) {
    builder.Begin(ProfiledKind::kRange, absl::StrCat("range ", i), 0);
  }
  for (int i = 0; i < kDepth; ++i) builder.End(100 + i);
  for (int max_spans = 0; max_spans <= kDepth; ++max_spans) {
    ExportOptions options;
    options.max_spans = max_spans;
    const json trace = Validated(ToChromeTrace(builder.Build(), options));
    const std::vector<json> slices = EventsOf(trace, "X");
    ASSERT_EQ(static_cast<int>(slices.size()), max_spans);
    for (int i = 0; i < max_spans; ++i) {
      EXPECT_EQ(slices[i].at("name"), absl::StrCat("range ", i));
    }
  }
}

TEST(ChromeTrace, HoldsAMillionSpansInTwentyMegabytes) {
  constexpr int kSpans = 1 << 20;
  ProfileBuilder builder(kTwoDevices);
  for (int i = 0; i < kSpans; ++i) {
    const std::int64_t now = 3'000'000'000L + 1000L * i;
    ProfiledSpan& span =
        builder.Operation("elementwise add", now, now + 300, i % 2,
                          now + 5'000'000, now + 5'000'700);
    span.inputs.resize(2, {Shape{1024, 1024}, DType::kFloat32});
    span.requested_at = SourceLocation("chapters/profiling/lesson.cc", 40);
    span.requested_by = SourceLocation("chapters/profiling/lesson.cc", 140);
    span.allocated_bytes = 4 << 20;
  }
  const Profile profile = builder.Build();
  const std::string text = ToChromeTrace(profile);
  EXPECT_LT(text.size(), 20'000'000u);
  EXPECT_GT(text.size(), 6'000'000u);
  ExportOptions options;
  options.max_spans = 2000;
  const json trace = Validated(ToChromeTrace(profile, options));
  EXPECT_EQ(EventsOf(trace, "X").size(), 4000u);
  EXPECT_EQ(trace.at("otherData").at("cut"), kSpans - 2000);
}

TEST(ChromeTrace, CountsMemoryAndKeepsItsPeaks) {
  ProfileBuilder builder(kTwoDevices);
  builder.Add(ProfiledKind::kRange, "everything", 0, 1'000'000);
  Profile& profile = builder.profile();
  profile.devices[1].description = "cpu:1 (virtual, 1 core)";
  std::mt19937 random(1);
  std::int64_t most_in_use = 0;
  std::int64_t most_in_flight = 0;
  std::int64_t most_of_both = 0;
  std::int64_t last = 0;
  for (int i = 0; i < 50'000; ++i) {
    MemoryPoint point;
    point.time = 10 * i;
    point.device = 1;
    point.pinned = i % 5 == 0;
    point.allocated = random() % 1000;
    point.in_flight = random() % 1000;
    profile.memory.push_back(point);
    if (point.pinned) continue;
    most_in_use = std::max(most_in_use, point.allocated);
    most_in_flight = std::max(most_in_flight, point.in_flight);
    most_of_both = std::max(most_of_both, point.allocated + point.in_flight);
    last = point.allocated;
  }
  ExportOptions options;
  options.max_memory_points = 100;
  const json trace = Validated(ToChromeTrace(profile, options));
  std::map<std::string, std::vector<json>> curves;
  for (const json& event : EventsOf(trace, "C")) {
    curves[event.at("name")].push_back(event);
  }
  ASSERT_EQ(curves.size(), 2u);
  EXPECT_LE(curves.at("pinned memory of cpu:1").size(), 100u);
  const std::vector<json>& curve = curves.at("memory of cpu:1");
  EXPECT_LE(curve.size(), 100u);
  EXPECT_GE(curve.size(), 50u);
  std::int64_t allocated = 0;
  std::int64_t in_flight = 0;
  std::int64_t both = 0;
  for (std::size_t i = 0; i < curve.size(); ++i) {
    const std::int64_t used = curve[i].at("args").at("bytes in use");
    const std::int64_t flying = curve[i].at("args").at("bytes in flight");
    allocated = std::max(allocated, used);
    in_flight = std::max(in_flight, flying);
    both = std::max(both, used + flying);
    if (i > 0) {
      EXPECT_GT(curve[i].at("ts"), curve[i - 1].at("ts"));
    }
  }
  EXPECT_EQ(allocated, most_in_use);
  EXPECT_EQ(in_flight, most_in_flight);
  EXPECT_EQ(both, most_of_both);
  EXPECT_EQ(curve.back().at("args").at("bytes in use"), last);
  EXPECT_THAT(trace.at("otherData").at("devices"),
              ElementsAre("cpu:0", "cpu:1 (virtual, 1 core)"));
}

TEST(FitSpans, KeepsTheFirstCallsOfEachRange) {
  ProfileBuilder builder(kTwoDevices);
  std::int64_t now = 0;
  for (const int calls : {100, 3, 100}) {
    builder.Begin(ProfiledKind::kRange, absl::StrCat(calls), now);
    for (int i = 0; i < calls; ++i, now += 10) {
      builder.Operation(absl::StrCat("op", i), now, now + 5, 0, now + 5,
                        now + 10);
    }
    builder.End(now);
  }
  const Profile profile = builder.Build();
  ExportOptions options;
  options.max_spans = 26;  // three ranges, 10 + 3 + 10 calls
  const SpansThatFit fit = FitSpans(profile, options);
  EXPECT_EQ(fit.cut, 206 - 26);
  EXPECT_THAT(fit.cut_at, ::testing::ElementsAre(100, 1130));
  for (std::size_t i = 0; i < profile.spans.size(); ++i) {
    const ProfiledSpan& span = profile.spans[i];
    const bool late =
        span.kind == ProfiledKind::kOperation && span.name.size() > 3;
    EXPECT_EQ(fit.kept[i], !late) << span.name;
  }
  // Nothing of ranges that are left out is kept.
  options.max_spans = 2;
  EXPECT_THAT(FitSpans(profile, options).cut_at,
              ::testing::ElementsAre(0, 1000, 1030));
}

// Each of many ranges is within the one before it, as in a recursion.
TEST(FitSpans, TakesNoLongerForRangesWithinRanges) {
  constexpr int kRanges = 200'000;
  ProfileBuilder builder(kTwoDevices);
  for (int i = 0; i < kRanges; ++i) {
    builder.Begin(ProfiledKind::kRange, absl::StrCat("level ", i), i);
  }
  builder.Operation("add", kRanges, kRanges + 1, 0, kRanges + 1, kRanges + 2);
  for (int i = 0; i < kRanges; ++i) builder.End(kRanges + 2 + i);
  const Profile profile = builder.Build();
  ExportOptions options;
  options.max_spans = 10;
  const SpansThatFit fit = FitSpans(profile, options);
  EXPECT_EQ(fit.cut, kRanges + 1 - 10);
  EXPECT_THAT(fit.cut_at, ElementsAre(10));
  EXPECT_THAT(ToChromeTrace(profile, options), HasSubstr("level 9"));
  const KeyAverages averages(profile);
  EXPECT_EQ(averages.Find("level 0")->calls, 1);
}

TEST(WriteChromeTrace, WritesTheFileOrLeavesTheOldOne) {
  const std::filesystem::path directory =
      std::filesystem::path(::testing::TempDir()) / "chrome_trace_test";
  std::filesystem::create_directories(directory);
  const std::string path = (directory / "trace.json").string();
  const Profile profile = RandomProfile(5, 50);
  ASSERT_TRUE(WriteChromeTrace(profile, path).ok());
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(), ToChromeTrace(profile));

  const absl::Status status =
      WriteChromeTrace(profile, (directory / "none" / "trace.json").string());
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("none/trace.json"));
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace d2l
