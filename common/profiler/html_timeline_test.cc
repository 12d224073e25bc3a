#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/console/command_line.h"
#include "common/base/console/language.h"
#include "common/profiler/export.h"
#include "common/profiler/profile_testing.h"

// What the page does with the data is tested in a browser: html_page_test.cc.

namespace d2l {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<Device> kTwoDevices = {Device(DeviceType::kCpu, 0),
                                         Device(DeviceType::kCpu, 1)};

int CountOf(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

// The content of the data's script, as a browser reads it.
json DataOf(const std::string& page) {
  const std::string open = "<script id=\"profile\" type=\"application/json\">";
  const std::size_t begin = page.find(open);
  if (begin == std::string::npos) {
    ADD_FAILURE() << "no data";
    return json();
  }
  const std::size_t from = begin + open.size();
  return json::parse(page.substr(from, page.find("</script>", from) - from));
}

// A span as the page has it, put together again.
struct Call {
  std::string name;
  std::string kind;
  std::int64_t host_begin;
  std::int64_t host_end;
  std::int64_t drawn_begin;
  std::int64_t drawn_end;
};

std::vector<Call> CallsOf(const json& data) {
  const json& spans = data.at("spans");
  std::vector<Call> calls;
  std::int64_t now = 0;
  for (std::size_t i = 0; i < spans.at("kind").size(); ++i) {
    Call call;
    now += spans.at("begin")[i].get<std::int64_t>();
    call.name = data.at("texts")[spans.at("name")[i].get<int>()];
    call.kind = data.at("kinds")[spans.at("kind")[i].get<int>()];
    call.host_begin = now;
    call.host_end = now + spans.at("host")[i].get<std::int64_t>();
    call.drawn_begin = now + spans.at("drawn_begin")[i].get<std::int64_t>();
    call.drawn_end =
        call.drawn_begin + spans.at("drawn")[i].get<std::int64_t>();
    calls.push_back(call);
  }
  return calls;
}

TEST(HtmlTimeline, IsOneFileThatNeedsNoOther) {
  const std::string page = ToHtmlTimeline(RandomProfile(1, 100));
  EXPECT_THAT(page, ::testing::StartsWith("<!DOCTYPE html>"));
  EXPECT_THAT(page, ::testing::EndsWith("</html>\n"));
  for (const char* part :
       {"http:", "https:", "src=", "href=", "@import", "url(", "fetch(",
        "import(", "@style@", "@script@", "@profile@"}) {
    EXPECT_THAT(page, Not(HasSubstr(part)));
  }
}

TEST(HtmlTimeline, HoldsWhatIsKnownOfAnOperation) {
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
  builder.Operation("add", 1'300'000, 1'300'100, 0, DeviceTime::kUnmeasured)
      .requested_at = SourceLocation("lesson.cc", 41);
  builder.profile().notes = {"Something was not measured."};
  builder.profile().devices[1].description = "cpu:1 (virtual, 1 core)";
  ExportOptions options;
  options.title = "Training";
  const json data = DataOf(ToHtmlTimeline(builder.Build(), options));

  EXPECT_EQ(data.at("title"), "Training");
  EXPECT_EQ(data.at("duration"), 300'100);
  EXPECT_EQ(data.at("cut_at"), json::array());
  EXPECT_EQ(data.at("notes"), json({"Something was not measured."}));
  EXPECT_EQ(data.at("devices"), json({"cpu:0", "cpu:1 (virtual, 1 core)"}));
  EXPECT_EQ(data.at("streams"), json({{{"name", "cpu:0/1"}, {"device", 0}},
                                      {{"name", "cpu:1/1"}, {"device", 1}}}));
  const json& spans = data.at("spans");
  const auto text = [&](const char* column, int i) {
    return data.at("texts")[spans.at(column)[i].get<int>()];
  };
  const std::vector<Call> calls = CallsOf(data);
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_EQ(calls[0].kind, "range");
  EXPECT_EQ(calls[1].name, "matmul");
  EXPECT_EQ(calls[1].host_begin, 1'234);
  EXPECT_EQ(calls[1].host_end, 3'000);
  EXPECT_EQ(calls[1].drawn_begin, 10'500);
  EXPECT_EQ(calls[1].drawn_end, 90'007);
  EXPECT_EQ(spans.at("parent"), json({-1, 0, -1}));
  EXPECT_EQ(spans.at("queue"), json({0, 7'500, 0}));
  EXPECT_EQ(spans.at("device"), json({0, 79'507, 0}));
  EXPECT_EQ(spans.at("stream"), json({-1, 1, 0}));
  EXPECT_EQ(spans.at("number")[1], 17);
  EXPECT_EQ(spans.at("in_place"), json({0, 1, 0}));
  EXPECT_EQ(spans.at("allocated"), json({0, 24, 0}));
  EXPECT_EQ(text("inputs", 1), "(2, 3) float32, () int64");
  EXPECT_EQ(text("line", 1), "lesson.cc:40");
  EXPECT_EQ(text("requested_at", 1), "net.cc:12");
  EXPECT_EQ(text("line", 2), "lesson.cc:41");
  EXPECT_EQ(text("requested_at", 2), "");
  EXPECT_EQ(text("line", 0), "");
  EXPECT_THAT(data.at("reasons")[spans.at("device_time")[2].get<int>()]
                  .get<std::string>(),
              HasSubstr("not measured"));
}

TEST(HtmlTimeline, NoNameBreaksOut) {
  const std::string evil =
      "</script><script>alert(1)</script><!-- \" \\ \n \xc3\xa9";
  ProfileBuilder builder(kTwoDevices);
  builder.Add(ProfiledKind::kRange, evil, 0, 10);
  builder.profile().notes = {evil};
  builder.profile().devices[0].description = evil;
  builder.profile().threads[0].name = evil;
  builder.profile().streams[0].name = evil;
  ExportOptions options;
  options.title = evil;
  const std::string page = ToHtmlTimeline(builder.Build(), options);
  EXPECT_EQ(CountOf(page, "<script"), 2);
  EXPECT_EQ(CountOf(page, "</script"), 2);
  EXPECT_EQ(CountOf(page, "<!--"), 0);
  const json data = DataOf(page);
  EXPECT_EQ(CallsOf(data)[0].name, evil);
  EXPECT_EQ(data.at("title"), evil);
  EXPECT_EQ(data.at("notes")[0], evil);
  EXPECT_EQ(data.at("devices")[0], evil);
  EXPECT_EQ(data.at("threads")[0], evil);
  EXPECT_EQ(data.at("streams")[0].at("name"), evil);
}

TEST(HtmlTimeline, HoldsRandomProfiles) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    const Profile profile = RandomProfile(seed, 400);
    const json data = DataOf(ToHtmlTimeline(profile));
    const std::vector<Call> calls = CallsOf(data);
    ASSERT_EQ(calls.size(), profile.spans.size());
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const ProfiledSpan& span = profile.spans[i];
      EXPECT_EQ(calls[i].name, span.name);
      EXPECT_EQ(calls[i].host_begin, span.host_begin - profile.begin);
      EXPECT_EQ(calls[i].host_end, span.host_end - profile.begin);
      EXPECT_EQ(data.at("spans").at("parent")[i], span.parent);
      EXPECT_EQ(data.at("spans").at("thread")[i], span.thread);
      if (span.device_time == DeviceTime::kMeasured) {
        EXPECT_EQ(calls[i].drawn_begin, span.device_begin - profile.begin);
        EXPECT_EQ(calls[i].drawn_end, span.device_end - profile.begin);
      }
    }
    for (const auto& [name, column] : data.at("spans").items()) {
      EXPECT_EQ(column.size(), calls.size()) << name;
    }
  }
}

TEST(HtmlTimeline, HoldsAnEmptyProfile) {
  EXPECT_TRUE(CallsOf(DataOf(ToHtmlTimeline(Profile()))).empty());
}

TEST(HtmlTimeline, IsInTheLanguageOfTheRun) {
  const Profile profile = RandomProfile(3, 20);
  ExportOptions options;
  options.max_spans = 7;
  options.more_spans = "More.";
  EXPECT_EQ(DataOf(ToHtmlTimeline(profile, options)).at("language"), "en");
  AddTranslations(
      {{"This file holds %d of %d calls, the first of each range. "
        "%s",
        "含%2$d次调用中的%1$d次。%3$s"}});
  ASSERT_TRUE(SetLanguage("zh").ok());
  const json data = DataOf(ToHtmlTimeline(profile, options));
  ASSERT_TRUE(SetLanguage("en").ok());
  EXPECT_EQ(data.at("language"), "zh");
  EXPECT_EQ(data.at("notes").back(),
            absl::StrCat("含", profile.spans.size(), "次调用中的7次。More."));
}

// Each text that the script says has a row with the same arguments in its
// table, each row is used, and a text of the page's elements stands there in
// both languages. The browser test shows that the terms of the facts have rows.
TEST(HtmlTimeline, HasItsWordsInBothLanguages) {
  const std::string page = ToHtmlTimeline(Profile());
  const auto matches = [](const std::string& text, const char* pattern) {
    std::vector<std::pair<std::string, std::string>> found;
    const std::regex regex(pattern);
    for (std::sregex_iterator i(text.begin(), text.end(), regex), end; i != end;
         ++i) {
      found.emplace_back((*i)[1], (*i)[2]);
    }
    return found;
  };
  const std::size_t begin = page.find("const CHINESE = {");
  const std::size_t end = page.find("\n};", begin);
  ASSERT_NE(end, std::string::npos);
  std::map<std::string, std::string> rows;
  for (const auto& [english, chinese] : matches(
           page.substr(begin, end - begin), "'([^'\n]+)':\\s+'([^'\n]+)',")) {
    EXPECT_TRUE(rows.emplace(english, chinese).second) << english;
    for (const char* argument : {"{0}", "{1}", "{2}"}) {
      EXPECT_EQ(CountOf(english, argument), CountOf(chinese, argument))
          << english;
    }
    EXPECT_THAT(chinese, Not(::testing::MatchesRegex("[ -~]*")));
  }
  const std::string code = page.substr(end);
  std::set<std::string> known;
  for (const auto& [text, none] : matches(code, "'([^'\n]+)'")) {
    known.insert(text);
  }
  std::vector<std::pair<std::string, std::string>> said =
      matches(code, "say\\(\\s*'([^'\n]+)'()");
  for (int kind = 0; kind <= static_cast<int>(ProfiledKind::kRange); ++kind) {
    said.emplace_back(KindName(static_cast<ProfiledKind>(kind)), "");
  }
  for (const DeviceTime why :
       {DeviceTime::kNothing, DeviceTime::kNotRun, DeviceTime::kUnmeasured}) {
    said.emplace_back(WhyNoDeviceTime(why), "");
  }
  EXPECT_GT(said.size(), 20U);
  for (const auto& [text, none] : said) {
    EXPECT_EQ(rows.count(text), 1U) << text;
    known.insert(text);
  }
  for (const auto& [english, chinese] : rows) {
    EXPECT_EQ(known.count(english), 1U) << english;
  }
  EXPECT_EQ(CountOf(page, "lang=\"zh\">"), 5);
  EXPECT_EQ(CountOf(page, "lang=\"en\">"), 6);  // the page's own
}

// The parents are named by their place in the file, not in the profile.
TEST(HtmlTimeline, LeavesOutWhatDoesNotFitAndSaysSo) {
  const Profile profile = RandomProfile(3, 800);
  for (const std::size_t max_spans : {0, 1, 7, 150, 399}) {
    SCOPED_TRACE(max_spans);
    ExportOptions options;
    options.max_spans = static_cast<std::int64_t>(max_spans);
    options.more_spans = "More: ask for more.";
    const json data = DataOf(ToHtmlTimeline(profile, options));
    const std::vector<Call> calls = CallsOf(data);
    ASSERT_EQ(calls.size(), max_spans);
    EXPECT_FALSE(data.at("cut_at").empty());
    EXPECT_EQ(data.at("notes").back(),
              absl::StrCat("This file holds ", max_spans, " of ",
                           profile.spans.size(),
                           " calls, the first of each range. More: ask for "
                           "more."));
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const int parent = data.at("spans").at("parent")[i];
      ASSERT_LT(parent, static_cast<int>(i));
      if (parent < 0) continue;
      EXPECT_LE(calls[parent].host_begin, calls[i].host_begin);
      EXPECT_GE(calls[parent].host_end, calls[i].host_end);
      EXPECT_THAT(calls[parent].kind, ::testing::AnyOf("range", "step"));
    }
  }
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

TEST(HtmlTimeline, DrawsMemoryOfEachDevice) {
  ProfileBuilder builder(kTwoDevices);
  builder.Add(ProfiledKind::kRange, "everything", 100, 1'000);
  for (int i = 0; i < 3; ++i) {
    MemoryPoint point;
    point.time = 200 + i;
    point.device = 1;
    point.pinned = i == 2;
    point.allocated = 10 + i;
    point.pending = 20 + i;
    point.reserved = 30 + i;
    builder.profile().memory.push_back(point);
  }
  const json data = DataOf(ToHtmlTimeline(builder.Build()));
  const json expected = {{{"name", "memory of cpu:1"},
                          {"device", 1},
                          {"time", {100, 101}},
                          {"allocated", {10, 11}},
                          {"pending", {20, 21}},
                          {"reserved", {30, 31}}},
                         {{"name", "pinned memory of cpu:1"},
                          {"device", 1},
                          {"time", {102}},
                          {"allocated", {12}},
                          {"pending", {22}},
                          {"reserved", {32}}}};
  EXPECT_EQ(data.at("memory"), expected);
}

TEST(WriteHtmlTimeline, WritesTheFileOrLeavesTheOldOne) {
  const std::filesystem::path directory =
      std::filesystem::path(::testing::TempDir()) / "html_timeline_test";
  std::filesystem::create_directories(directory);
  const std::string path = (directory / "profile.html").string();
  const Profile profile = RandomProfile(5, 50);
  ASSERT_TRUE(WriteHtmlTimeline(profile, path).ok());
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(), ToHtmlTimeline(profile));

  const absl::Status status =
      WriteHtmlTimeline(profile, (directory / "none" / "a.html").string());
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("none/a.html"));
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace d2l
