#include "common/profiler/key_averages.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/console/text.h"
#include "common/device/device.h"
#include "common/profiler/profile.h"
#include "common/profiler/profile_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr Device kCpu0(DeviceType::kCpu, 0);
constexpr Device kCpu1(DeviceType::kCpu, 1);
constexpr Device kCuda0(DeviceType::kCuda, 0);

// A range with two products and a view, then a read.
ProfileBuilder Small(Device a, Device b) {
  ProfileBuilder builder({a, b});
  builder.Begin(ProfiledKind::kRange, "forward", 1'000'000);
  builder.Operation("matmul", 1'010'000, 1'030'000, 0, 1'035'000, 3'035'000);
  builder.Operation("matmul", 1'040'000, 1'050'000, 1, 1'060'000, 1'560'000);
  builder.Add(ProfiledKind::kView, "reshape", 1'060'000, 1'062'500);
  builder.End(1'100'000);
  builder.Add(ProfiledKind::kRead, "item", 1'100'000, 2'000'000);
  return builder;
}

// The cell of a row in a column, without spaces. Empty if there is none.
std::string Cell(const std::string& table, absl::string_view row,
                 absl::string_view column) {
  const std::vector<std::string> lines = absl::StrSplit(table, '\n');
  const std::string& rule = lines[0];
  for (std::size_t begin = 0; begin < rule.size();) {
    std::size_t end = rule.find(' ', begin);
    if (end == std::string::npos) end = rule.size();
    const auto cell = [&](const std::string& line) {
      if (line.size() <= begin) return std::string();
      return std::string(
          absl::StripAsciiWhitespace(line.substr(begin, end - begin)));
    };
    if (cell(lines[1]) == column) {
      for (std::size_t i = 3; i < lines.size() && lines[i] != rule; ++i) {
        const std::string name(
            absl::StripAsciiWhitespace(lines[i].substr(0, rule.find(' '))));
        if (name == row) return cell(lines[i]);
      }
    }
    begin = end + 2;
  }
  return "";
}

// The names in a table, from the top.
std::vector<std::string> Names(const std::string& table) {
  const std::vector<std::string> lines = absl::StrSplit(table, '\n');
  std::vector<std::string> names;
  for (std::size_t i = 3; lines[i] != lines[0]; ++i) {
    names.emplace_back(
        absl::StripAsciiWhitespace(lines[i].substr(0, lines[0].find(' '))));
  }
  return names;
}

// ---- figures, beside an oracle

struct Expected {
  std::int64_t calls = 0;
  std::int64_t self_host_nanos = 0;
  std::int64_t host_nanos = 0;
  std::int64_t self_device_nanos = 0;
  std::int64_t device_nanos = 0;
  std::int64_t measured_within = 0;
  std::int64_t missing_within = 0;
  std::int64_t known_calls = 0;
};

std::string Key(const ProfiledSpan& span) {
  std::string key =
      (span.kind == ProfiledKind::kRange ? "range|" : "call|") + span.name;
  return key;
}

// Visits every nanosecond of every thread: it is the innermost call's own, and
// counts once in the total of every row on the stack.
std::map<std::string, Expected> Oracle(const Profile& profile) {
  std::map<std::string, Expected> rows;
  const std::vector<ProfiledSpan>& spans = profile.spans;
  for (std::size_t thread = 0; thread < profile.threads.size(); ++thread) {
    for (std::int64_t now = profile.begin; now < profile.end; ++now) {
      const ProfiledSpan* innermost = nullptr;
      std::set<std::string> on_stack;
      for (const ProfiledSpan& span : spans) {
        if (span.thread != static_cast<int>(thread)) continue;
        if (span.host_begin > now || now >= span.host_end) continue;
        innermost = &span;
        on_stack.insert(Key(span));
      }
      if (innermost == nullptr) continue;
      ++rows[Key(*innermost)].self_host_nanos;
      for (const std::string& key : on_stack) ++rows[key].host_nanos;
    }
  }
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const ProfiledSpan& span = spans[i];
    Expected& expected = rows[Key(span)];
    ++expected.calls;
    bool measured = false;
    bool missing = false;
    for (std::size_t j = i; j < spans.size(); ++j) {
      int around = static_cast<int>(j);
      while (around > static_cast<int>(i)) around = spans[around].parent;
      if (around != static_cast<int>(i)) continue;
      const DeviceTime time = spans[j].device_time;
      measured = measured || time == DeviceTime::kMeasured;
      missing = missing || time == DeviceTime::kNotRun ||
                time == DeviceTime::kUnmeasured;
    }
    if (measured || !missing) ++expected.known_calls;
    expected.self_device_nanos += span.device_end - span.device_begin;
    std::set<std::string> around = {Key(span)};
    for (int j = span.parent; j >= 0; j = spans[j].parent) {
      around.insert(Key(spans[j]));
    }
    for (const std::string& key : around) {
      Expected& row = rows[key];
      row.device_nanos += span.device_end - span.device_begin;
      if (span.device_time == DeviceTime::kMeasured) ++row.measured_within;
      if (span.device_time == DeviceTime::kNotRun ||
          span.device_time == DeviceTime::kUnmeasured) {
        ++row.missing_within;
      }
    }
  }
  return rows;
}

