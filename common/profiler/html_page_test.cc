// The page that WriteHtmlTimeline writes, in a browser.

#include <string>

#include "common/base/child_process.h"
#include "common/device/device.h"
#include "common/profiler/export.h"
#include "common/profiler/profile.h"
#include "common/profiler/profile_testing.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

// Zooms, selects and searches; see the script.
void ExpectToWork(const Profile& profile, const ExportOptions& options = {},
                  const std::string& lang = "en") {
  const std::string page = testing::TempDir() + "/page.html";
  ASSERT_TRUE(WriteHtmlTimeline(profile, page, options).ok());
  ProgramOptions program;
  program.time_limit = std::chrono::minutes(4);
  const ProgramResult result = RunProgram(
      "python3", {"tests/check_timeline_page.py", page, "--lang=" + lang}, {},
      program);
  constexpr int kNotChecked = 77;
  if (result.exit_code == kNotChecked) GTEST_SKIP() << result.output;
  EXPECT_EQ(result.exit_code, 0) << result.failure << "\n" << result.output;
}

TEST(HtmlPage, ShowsARandomProfile) { ExpectToWork(RandomProfile(2, 400)); }

TEST(HtmlPage, ShowsThatCallsAreLeftOut) {
  ExportOptions options;
  options.max_spans = 100;
  ExpectToWork(RandomProfile(3, 800), options);
}

TEST(HtmlPage, SpeaksChineseWhereItIsAskedTo) {
  ExpectToWork(RandomProfile(4, 300), {}, "zh");
}

// With so many rows, a scroll bar appears when the panel takes its place; that
// once made the page report an error of its ResizeObserver.
TEST(HtmlPage, ScrollsBesideTheSelection) {
  std::vector<Device> devices;
  for (int i = 0; i < 16; ++i) devices.emplace_back(DeviceType::kCpu, i);
  ProfileBuilder builder(devices);
  for (int i = 0; i < 16; ++i) {
    builder.Operation("matmul", 1000 * i, 1000 * i + 900, i, 1000 * i + 950,
                      40'000);
  }
  builder.Begin(ProfiledKind::kOperation, "add", 20'000);
  builder.Add(ProfiledKind::kQueueFull, "front end blocked: queue full 2/2",
              21'000, 29'000);
  builder.End(30'000);
  ExpectToWork(builder.Build());
}

TEST(HtmlPage, ShowsThatNothingWasRecorded) { ExpectToWork(Profile()); }

}  // namespace
}  // namespace d2l
