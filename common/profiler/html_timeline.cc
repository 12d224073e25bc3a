#include "common/profiler/html_timeline.h"

#include <cstddef>
#include <unordered_map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/base/console/language.h"
#include "common/base/files/atomic_file.h"
#include "common/profiler/export.h"
#include "common/profiler/html_timeline_page.h"
#include "common/profiler/json_text.h"

namespace d2l {
namespace {

// The page's data, a JSON object: what html_timeline_model.js reads. Spans are
// columns of numbers, which are a fifth as long as an object for each; texts
// are indices into "texts", of which the first is "". Times are nanoseconds:
// "begin" from the begin of the span before, "drawn_begin" from the span's own
// begin.
class DataWriter {
 public:
  DataWriter(const Profile& profile, const ExportOptions& options)
      : profile_(profile),
        options_(options),
        fit_(FitSpans(profile, options)) {}

  std::string Write() {
    out_ = "{\"title\":";
    AppendJsonString(options_.title, &out_);
    Key("language");
    AppendJsonString(Language(), &out_);
    Key("duration");
    absl::StrAppend(&out_, profile_.end - profile_.begin);
    Key("cut_at");
    absl::StrAppend(&out_, "[",
                    absl::StrJoin(fit_.cut_at, ",",
                                  [&](std::string* out, std::int64_t at) {
                                    absl::StrAppend(out, at - profile_.begin);
                                  }),
                    "]");
    WriteNames();
    WriteSpans();
    WriteMemory();
    out_ += "}";
    return std::move(out_);
  }

 private:
  void Key(absl::string_view key) {
    absl::StrAppend(&out_, ",\n\"", key, "\":");
  }

  void Texts(absl::string_view key, const std::vector<std::string>& texts) {
    Key(key);
    AppendJsonStrings(texts, &out_);
  }

  void WriteNames() {
    std::vector<std::string> notes = profile_.notes;
    if (fit_.cut > 0) notes.push_back(fit_.note);
    Texts("notes", notes);
    std::vector<std::string> devices;
    for (const ProfiledDevice& device : profile_.devices) {
      devices.push_back(DescriptionOf(device));
    }
    Texts("devices", devices);
    std::vector<std::string> threads;
    for (const ProfiledThread& thread : profile_.threads) {
      threads.push_back(thread.name);
    }
    Texts("threads", threads);
    Key("streams");
    out_.push_back('[');
    for (std::size_t i = 0; i < profile_.streams.size(); ++i) {
      out_ += i > 0 ? ",{\"name\":" : "{\"name\":";
      AppendJsonString(profile_.streams[i].name, &out_);
      absl::StrAppend(&out_, ",\"device\":", profile_.streams[i].device, "}");
    }
    out_.push_back(']');
    Texts("kinds",
          {KindName(ProfiledKind::kOperation), KindName(ProfiledKind::kView),
           KindName(ProfiledKind::kRead), KindName(ProfiledKind::kWait),
           KindName(ProfiledKind::kQueueFull), KindName(ProfiledKind::kRange)});
    Texts("reasons", {WhyNoDeviceTime(DeviceTime::kMeasured),
                      WhyNoDeviceTime(DeviceTime::kNothing),
                      WhyNoDeviceTime(DeviceTime::kNotRun),
                      WhyNoDeviceTime(DeviceTime::kUnmeasured)});
  }

  int Text(std::string text) {
    const auto [known, is_new] =
        text_of_.emplace(std::move(text), static_cast<int>(texts_.size()));
    if (is_new) texts_.push_back(known->first);
    return known->second;
  }

  // value_of: of the index of a span that is kept, an integer.
  template <typename F>
  void Column(absl::string_view key, F&& value_of) {
    absl::StrAppend(&out_, first_column_ ? "\n\"" : ",\n\"", key, "\":[");
    first_column_ = false;
    bool first = true;
    for (std::size_t i = 0; i < profile_.spans.size(); ++i) {
      if (!fit_.kept[i]) continue;
      absl::StrAppend(&out_, first ? "" : ",", value_of(i));
      first = false;
    }
    out_.push_back(']');
  }