void ExpectRows(const Profile& profile, const std::vector<KeyAverage>& rows) {
  const std::map<std::string, Expected> expected = Oracle(profile);
  ASSERT_EQ(rows.size(), expected.size());
  // Rows are in the order of their first calls.
  std::vector<std::string> keys;
  for (const ProfiledSpan& span : profile.spans) {
    const std::string key = Key(span);
    if (!testing::Value(keys, testing::Contains(key))) keys.push_back(key);
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    SCOPED_TRACE(keys[i]);
    const KeyAverage& row = rows[i];
    const Expected& other = expected.at(keys[i]);
    EXPECT_TRUE(absl::StrContains(keys[i], row.name));
    EXPECT_EQ(row.calls, other.calls);
    EXPECT_EQ(row.self_host_nanos, other.self_host_nanos);
    EXPECT_EQ(row.host_nanos, other.host_nanos);
    EXPECT_EQ(row.self_device_nanos, other.self_device_nanos);
    EXPECT_EQ(row.device_nanos, other.device_nanos);
    EXPECT_EQ(row.measured_within, other.measured_within);
    EXPECT_EQ(row.missing_within, other.missing_within);
    EXPECT_EQ(row.known_calls, other.known_calls);
  }
}

TEST(KeyAveragesTest, AgreeWithLookingAtEveryNanosecond) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    const Profile profile = RandomProfile(seed, 60);
    ExpectRows(profile, KeyAverages(profile).rows());
  }
}

TEST(KeyAveragesTest, SelfTimesAddUpToTheWhole) {
  for (unsigned seed = 100; seed < 140; ++seed) {
    SCOPED_TRACE(seed);
    Profile profile = RandomProfile(seed, 400);
    profile.devices[0].peaks = profile.devices[1].peaks = RoundPeaks();
    std::int64_t top_level = 0;
    std::int64_t device = 0;
    KeyAverage costs;
    for (ProfiledSpan& span : profile.spans) {
      if (span.parent < 0) top_level += span.host_end - span.host_begin;
      device += span.device_end - span.device_begin;
      if (span.kind != ProfiledKind::kOperation) continue;
      const auto cost = static_cast<std::int64_t>(span.number);
      span.cost = {cost * 1000, cost * 70, cost * 30, cost * 400};
      if (span.device_time != DeviceTime::kMeasured) continue;
      costs.cost += span.cost;
      costs.bound_nanos += 1e9 * BoundOf(profile, span).seconds;
      ++costs.bounds[static_cast<int>(BoundOf(profile, span).kind)];
    }
    const KeyAverages averages(profile);
    std::int64_t self_host = 0;
    std::int64_t self_device = 0;
    std::int64_t calls = 0;
    KeyAverage rows;
    for (const KeyAverage& row : averages.rows()) {
      self_host += row.self_host_nanos;
      self_device += row.self_device_nanos;
      calls += row.calls;
      rows.cost += row.cost;
      rows.bound_nanos += row.bound_nanos;
      for (std::size_t i = 0; i < rows.bounds.size(); ++i) {
        rows.bounds[i] += row.bounds[i];
      }
      EXPECT_GE(row.self_host_nanos, 0);
      EXPECT_LE(row.self_host_nanos, row.host_nanos);
      EXPECT_LE(row.host_nanos, top_level);
      EXPECT_LE(row.device_nanos, device);
    }
    EXPECT_EQ(self_host, top_level);
    EXPECT_EQ(self_device, device);
    EXPECT_EQ(calls, static_cast<std::int64_t>(profile.spans.size()));
    const KeyAverage& total = averages.total();
    EXPECT_EQ(total.self_host_nanos, top_level);
    EXPECT_EQ(total.host_nanos, top_level);
    EXPECT_EQ(total.self_device_nanos, device);
    EXPECT_EQ(total.device_nanos, device);
    EXPECT_EQ(total.measured_calls, total.measured_within);
    EXPECT_EQ(total.not_run_calls + total.unmeasured_calls,
              total.missing_within);
    for (const KeyAverage& sums : {rows, total}) {
      EXPECT_EQ(sums.cost.flop, costs.cost.flop);
      EXPECT_EQ(sums.cost.bytes, costs.cost.bytes);
      EXPECT_EQ(sums.cost.written, costs.cost.written);
      EXPECT_EQ(sums.cost.least_flop(), costs.cost.least_flop());
      EXPECT_NEAR(sums.bound_nanos, costs.bound_nanos,
                  1e-9 * costs.bound_nanos);
      EXPECT_EQ(sums.bounds, costs.bounds);
    }
  }
}

