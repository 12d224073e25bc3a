// ToHtmlTimeline: the page of html_timeline.html, with its data.

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "common/base/console/language.h"
#include "common/base/files/atomic_file.h"
#include "common/profiler/export.h"
#include "common/profiler/html_timeline_page.h"

namespace d2l {
namespace {

// Members stay in the order in which they are written.
using Json = nlohmann::ordered_json;

// The page's data, which html_timeline_model.js reads. Spans are columns of
// numbers, which are a fifth as long as an object for each; texts are indices
// into "texts", of which the first is "". Times are nanoseconds: "begin" from
// the begin of the span before, "drawn_begin" from the span's own begin.
class PageData {
 public:
  PageData(const Profile& profile, const ExportOptions& options)
      : profile_(profile), fit_(FitSpans(profile, options)) {
    data_["title"] = options.title;
    data_["language"] = Language();
    data_["duration"] = profile_.end - profile_.begin;
    data_["cut_at"] = Json::array();
    for (const std::int64_t at : fit_.cut_at) {
      data_["cut_at"].push_back(at - profile_.begin);
    }
    AddNames();
    AddSpans();
    AddMemory(ThinnedMemory(profile, options.max_memory_points));
  }

  // Text that is not UTF-8 becomes U+FFFD. '<', which is in strings only, is
  // escaped, since the text stands in an HTML <script>.
  std::string ToString() const {
    return absl::StrReplaceAll(
        data_.dump(-1, ' ', false, Json::error_handler_t::replace),
        {{"<", "\\u003c"}});
  }

 private:
  void AddNames() {
    data_["notes"] = profile_.notes;
    if (fit_.cut > 0) data_["notes"].push_back(fit_.note);
    for (const char* key : {"devices", "threads", "streams"}) {
      data_[key] = Json::array();
    }
    for (const ProfiledDevice& device : profile_.devices) {
      data_["devices"].push_back(DescriptionOf(device));
    }
    for (const ProfiledThread& thread : profile_.threads) {
      data_["threads"].push_back(thread.name);
    }
    for (const ProfiledStream& stream : profile_.streams) {
      data_["streams"].push_back(
          {{"name", stream.name}, {"device", stream.device}});
    }
    for (int kind = 0; kind <= static_cast<int>(ProfiledKind::kRange); ++kind) {
      data_["kinds"].push_back(KindName(static_cast<ProfiledKind>(kind)));
    }
    for (int why = 0; why <= static_cast<int>(DeviceTime::kUnmeasured); ++why) {
      data_["reasons"].push_back(WhyNoDeviceTime(static_cast<DeviceTime>(why)));
    }
  }

  int Text(const std::string& text) {
    const auto [known, is_new] =
        text_of_.emplace(text, static_cast<int>(text_of_.size()));
    if (is_new) data_["texts"].push_back(text);
    return known->second;
  }

  void AddSpans() {
    const std::vector<DrawnInterval> drawn = DrawnDeviceWork(profile_);
    Json& columns = data_["spans"];
    const auto add = [&](const char* key, std::int64_t value) {
      columns[key].push_back(value);
    };
    const auto place = [&](SourceLocation at) {
      return Text(at.known() ? at.ToString() : "");
    };
    Text("");
    for (const char* key : {"kind", "name", "stream", "device_time"}) {
      columns[key] = Json::array();  // of no span
    }
    std::vector<int> written_as(profile_.spans.size(), -1);
    int written = 0;
    std::int64_t before = profile_.begin;
    for (std::size_t i = 0; i < profile_.spans.size(); ++i) {
      if (!fit_.kept[i]) continue;
      const ProfiledSpan& span = profile_.spans[i];
      written_as[i] = written++;
      add("kind", static_cast<int>(span.kind));
      add("name", Text(span.name));
      add("thread", span.thread);
      add("parent", span.parent < 0 ? -1 : written_as[span.parent]);
      add("begin", span.host_begin - std::exchange(before, span.host_begin));
      add("host", span.host_nanos());
      add("inputs", Text(absl::StrJoin(
                        span.inputs, ", ", [](auto* out, const auto& input) {
                          absl::StrAppend(out, input.shape.ToString(), " ",
                                          DTypeName(input.dtype));
                        })));
      add("in_place", span.in_place ? 1 : 0);
      add("line", place(span.line()));
      // Only if it is a different line.
      add("requested_at",
          span.requested_at == span.line() ? 0 : place(span.requested_at));
      add("allocated", span.allocated_bytes);
      add("stream", span.stream);
      add("number", static_cast<std::int64_t>(span.number));
      add("device_time", static_cast<int>(span.device_time));
      add("drawn_begin",
          HasDeviceWork(span) ? drawn[i].begin - span.host_begin : 0);
      add("drawn", drawn[i].end - drawn[i].begin);
      add("queue", span.queue_nanos());
      add("device", span.device_nanos());
    }
  }

  void AddMemory(const std::vector<MemoryCurve>& curves) {
    data_["memory"] = Json::array();
    for (const MemoryCurve& curve : curves) {
      Json memory = {{"name", MemoryCurveName(profile_, curve)},
                     {"device", curve.device}};
      for (const char* key : {"time", "allocated", "pending", "reserved"}) {
        memory[key] = Json::array();
      }
      for (const MemoryPoint& point : curve.points) {
        memory["time"].push_back(point.time - profile_.begin);
        memory["allocated"].push_back(point.allocated);
        memory["pending"].push_back(point.pending);
        memory["reserved"].push_back(point.reserved);
      }
      data_["memory"].push_back(std::move(memory));
    }
  }

  const Profile& profile_;
  const SpansThatFit fit_;
  Json data_;
  std::unordered_map<std::string, int> text_of_;
};

}  // namespace

std::string ToHtmlTimeline(const Profile& profile,
                           const ExportOptions& options) {
  constexpr absl::string_view kPlace = "@profile@";
  const absl::string_view page = kHtmlTimelinePage;
  const std::size_t at = page.find(kPlace);
  return absl::StrCat(page.substr(0, at), PageData(profile, options).ToString(),
                      page.substr(at + kPlace.size()));
}

absl::Status WriteHtmlTimeline(const Profile& profile, const std::string& path,
                               const ExportOptions& options) {
  return WriteAtomically(path, ToHtmlTimeline(profile, options));
}

}  // namespace d2l
