#include "common/drawing/timeline.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/console/command_line.h"
#include "common/base/console/language.h"
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
using ::testing::StartsWith;

std::vector<std::string> Lines(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Operation i, from 0, is requested at 100 i ns, returns at 100 i + 20 and runs
// from 1000 (i + 1) to 1000 (i + 1) + 500 on stream cpu:0/1.
ProfileBuilder Operations(const std::vector<std::string>& names) {
  ProfileBuilder builder({Device(DeviceType::kCpu, 0)});
  std::int64_t i = 0;
  for (const std::string& name : names) {
    const std::int64_t asked = 1'000'000 + 100 * i;
    const std::int64_t begin = 1'000'000 + 1000 * ++i;
    builder.Operation(name, asked, asked + 20, /*stream=*/0, begin,
                      begin + 500);
  }
  return builder;
}

TEST(Timeline, RowsAreThreadsAndStreams) {
  ProfileBuilder builder = Operations({"matmul", "add"});
  builder.Add(ProfiledKind::kRead, "item", 1'000'150, 1'002'500);
  const Timeline timeline(builder.Build());
  EXPECT_EQ(timeline.nanos(), 2500);
  ASSERT_EQ(timeline.rows().size(), 2u);

  const TimelineRow& front = timeline.rows()[0];
  EXPECT_EQ(front.name, "front end");
  EXPECT_FALSE(front.is_stream);
  ASSERT_EQ(front.spans.size(), 3u);
  EXPECT_EQ(front.spans[1].kind, SpanKind::kRequest);
  EXPECT_EQ(front.spans[1].begin, 100);
  EXPECT_EQ(front.spans[1].end, 120);
  EXPECT_EQ(front.spans[2].name, "item");
  EXPECT_DOUBLE_EQ(front.busy_seconds, 40e-9);

  // Requested at 20, ran from 1000 to 1500; at 120, ran from 2000 to 2500.
  const TimelineRow& stream = timeline.rows()[1];
  EXPECT_EQ(stream.name, "cpu:0/1");
  EXPECT_TRUE(stream.is_stream);
  ASSERT_EQ(stream.spans.size(), 4u);
  EXPECT_EQ(stream.spans[0].kind, SpanKind::kWait);
  EXPECT_EQ(stream.spans[0].begin, 20);
  EXPECT_EQ(stream.spans[0].end, 1000);
  EXPECT_EQ(stream.spans[2].kind, SpanKind::kWait);
  EXPECT_EQ(stream.spans[2].begin, 1500);
  EXPECT_EQ(stream.spans[3].kind, SpanKind::kWork);
  EXPECT_EQ(stream.spans[3].end, 2500);
  EXPECT_DOUBLE_EQ(stream.busy_seconds, 1000e-9);
}

TEST(TimelineText, IsScaledToTheRun) {
  // 36 columns of 2500 / 36 ns: rows are 11 + 36 + 7 wide.
  const std::string text =
      Timeline(Operations({"matmul", "add"}).Build()).ToText(54);
  const std::vector<std::string> lines = Lines(text);
  ASSERT_GE(lines.size(), 4u);
  EXPECT_EQ(lines[0], "front end |AB" + std::string(34, ' ') + "|   2 %");
  EXPECT_EQ(lines[1], "cpu:0/1   |::::::::::::::AAAAAAA::::::::BBBBBBB|  40 %");
  EXPECT_THAT(lines[2], StartsWith("           ^0"));
  EXPECT_THAT(lines[2], HasSubstr("^1 us"));
  EXPECT_THAT(text, HasSubstr("A matmul, B add"));
}

// The operations run one after the other, 1000 ns each, on cpu:0/1; all are
// requested at the beginning.
ProfileBuilder BackToBack(int count) {
  ProfileBuilder builder({Device(DeviceType::kCpu, 0)});
  for (int i = 0; i < count; ++i) {
    builder.Operation("matmul", i, i + 1, /*stream=*/0, 100 + 1000 * i,
                      1100 + 1000 * i);
  }
  return builder;
}

TEST(TimelineText, EqualBlocksAreToldApart) {
  const std::string row = Lines(Timeline(BackToBack(20).Build()).ToText(80))[1];
  EXPECT_THAT(row, StartsWith("cpu:0/1   |###%%%###%%%"));
  int changes = 0;
  for (std::size_t i = 12; i < 11 + 62; ++i) {
    changes += row[i] != row[i - 1] ? 1 : 0;
  }
  EXPECT_EQ(changes, 19) << row;
  // Letters do not alternate if a column holds several operations.
  EXPECT_THAT(Lines(Timeline(BackToBack(200).Build()).ToText(80))[1],
              Not(HasSubstr("%%")));
}

// The marks' shares of work and waiting are the shares of the times.
TEST(TimelineText, WorkHasItsShareOfTheColumns) {
  for (const int percent : {3, 17, 50, 83}) {
    ProfileBuilder builder({Device(DeviceType::kCpu, 0)});
    for (int i = 0; i < 1000; ++i) {
      builder.Operation("a", 0, 1, 0, 1 + 100 * i, 1 + 100 * i + percent);
    }
    const std::string row = Lines(Timeline(builder.Build()).ToText(119))[1];
    EXPECT_NEAR(std::count(row.begin(), row.end(), '#'), percent, 3) << row;
    EXPECT_THAT(row, HasSubstr(absl::StrFormat("|%4d %%", percent)));
  }
  ProfileBuilder builder({Device(DeviceType::kCpu, 0)});
  builder.Operation("a", 0, 1, 0, 500'000, 500'001);
  builder.Operation("a", 1, 2, 0, 1'000'000, 1'000'001);
  EXPECT_THAT(Lines(Timeline(builder.Build()).ToText())[1], HasSubstr("#"));
}

// Both devices work for 100 ns: first in the notebook's order with a queue of
// two, then in turn.
Profile Notebook() {
  ProfileBuilder builder(
      {Device(DeviceType::kCpu, 0), Device(DeviceType::kCpu, 1)});
  builder.Operation("matmul", 5000, 5001, 0, 5001, 5050);
  builder.Begin(ProfiledKind::kOperation, "matmul", 5010);
  builder.Add(ProfiledKind::kQueueFull, "front end blocked: queue full 1/1",
              5012, 5050);
  builder.End(5052);
  builder.profile().spans[1].stream = 0;
  builder.profile().spans[1].device_time = DeviceTime::kMeasured;
  builder.profile().spans[1].device_begin = 5052;
  builder.profile().spans[1].device_end = 5101;
  builder.Operation("matmul", 5060, 5062, 1, 5062, 5160);
  return builder.Build();
}

Profile InTurn() {
  ProfileBuilder builder(
      {Device(DeviceType::kCpu, 0), Device(DeviceType::kCpu, 1)});
  builder.Operation("matmul", 900, 902, 0, 902, 1000);
  builder.Operation("matmul", 902, 904, 1, 904, 1000);
  return builder.Build();
}

TEST(Timelines, StandOneAboveTheOther) {
  const Timeline timeline({{"notebook", Notebook()}, {"in turn", InTurn()}});
  EXPECT_EQ(timeline.nanos(), 160);
  ASSERT_EQ(timeline.rows().size(), 6u);
  std::string front;
  for (const TimelineSpan& span : timeline.rows()[0].spans) {
    front += absl::StrCat(span.kind == SpanKind::kBlocked ? "x" : "=",
                          span.begin, "-", span.end, " ");
  }
  // The blocked call surrounds its wait.
  EXPECT_EQ(front, "=0-1 =10-12 x12-50 =50-52 =60-62 ");
  EXPECT_EQ(timeline.rows()[0].nanos, 160);
  EXPECT_EQ(timeline.rows()[3].alternative, "in turn");
  EXPECT_EQ(timeline.rows()[3].nanos, 100);
  EXPECT_EQ(timeline.rows()[3].spans[0].begin, 0);

  EXPECT_EQ(
      timeline.ToText(67),
      "notebook front end |= =xxxxxxxxx== =                        |   4 %\n"
      "         cpu:0/1   |#############%%%%%%%%%%%%%              |  61 %\n"
      "         cpu:1/1   |               #########################|  61 %\n"
      "in turn  front end |==                                      |   4 %\n"
      "         cpu:0/1   |##########################              |  98 %\n"
      "         cpu:1/1   | #########################              |  96 %\n"
      "                    ^0          ^50 ns       ^100 ns     ^150 ns\n"
      "= enqueues, # or % works: matmul, x front end blocked: queue full\n"
      "1/1, : waiting, blank idle. A column is 4.00 ns.\n");
  const std::string svg = timeline.ToSvg("both");
  for (const char* part :
       {">notebook<", ">in turn<", ">front end blocked: queue full 1/1<"}) {
    EXPECT_THAT(svg, HasSubstr(part));
  }
}

// A picture of many calls has a bounded size.
TEST(TimelineSvg, MergesWhatIsTooThin) {
  EXPECT_LT(Timeline(BackToBack(20'000).Build()).ToSvg("t").size(), 20'000u);
  // 20 blocks stay 20 blocks.
  const std::string svg = Timeline(BackToBack(20).Build()).ToSvg("t");
  std::size_t blocks = 0;
  for (std::size_t at = svg.find("<title>matmul"); at != std::string::npos;
       at = svg.find("<title>matmul", at + 1)) {
    ++blocks;
  }
  EXPECT_GE(blocks, 20u);
}

// Also of operations of several names, one after the other.
TEST(TimelineSvg, MergesOperationsOfSeveralNames) {
  ProfileBuilder builder({Device(DeviceType::kCpu, 0)});
  for (int i = 0; i < 20'000; ++i) {
    builder.Operation(i % 2 == 0 ? "mul" : "add", i, i + 1, /*stream=*/0,
                      100 + 1000 * i, 900 + 1000 * i);
  }
  const Timeline timeline(builder.Build());
  EXPECT_LT(timeline.ToSvg().size(), 500'000u);
  // A wider picture shows more.
  EXPECT_GT(timeline.ToSvg("", 8600).size(), 2 * timeline.ToSvg().size());
}

TEST(Timeline, ShowsRangesAboveTheFrontEnd) {
  ProfileBuilder builder({Device(DeviceType::kCpu, 0)});
  builder.Begin(ProfiledKind::kRange, "epoch", 1000);
  builder.Begin(ProfiledKind::kRange, "step 1", 1100);
  builder.Operation("mul", 1200, 1300, /*stream=*/0, 1300, 1400);
  builder.End(1500);
  builder.Add(ProfiledKind::kRange, "step 2", 1600, 1700);
  builder.End(2000);
  const Timeline timeline = Timeline::WithRanges(builder.Build());
  EXPECT_EQ(timeline.nanos(), 1000);
  ASSERT_EQ(timeline.rows().size(), 4u);
  EXPECT_EQ(timeline.rows()[0].name, "ranges");
  ASSERT_EQ(timeline.rows()[0].spans.size(), 1u);
  EXPECT_EQ(timeline.rows()[0].spans[0].name, "epoch");
  ASSERT_EQ(timeline.rows()[1].spans.size(), 2u);
  EXPECT_EQ(timeline.rows()[1].spans[1].name, "step 2");
  EXPECT_EQ(timeline.rows()[1].spans[1].begin, 600);
  EXPECT_EQ(timeline.rows()[1].spans[1].kind, SpanKind::kRange);
  EXPECT_EQ(timeline.rows()[2].name, "front end");
  EXPECT_EQ(timeline.rows()[2].spans[0].begin, 200);
  EXPECT_THAT(timeline.ToText(), Not(HasSubstr("ranges")));
  EXPECT_THAT(timeline.ToSvg(), HasSubstr(">step 1\n400 ns from 100 ns<"));
}

TEST(TimelineText, FitsAnyWidthAndAnyRun) {
  for (const int count : {1, 70, 3000}) {
    std::vector<std::string> names;
    for (int i = 0; i < count; ++i)
      names.push_back("op" + std::to_string(i % 60));
    ProfileBuilder builder = Operations(names);
    builder.profile().streams.push_back({"cpu:0/2", 0});
    for (const int width : {40, 80}) {
      const std::string text = Timeline(builder.Build()).ToText(width);
      for (const std::string& line : Lines(text)) {
        EXPECT_LE(line.size(), static_cast<std::size_t>(width)) << line;
      }
    }
  }
}

TEST(Timeline, WhatNeverRanHasNoSpan) {
  ProfileBuilder builder({Device(DeviceType::kCpu, 0)});
  builder.Operation("ones", 100, 120, /*stream=*/0, DeviceTime::kNotRun);
  builder.Add(ProfiledKind::kView, "t", 130, 140);
  const Timeline timeline(builder.Build());
  EXPECT_EQ(timeline.rows()[0].spans.size(), 2u);
  EXPECT_TRUE(timeline.rows()[1].spans.empty());
}

TEST(Timeline, OfAProfileHasItsThreadsAndStreams) {
  ProfileBuilder builder(
      {Device(DeviceType::kCpu, 0), Device(DeviceType::kCpu, 1)});
  builder.Begin(ProfiledKind::kRange, "step", 500);
  builder.Operation("matmul", 1000, 1200, /*stream=*/1, 1500, 2500);
  builder.Add(ProfiledKind::kView, "reshape", 1300, 1310);
  builder.Operation("add", 1400, 1450, /*stream=*/1, 2500, 2600);
  builder.Operation("failed", 1460, 1470, /*stream=*/0, DeviceTime::kNotRun);
  builder.Add(ProfiledKind::kRead, "item", 1480, 3000);
  builder.End(4000);
  builder.Thread("front end 2");
  builder.Operation("add", 1100, 1150, /*stream=*/0, 1120, 1220);
  builder.Add(ProfiledKind::kWait, "synchronize", 1160, 1230);
  const Timeline timeline(builder.Build());

  // A range is no request: time begins at 1000, and ends when item returns.
  EXPECT_EQ(timeline.nanos(), 2000);
  ASSERT_EQ(timeline.rows().size(), 4u);
  std::vector<std::string> names;
  std::vector<std::string> spans;
  for (const TimelineRow& row : timeline.rows()) {
    names.push_back(row.name);
    std::string text;
    for (const TimelineSpan& span : row.spans) {
      text += (span.kind == SpanKind::kWait ? ":" : "") + span.name + " " +
              std::to_string(span.begin) + "-" + std::to_string(span.end) + " ";
    }
    spans.push_back(text);
  }
  EXPECT_THAT(names,
              ElementsAre("front end", "front end 2", "cpu:0/1", "cpu:1/1"));
  EXPECT_THAT(spans,
              ElementsAre("matmul 0-200 reshape 300-310 add 400-450 "
                          "failed 460-470 :item 480-2000 ",
                          "add 100-150 :synchronize 160-230 ",
                          // It began before the call had returned: no wait.
                          "add 120-220 ",
                          ":matmul 200-500 matmul 500-1500 add 1500-1600 "));
  EXPECT_THAT(timeline.ToText(), HasSubstr("front end 2 |"));
  AddTranslations({{"front end", "前端"}});
  ASSERT_TRUE(SetLanguage("zh").ok());
  EXPECT_EQ(Timeline(builder.Build()).rows()[1].name, "前端 2");
  ASSERT_TRUE(SetLanguage("en").ok());
  EXPECT_EQ(Timeline(Profile()).ToText(), "Nothing was recorded.\n");
}

TEST(TimelineSvg, HasRowsAxisAndKey) {
  const std::string svg =
      Timeline(Operations({"matmul", "<add>"}).Build()).ToSvg("run");
  for (const char* part : {"front end", "cpu:0", "matmul", "&lt;add&gt;",
                           "waiting", ">1 us<", "500 ns", "</svg>"}) {
    EXPECT_THAT(svg, HasSubstr(part));
  }
}

TEST(AxisTimes, AreRound) {
  EXPECT_THAT(AxisTimes(2500, 6), ElementsAre(0, 500, 1000, 1500, 2000, 2500));
  EXPECT_THAT(AxisTimes(2500, 3), ElementsAre(0, 1000, 2000));
  EXPECT_THAT(AxisTimes(1, 5), ElementsAre(0, 1));
  EXPECT_THAT(AxisTimes(0, 5), ElementsAre(0));
  for (std::int64_t end = 1; end < 1'000'000'000'000; end = end * 3 + 1) {
    const std::size_t count = AxisTimes(end, 6).size();
    EXPECT_GE(count, end < 2 ? 2u : 3u) << end;
    EXPECT_LE(count, 6u) << end;
  }
}

}  // namespace
}  // namespace d2l