TEST(KeyAveragesTest, FindGivesTheFirstRowOfAName) {
  ProfileBuilder builder({kCpu0});
  builder.Begin(ProfiledKind::kRange, "matmul", 0);
  builder.Operation("matmul", 10, 20, 0, 30, 40);
  builder.Operation("matmul", 20, 35, 0, 40, 60);
  builder.End(100);
  const KeyAverages averages(builder.Build());
  EXPECT_EQ(averages.Find("matrix"), nullptr);
  // The range and the operation have separate rows, and neither is counted in
  // the other's self time.
  ASSERT_EQ(averages.rows().size(), 2u);
  EXPECT_EQ(averages.Find("matmul"), &averages.rows()[0]);
  EXPECT_EQ(averages.rows()[0].calls, 1);
  EXPECT_EQ(averages.rows()[0].self_host_nanos, 75);
  EXPECT_EQ(averages.rows()[0].self_device_nanos, 0);
  EXPECT_EQ(averages.rows()[0].device_nanos, 30);
  EXPECT_EQ(averages.rows()[1].calls, 2);
  EXPECT_EQ(averages.rows()[1].host_nanos, 25);
}

TEST(KeyAveragesTest, RecursionIsNotCountedTwice) {
  ProfileBuilder builder({kCpu0});
  builder.Begin(ProfiledKind::kRange, "f", 0);
  builder.Begin(ProfiledKind::kRange, "g", 10);
  builder.Begin(ProfiledKind::kRange, "f", 20);
  builder.Operation("add", 30, 40, 0, 50, 250);
  builder.End(60);
  builder.End(70);
  builder.End(100);
  const KeyAverages averages(builder.Build());
  const KeyAverage& f = *averages.Find("f");
  EXPECT_EQ(f.calls, 2);
  EXPECT_EQ(f.host_nanos, 100);
  EXPECT_EQ(f.self_host_nanos, 40 + 30);
  EXPECT_EQ(f.device_nanos, 200);
  EXPECT_EQ(f.measured_within, 1);
  EXPECT_EQ(Cell(averages.Table(), "f", "CPU total %"), "100.00%");
  EXPECT_EQ(Cell(averages.Table(), "f", "CPU time avg"), "0.050us");
}

TEST(KeyAveragesTest, RefusesAParentAfterItsChild) {
  ProfileBuilder builder({kCpu0});
  builder.Add(ProfiledKind::kRange, "a", 0, 10).parent = 1;
  builder.Add(ProfiledKind::kRange, "b", 0, 10);
  EXPECT_THROW(KeyAverages{builder.Build()}, std::invalid_argument);
}

// ---- the table's text