  void WriteSpans() {
    const std::vector<ProfiledSpan>& spans = profile_.spans;
    const std::vector<DrawnInterval> drawn = DrawnDeviceWork(profile_);
    std::vector<int> written_as(spans.size(), -1);
    int written = 0;
    for (std::size_t i = 0; i < spans.size(); ++i) {
      if (fit_.kept[i]) written_as[i] = written++;
    }
    const auto place = [](SourceLocation at) {
      return at.known() ? at.ToString() : std::string();
    };
    Text("");
    Key("spans");
    out_.push_back('{');
    const auto whole = [](auto value) { return static_cast<int>(value); };
    Column("kind", [&](std::size_t i) { return whole(spans[i].kind); });
    Column("name", [&](std::size_t i) { return Text(spans[i].name); });
    Column("thread", [&](std::size_t i) { return spans[i].thread; });
    Column("parent", [&](std::size_t i) {
      return spans[i].parent < 0 ? -1 : written_as[spans[i].parent];
    });
    std::int64_t before = profile_.begin;
    Column("begin", [&](std::size_t i) {
      const std::int64_t step = spans[i].host_begin - before;
      before = spans[i].host_begin;
      return step;
    });
    Column("host", [&](std::size_t i) { return spans[i].host_nanos(); });
    Column("inputs", [&](std::size_t i) {
      return Text(absl::StrJoin(spans[i].inputs, ", ",
                                [](std::string* out, const auto& input) {
                                  absl::StrAppend(out, input.shape.ToString(),
                                                  " ", DTypeName(input.dtype));
                                }));
    });
    Column("in_place", [&](std::size_t i) { return whole(spans[i].in_place); });
    Column("line", [&](std::size_t i) { return Text(place(spans[i].line())); });
    // Only where it is another line.
    Column("requested_at", [&](std::size_t i) {
      return spans[i].requested_at == spans[i].line()
                 ? Text("")
                 : Text(place(spans[i].requested_at));
    });
    Column("allocated",
           [&](std::size_t i) { return spans[i].allocated_bytes; });
    Column("stream", [&](std::size_t i) { return spans[i].stream; });
    Column("number", [&](std::size_t i) { return spans[i].number; });
    Column("device_time",
           [&](std::size_t i) { return whole(spans[i].device_time); });
    Column("drawn_begin", [&](std::size_t i) {
      return HasDeviceWork(spans[i]) ? drawn[i].begin - spans[i].host_begin : 0;
    });
    Column("drawn",
           [&](std::size_t i) { return drawn[i].end - drawn[i].begin; });
    Column("queue", [&](std::size_t i) { return spans[i].queue_nanos(); });
    Column("device", [&](std::size_t i) { return spans[i].device_nanos(); });
    out_.push_back('}');
    Texts("texts", texts_);
  }

  template <typename F>
  void PointColumn(absl::string_view key, const MemoryCurve& curve,
                   F&& value_of) {
    absl::StrAppend(&out_, ",\"", key, "\":[",
                    absl::StrJoin(curve.points, ",",
                                  [&](std::string* out, const MemoryPoint& p) {
                                    absl::StrAppend(out, value_of(p));
                                  }),
                    "]");
  }

  void WriteMemory() {
    Key("memory");
    out_.push_back('[');
    bool first = true;
    for (const MemoryCurve& curve :
         ThinnedMemory(profile_, options_.max_memory_points)) {
      out_ += first ? "{\"name\":" : ",\n{\"name\":";
      first = false;
      AppendJsonString(MemoryCurveName(profile_, curve), &out_);
      absl::StrAppend(&out_, ",\"device\":", curve.device);
      PointColumn("time", curve, [&](const MemoryPoint& point) {
        return point.time - profile_.begin;
      });
      PointColumn("allocated", curve,
                  [](const MemoryPoint& point) { return point.allocated; });
      PointColumn("pending", curve,
                  [](const MemoryPoint& point) { return point.pending; });
      PointColumn("reserved", curve,
                  [](const MemoryPoint& point) { return point.reserved; });
      out_.push_back('}');
    }
    out_.push_back(']');
  }

  const Profile& profile_;
  const ExportOptions& options_;
  const SpansThatFit fit_;
  std::string out_;
  bool first_column_ = true;
  std::vector<std::string> texts_;
  std::unordered_map<std::string, int> text_of_;
};

}  // namespace

std::string ToHtmlTimeline(const Profile& profile,
                           const ExportOptions& options) {
  constexpr absl::string_view kPlace = "@profile@";
  const absl::string_view page = kHtmlTimelinePage;
  const std::size_t at = page.find(kPlace);
  return absl::StrCat(page.substr(0, at), DataWriter(profile, options).Write(),
                      page.substr(at + kPlace.size()));
}

absl::Status WriteHtmlTimeline(const Profile& profile, const std::string& path,
                               const ExportOptions& options) {
  return WriteAtomically(path, ToHtmlTimeline(profile, options));
}

}  // namespace d2l
