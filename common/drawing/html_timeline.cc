#include "common/drawing/html_timeline.h"

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/console/language.h"
#include "common/base/files/atomic_file.h"
#include "common/drawing/html_timeline_page.h"
#include "common/drawing/svg.h"
#include "common/drawing/timeline.h"
#include "common/profiler/key_averages.h"
#include "common/profiler/profile.h"

namespace d2l {
namespace {

// Drawn so wide that the page, which shrinks it into its window, can zoom until
// single calls are seen; but no wider than fits into a page.
std::string WidePicture(const Timeline& timeline) {
  constexpr std::size_t kMostBytes = 2'000'000;
  constexpr double kWindow = 1000, kMostZoom = 1 << 14;
  std::string svg = timeline.ToSvg("", kWindow);
  for (double zoom = 4; zoom <= kMostZoom; zoom *= 4) {
    std::string wider = timeline.ToSvg("", kWindow * zoom);
    if (wider.size() > kMostBytes) break;
    svg = std::move(wider);
  }
  return svg.substr(svg.find("<svg"));
}

}  // namespace

std::string ToHtmlTimeline(const Profile& profile, const std::string& title) {
  const Timeline timeline = Timeline::WithRanges(profile);
  return absl::StrReplaceAll(
      kHtmlTimelinePage,
      {{"@language@", Language()},
       {"@title@", EscapeXml(title)},
       {"@nanos@", absl::StrCat(timeline.nanos())},
       {"@everything@", Translated("everything")},
       {"@help@", Translated("The wheel, + and - zoom; dragging, the left and "
                             "right arrows move; 0 shows everything. Point at "
                             "a block for its name and times.")},
       {"@picture@", WidePicture(timeline)},
       {"@table@",
        EscapeXml(KeyAverages(profile).Table({SortBy::kSelfDeviceTime}))}});
}

absl::Status WriteHtmlTimeline(const Profile& profile, const std::string& path,
                               const std::string& title) {
  return WriteAtomically(path, ToHtmlTimeline(profile, title));
}

}  // namespace d2l