TEST(KeyAveragesTableTest, Golden) {
  const KeyAverages averages(Small(kCpu0, kCpu1).Build());
  // Times 1 ms in all: the range 100 us, of which 32.5 us are its calls', and
  // the read 900 us. 2.5 ms on the devices.
  EXPECT_EQ(
      averages.Table(),
      R"(-----------  ------------  ------------  ------------  ------------  ------------  ------------  -------------  ------------  ---------------  ------------
       Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg   Self Device  Self Device %  Device total  Device time avg    # of Calls
-----------  ------------  ------------  ------------  ------------  ------------  ------------  -------------  ------------  ---------------  ------------
    forward         6.75%      67.500us        10.00%     100.000us     100.000us             -              -       2.500ms          2.500ms             1
     matmul         3.00%      30.000us         3.00%      30.000us      15.000us       2.500ms        100.00%       2.500ms          1.250ms             2
    reshape         0.25%       2.500us         0.25%       2.500us       2.500us             -              -             -                -             1
       item        90.00%     900.000us        90.00%     900.000us     900.000us             -              -             -                -             1
-----------  ------------  ------------  ------------  ------------  ------------  ------------  -------------  ------------  ---------------  ------------
Self CPU time total: 1.000ms
Self Device time total: 2.500ms
CPU is the front end, which enqueues; Device is the work on cpu:0, cpu:1.
-: launches nothing on a device (a view, a read, a wait, a range itself).
)");
}

TEST(KeyAveragesTableTest, GoldenOfAGpu) {
  const KeyAverages averages(Small(kCuda0, kCuda0).Build());
  TableOptions options;
  options.sort_by = SortBy::kSelfDeviceTime;
  options.row_limit = 3;
  EXPECT_EQ(
      averages.Table(options),
      R"(-----------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  -------------  ------------
       Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg     Self CUDA   Self CUDA %    CUDA total  CUDA time avg    # of Calls
-----------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  -------------  ------------
     matmul         3.00%      30.000us         3.00%      30.000us      15.000us       2.500ms       100.00%       2.500ms        1.250ms             2
    forward         6.75%      67.500us        10.00%     100.000us     100.000us             -             -       2.500ms        2.500ms             1
    reshape         0.25%       2.500us         0.25%       2.500us       2.500us             -             -             -              -             1
(1 row more; row_limit is 3)
-----------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  -------------  ------------
Self CPU time total: 1.000ms
Self CUDA time total: 2.500ms
-: launches nothing on a device (a view, a read, a wait, a range itself).
)");
}

TEST(KeyAveragesTableTest, TheDeviceIsCudaOnlyIfAllAre) {
  EXPECT_THAT(KeyAverages(Small(kCuda0, kCuda0).Build()).Table(),
              HasSubstr("Self CUDA time total"));
  for (const Device other : {kCpu1, kCuda0}) {
    EXPECT_THAT(KeyAverages(Small(kCpu0, other).Build()).Table(),
                HasSubstr("Self Device time total"));
  }
  EXPECT_THAT(KeyAverages(Small(kCpu0, kCuda0).Build()).Table(),
              HasSubstr("Device is the work on cpu:0, cuda:0."));
}

