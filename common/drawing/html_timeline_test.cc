#include "common/drawing/html_timeline.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/child_process.h"
#include "common/base/console/command_line.h"
#include "common/base/console/language.h"
#include "common/device/device.h"
#include "common/profiler/profile.h"
#include "common/profiler/profile_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

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

TEST(HtmlTimeline, IsOneFileThatNeedsNoOther) {
  const std::string page = ToHtmlTimeline(RandomProfile(1, 100));
  EXPECT_THAT(page, ::testing::StartsWith("<!DOCTYPE html>"));
  EXPECT_THAT(page, ::testing::EndsWith("</html>\n"));
  for (const char* part : {"https:", "src=", "href=", "@import", "fetch(",
                           "import(", "@picture@", "@table@", "@title@"}) {
    EXPECT_THAT(page, Not(HasSubstr(part)));
  }
}

TEST(HtmlTimeline, HasThePictureTheTableAndTheNotes) {
  ProfileBuilder builder(kTwoDevices);
  builder.Begin(ProfiledKind::kRange, "forward", 1'000'000);
  builder.Operation("matmul", 1'001'000, 1'003'000, 1, 1'010'000, 1'090'000);
  builder.End(1'200'000);
  builder.profile().notes = {"Something was not measured."};
  const std::string page = ToHtmlTimeline(builder.Build(), "Training");
  for (const char* part :
       {"<h1>Training</h1>", "<title>forward\n200 us from 0.00 ns</title>",
        "<title>matmul\n80.0 us from 10.0 us</title>", "Self CPU",
        "Something was not measured.", "const NANOS = 200000;"}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
}

TEST(HtmlTimeline, NoNameBreaksOut) {
  const std::string evil =
      "</script><script>alert(1)</script><!-- \" \\ \n \xc3\xa9 @table@";
  ProfileBuilder builder(kTwoDevices);
  builder.Add(ProfiledKind::kRange, evil, 0, 10);
  builder.Operation(evil, 1, 2, 0, 3, 9);
  builder.profile().notes = {evil};
  builder.profile().devices[0].description = evil;
  builder.profile().threads[0].name = evil;
  builder.profile().streams[0].name = evil;
  const std::string page = ToHtmlTimeline(builder.Build(), evil);
  EXPECT_EQ(CountOf(page, "<script"), 1);
  EXPECT_EQ(CountOf(page, "</script"), 1);
  EXPECT_EQ(CountOf(page, "<!--"), 0);
  EXPECT_EQ(CountOf(page, "<pre>"), 1);
  EXPECT_GT(CountOf(page, "&lt;/script&gt;"), 5);
}

TEST(HtmlTimeline, IsInTheLanguageOfTheRun) {
  AddTranslations({{"everything", "全部"}, {"ranges", "区间"}});
  const Profile profile = RandomProfile(3, 20);
  EXPECT_THAT(ToHtmlTimeline(profile), HasSubstr("<html lang=\"en\">"));
  ASSERT_TRUE(SetLanguage("zh").ok());
  const std::string page = ToHtmlTimeline(profile);
  ASSERT_TRUE(SetLanguage("en").ok());
  for (const char* part : {"<html lang=\"zh\">", "全部", "区间"}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
}

// Of calls that alternate, too, and with ranges around each.
TEST(HtmlTimeline, HasABoundedSize) {
  ProfileBuilder builder(kTwoDevices);
  std::int64_t now = 0;
  for (int i = 0; i < 20'000; ++i, now += 1000) {
    builder.Begin(ProfiledKind::kRange, absl::StrCat("step ", i % 7), now);
    builder.Operation(absl::StrCat("op", i % 40), now, now + 500, i % 2,
                      now + 700, now + 1500 + i % 3 * 200);
    builder.End(now + 900);
  }
  const std::string page = ToHtmlTimeline(builder.Build());
  EXPECT_LT(page.size(), 2'200'000u);
  EXPECT_GT(CountOf(page, "<rect"), 1000);
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

// In a browser: zooms, drags and points; see the script.
void ExpectToWork(const Profile& profile) {
  const std::string page = testing::TempDir() + "/page.html";
  ASSERT_TRUE(WriteHtmlTimeline(profile, page, "A page").ok());
  ProgramOptions program;
  program.time_limit = std::chrono::minutes(4);
  const ProgramResult result = RunProgram(
      "python3", {"tests/check_timeline_page.py", page}, {}, program);
  constexpr int kNotChecked = 77;
  if (result.exit_code == kNotChecked) GTEST_SKIP() << result.output;
  EXPECT_EQ(result.exit_code, 0) << result.failure << "\n" << result.output;
}

TEST(HtmlPage, ShowsARandomProfile) { ExpectToWork(RandomProfile(2, 400)); }

TEST(HtmlPage, ShowsThatNothingWasRecorded) { ExpectToWork(Profile()); }

}  // namespace
}  // namespace d2l