TEST(KeyAveragesTableTest, WhatIsNotMeasuredIsNeverZero) {
  ProfileBuilder builder({kCpu0});
  builder.Begin(ProfiledKind::kRange, "all", 0);
  builder.Begin(ProfiledKind::kRange, "none known", 0);
  builder.Operation("relu", 10'000, 20'000, 0, DeviceTime::kUnmeasured);
  builder.End(30'000);
  for (int i = 0; i < 10; ++i) {
    const std::int64_t begin = 30'000 + 1'000 * i;
    if (i < 7) {
      builder.Operation("mm", begin, begin + 500, 0, 100'000 * i,
                        100'000 * i + 4'000);
    } else {
      builder.Operation("mm", begin, begin + 500, 0,
                        i < 9 ? DeviceTime::kNotRun : DeviceTime::kUnmeasured);
    }
  }
  builder.End(50'000);
  builder.Add(ProfiledKind::kWait, "synchronize", 50'000, 60'000);
  builder.profile().notes = {"GPU times were refused."};
  const KeyAverages averages(builder.Build());
  const std::string table = averages.Table();

  for (const char* const column :
       {"Self Device", "Self Device %", "Device total", "Device time avg"}) {
    EXPECT_EQ(Cell(table, "relu", column), "n/a");
    EXPECT_EQ(Cell(table, "synchronize", column), "-");
  }
  EXPECT_EQ(Cell(table, "mm", "Self Device"), "28.000us*");
  EXPECT_EQ(Cell(table, "mm", "Self Device %"), "100.00%*");
  EXPECT_EQ(Cell(table, "mm", "Device total"), "28.000us*");
  // Of the seven calls that have a device time.
  EXPECT_EQ(Cell(table, "mm", "Device time avg"), "4.000us*");
  EXPECT_EQ(Cell(table, "all", "Self Device"), "-");
  EXPECT_EQ(Cell(table, "all", "Device total"), "28.000us*");
  EXPECT_EQ(Cell(table, "none known", "Self Device"), "-");
  EXPECT_EQ(Cell(table, "none known", "Device total"), "n/a");
  EXPECT_EQ(Cell(table, "none known", "Device time avg"), "n/a");
  const std::size_t footer = table.find("Self CPU time total");
  EXPECT_EQ(table.substr(footer),
            R"(Self CPU time total: 60.000us
Self Device time total: 28.000us* (no device time for 4 of 11 operations)
CPU is the front end, which enqueues; Device is the work on cpu:0.
-: launches nothing on a device (a view, a read, a wait, a range itself).
n/a: no device time is known.
*: of the device times that are known; some are not.
relu: no device time for 1 of 1 calls (1 was not timed).
mm: no device time for 3 of 10 calls (2 failed or came after a failure, 1 was
  not timed).
GPU times were refused.
)");
  EXPECT_THAT(table, Not(HasSubstr(" 0.000us")));
  // Below the row limit, footnotes are only for the rows that are shown.
  EXPECT_THAT(averages.Table({SortBy::kNone, 3}), Not(HasSubstr("mm:")));
}

TEST(KeyAveragesTableTest, OneOfSomething) {
  ProfileBuilder builder({kCpu0});
  builder.Operation("add", 0, 10, 0, 20, 30);
  builder.Operation("add", 10, 20, 0, DeviceTime::kNotRun);
  const std::string table = KeyAverages(builder.Build()).Table();
  EXPECT_THAT(table, HasSubstr("Self Device time total: 0.010us* (no device "
                               "time for 1 of 2 operations)\n"));
  EXPECT_THAT(table, HasSubstr("\nadd: no device time for 1 of 2 calls (1 "
                               "failed or came after a failure).\n"));
}

TEST(KeyAveragesTableTest, WithoutAnyDeviceTime) {
  ProfileBuilder builder({kCpu0});
  for (int i = 0; i < 12; ++i) {
    builder.Operation(absl::StrCat("op", i), 10 * i, 10 * i + 5, 0,
                      DeviceTime::kUnmeasured);
  }
  const std::string table = KeyAverages(builder.Build()).Table();
  EXPECT_EQ(Cell(table, "op3", "Self Device"), "n/a");
  EXPECT_THAT(table, HasSubstr("Self Device time total: n/a\n"));
  EXPECT_THAT(table, HasSubstr("op9: no device time for 1 of 1 calls"));
  EXPECT_THAT(table, Not(HasSubstr("op10: no device")));
  EXPECT_THAT(table, HasSubstr("The same holds for calls of more rows: 2.\n"));
}

TEST(KeyAveragesTableTest, WithoutOperationsThereAreNoDeviceColumns) {
  ProfileBuilder builder({kCpu0});
  builder.Begin(ProfiledKind::kRange, "load", 0);
  builder.Add(ProfiledKind::kView, "reshape", 10, 20);
  builder.End(3'000'000'000);
  const std::string table = KeyAverages(builder.Build()).Table();
  EXPECT_THAT(table, Not(HasSubstr("Device")));
  EXPECT_EQ(Cell(table, "load", "CPU total"), "3.000s");
  EXPECT_EQ(Cell(table, "load", "# of Calls"), "1");
}

TEST(KeyAveragesTableTest, AnEmptyProfileSaysSo) {
  Profile profile;
  EXPECT_EQ(KeyAverages(profile).Table(), "Nothing was recorded.\n");
  EXPECT_TRUE(KeyAverages(profile).rows().empty());
  profile.notes = {"The first note.", "The second."};
  EXPECT_EQ(KeyAverages(profile).Table(),
            "Nothing was recorded.\nThe first note.\nThe second.\n");
}

TEST(KeyAveragesTableTest, SharesOfNoTimeAreNotKnown) {
  ProfileBuilder builder({kCpu0});
  builder.Operation("add", 10, 10, 0, 20, 20);
  const std::string table = KeyAverages(builder.Build()).Table();
  EXPECT_EQ(Cell(table, "add", "Self CPU %"), "n/a");
  EXPECT_EQ(Cell(table, "add", "CPU total %"), "n/a");
  EXPECT_EQ(Cell(table, "add", "Self Device %"), "n/a");
  // This was measured, and is 0.
  EXPECT_EQ(Cell(table, "add", "Self Device"), "0.000us");
}

TEST(KeyAveragesTableTest, SeveralThreads) {
  ProfileBuilder builder({kCpu0});
  builder.Operation("add", 0, 1000, 0, 2000, 3000);
  builder.Thread("front end 2");
  builder.Operation("add", 500, 1500, 0, 3000, 4000);
  const std::string table = KeyAverages(builder.Build()).Table();
  EXPECT_EQ(Cell(table, "add", "CPU total"), "2.000us");
  EXPECT_EQ(Cell(table, "add", "CPU total %"), "100.00%");
  EXPECT_THAT(table, HasSubstr("the front end, whose threads enqueue;"));
}

TEST(KeyAveragesTableTest, SortsByOwnTimes) {
  ProfileBuilder builder({kCpu0});
  // A range: all of the time, nothing of its own.
  builder.Begin(ProfiledKind::kRange, "range", 0);
  // Many short calls.
  for (int i = 0; i < 5; ++i) {
    builder.Operation("many", 100 * i, 100 * i + 100, 0, 1000 + 100 * i,
                      1040 + 100 * i);
  }
  builder.Operation("long", 500, 700, 0, 2000, 2100);
  builder.Operation("device", 700, 750, 0, 3000, 3150);
  builder.Operation("lost", 750, 1000, 0, DeviceTime::kNotRun);
  builder.End(1000);
  builder.Add(ProfiledKind::kView, "view", 1000, 1010);
  const KeyAverages averages(builder.Build());
  const auto names = [&averages](SortBy sort_by) {
    return Names(averages.Table({sort_by}));
  };
  EXPECT_THAT(names(SortBy::kNone),
              ElementsAre("range", "many", "long", "device", "lost", "view"));
  EXPECT_THAT(names(SortBy::kSelfCpuTime),
              ElementsAre("many", "lost", "long", "device", "view", "range"));
  // Rows that are not known are last, behind those that launch nothing.
  EXPECT_THAT(names(SortBy::kSelfDeviceTime),
              ElementsAre("many", "device", "long", "range", "view", "lost"));
}

TEST(KeyAveragesTableTest, TheRowLimitSaysWhatItLeavesOut) {
  const KeyAverages averages(Small(kCpu0, kCpu1).Build());
  const auto table = [&averages](int row_limit) {
    return averages.Table({SortBy::kNone, row_limit});
  };
  EXPECT_THAT(Names(table(3)),
              ElementsAre("forward", "matmul", "reshape", "(1 row more"));
  EXPECT_THAT(table(3), HasSubstr("\n(1 row more; row_limit is 3)\n"));
  EXPECT_THAT(table(0), HasSubstr("\n(4 rows more; row_limit is 0)\n"));
  EXPECT_EQ(table(4), table(100));
  EXPECT_EQ(table(-1), table(100));
  EXPECT_THAT(table(4), Not(HasSubstr("row_limit")));
}

TEST(KeyAveragesTableTest, LongAndStrangeNames) {
  ProfileBuilder builder({kCpu0});
  const std::string longest(55, 'x');
  builder.Add(ProfiledKind::kRange, longest, 0, 10);
  builder.Add(ProfiledKind::kRange, longest + "y", 10, 20);
  builder.Add(ProfiledKind::kRange, "say \"hi\"\nto\x1b[31m", 20, 30);
  builder.Add(ProfiledKind::kRange, "", 30, 40);
  builder.Add(ProfiledKind::kRange, "前向 pass", 40, 50);
  const std::string table = KeyAverages(builder.Build()).Table();
  const std::vector<std::string> lines = absl::StrSplit(table, '\n');
  const std::string names[] = {longest, std::string(52, 'x') + "...",
                               "say \"hi\"\\nto\\x1b[31m", "", "前向 pass"};
  for (int i = 0; i < 5; ++i) {
    const std::string line(absl::StripLeadingAsciiWhitespace(lines[3 + i]));
    EXPECT_THAT(line, testing::StartsWith(names[i]));
    EXPECT_THAT(line.substr(names[i].size()),
                testing::StartsWith(names[i].empty() ? "20.00%" : "  "));
  }
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(TextColumns(lines[i]), lines[0].size()) << lines[i];
  }
}

TEST(KeyAveragesTableTest, TheNamesColumnIsAsWideAsTheNames) {
  ProfileBuilder builder({kCpu0});
  builder.Add(ProfiledKind::kRange, "前向前向前", 0, 10);
  EXPECT_THAT(KeyAverages(builder.Build()).Table(),
              testing::StartsWith("--------------  ------------"));
}

// ---- bounds

TEST(BoundTable, HoldsTimesAgainstBounds) {
  ProfileBuilder builder({kCpu0, kCpu1});
  for (int i = 0; i < 10; ++i) {
    // 20 ms each of arithmetic, 1.2 ms of memory.
    builder.Operation("matmul", 0, 1, 0, 0, 25'000'000).cost = {2'000'000'000,
                                                                12'000'000};
  }
  // 12 ms of memory.
  builder.Operation("add", 2, 3, 0, 0, 16'000'000).cost = {10'000'000,
                                                           120'000'000};
  // Within the cache: 3 us.
  builder.Operation("a name that is too long", 4, 5, 0, 0, 4'000).cost = {
      0, 600'000};
  builder.Operation("relu", 6, 7, 0, 0, 500).cost = {64, 512};
  builder.Operation("other", 8, 9, 1, 0, 500).cost = {64, 512};
  builder.Operation("failed", 10, 11, 0, DeviceTime::kNotRun).cost = {64, 512};
  builder.Add(ProfiledKind::kView, "view", 12, 13);
  builder.profile().devices[0].peaks = RoundPeaks();
  EXPECT_EQ("\n" + KeyAverages(builder.Build()).BoundTable(), R"(
operation        calls     total     each  GFLOP/s    GB/s  of bound
matmul              10    250 ms  25.0 ms     80.0       -      80 %  arithmetic
add                  1   16.0 ms  16.0 ms    0.625    7.50      75 %  memory
a name that i...     1   4.00 us  4.00 us        -     150      75 %  memory
relu                 1    500 ns   500 ns        -       -       1 %  enqueueing
other                1    500 ns   500 ns    0.128    1.02         -
cpu:0: 100 GFLOP/s; GB/s: L2 200, memory 10.0; 100 ns to enqueue.
cpu:1: its peaks were not measured.
)");
}

TEST(BoundOf, IsTheLongerOfArithmeticAndMemory) {
  const auto expect = [](const OpCost& cost, double seconds, BoundKind kind) {
    const Bound bound = BoundOf(cost, RoundPeaks());
    EXPECT_DOUBLE_EQ(bound.seconds, seconds) << cost.flop << " " << cost.bytes;
    EXPECT_EQ(bound.kind, kind) << cost.flop << " " << cost.bytes;
  };
  expect({0, 0}, 0, BoundKind::kNone);
  expect({1'000'000, 1'000'000}, 1e-5, BoundKind::kArithmetic);
  expect({1'000'000, 100'000, 0, 600'000}, 4e-6, BoundKind::kArithmetic);
  expect({900'000, 2'000'000}, 2e-4, BoundKind::kMemory);
  expect({0, 1'000'000}, 5e-6, BoundKind::kMemory);  // just fits
  expect({0, 1'000'001}, 1.000001e-4, BoundKind::kMemory);
  // Reading and writing 0.5 MB each is a copy, of which the rest is none.
  expect({0, 1'000'000, 500'000}, 1e-5, BoundKind::kMemory);
  expect({0, 1'000'000, 900'000}, 5e-6, BoundKind::kMemory);
  expect({0, 1'000'000, 300'000}, 6e-6, BoundKind::kMemory);
  expect({0, 2'000'000'000}, 0.2, BoundKind::kMemory);  // more than any
  expect({9'000, 4}, 9e-8, BoundKind::kEnqueueing);
  EXPECT_EQ(BoundOf({1'000'000, 1'000'000}, Peaks()).kind, BoundKind::kNone);
}

}  // namespace
}  // namespace d2l
