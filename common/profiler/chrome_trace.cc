#include "common/profiler/chrome_trace.h"

#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/base/files/atomic_file.h"
#include "common/profiler/export.h"
#include "common/profiler/json_text.h"

namespace d2l {
namespace {

// Writes the members of one JSON object, one after the other.
class Object {
 public:
  explicit Object(std::string* out) : out_(out) { out_->push_back('{'); }
  void End() { out_->push_back('}'); }

  void Key(absl::string_view key) {
    if (!first_) out_->push_back(',');
    first_ = false;
    AppendJsonString(key, out_);
    out_->push_back(':');
  }
  void Text(absl::string_view key, absl::string_view value) {
    Key(key);
    AppendJsonString(value, out_);
  }
  template <typename Integer>
  void Number(absl::string_view key, Integer value) {
    Key(key);
    absl::StrAppend(out_, value);
  }
  void Micros(absl::string_view key, std::int64_t nanos) {
    Key(key);
    AppendMicros(nanos, out_);
  }

 private:
  std::string* const out_;
  bool first_ = true;
};

class Writer {
 public:
  Writer(const Profile& profile, const ExportOptions& options)
      : profile_(profile),
        options_(options),
        fit_(FitSpans(profile, options)) {}

  std::string Write() {
    out_ = "{\"displayTimeUnit\":\"ns\",\n\"otherData\":";
    WriteOtherData();
    absl::StrAppend(&out_, ",\n\"traceEvents\":[");
    WriteNames();
    WriteSpans();
    WriteMemory();
    for (const std::int64_t at : fit_.cut_at) WriteCut(at);
    absl::StrAppend(&out_, "\n]}\n");
    return std::move(out_);
  }

 private:
  // Processes and tracks have different numbers: Perfetto takes a track whose
  // number is that of its process for the main thread.
  static constexpr int kFrontEnd = 1;
  int DeviceProcess(int device) const { return kFrontEnd + 1 + device; }
  int ThreadTrack(int thread) const {
    return DeviceProcess(static_cast<int>(profile_.devices.size())) + thread;
  }
  int StreamTrack(int stream) const {
    return ThreadTrack(static_cast<int>(profile_.threads.size())) + stream;
  }

  Object Event(absl::string_view phase, int process, int track) {
    out_ += first_event_ ? "\n" : ",\n";
    first_event_ = false;
    Object event(&out_);
    event.Text("ph", phase);
    event.Number("pid", process);
    event.Number("tid", track);
    return event;
  }
  void Time(std::int64_t nanos, Object* event) {
    event->Micros("ts", nanos - profile_.begin);
  }

  void WriteOtherData() {
    std::vector<std::string> devices;
    for (const ProfiledDevice& device : profile_.devices) {
      devices.push_back(DescriptionOf(device));
    }
    std::vector<std::string> notes = profile_.notes;
    if (fit_.cut > 0) notes.push_back(fit_.note);
    Object other(&out_);
    other.Key("devices");
    AppendJsonStrings(devices, &out_);
    other.Key("notes");
    AppendJsonStrings(notes, &out_);
    other.Number("not_recorded", profile_.cut);
    other.Number("cut", fit_.cut);
    other.End();
  }

  void WriteMetadata(absl::string_view what, int process, int track,
                     absl::string_view name, int sort_index) {
    const auto write = [&](absl::string_view suffix, auto&& add_to) {
      Object event = Event("M", process, track);
      event.Text("name", absl::StrCat(what, suffix));
      event.Key("args");
      Object args(&out_);
      add_to(&args);
      args.End();
      event.End();
    };
    write("_name", [&](Object* args) { args->Text("name", name); });
    write("_sort_index",
          [&](Object* args) { args->Number("sort_index", sort_index); });
  }

  void WriteNames() {
    WriteMetadata("process", kFrontEnd, ThreadTrack(0), "front end", 0);
    for (std::size_t i = 0; i < profile_.threads.size(); ++i) {
      WriteMetadata("thread", kFrontEnd, ThreadTrack(i),
                    profile_.threads[i].name, i);
    }
    for (std::size_t i = 0; i < profile_.devices.size(); ++i) {
      WriteMetadata("process", DeviceProcess(i), DeviceProcess(i),
                    DescriptionOf(profile_.devices[i]), i + 1);
    }
    for (std::size_t i = 0; i < profile_.streams.size(); ++i) {
      const ProfiledStream& stream = profile_.streams[i];
      WriteMetadata("thread", DeviceProcess(stream.device), StreamTrack(i),
                    stream.name, i);
    }
  }

  void WriteArguments(const ProfiledSpan& span) {
    const bool computes = span.kind == ProfiledKind::kOperation ||
                          span.kind == ProfiledKind::kView;
    Object args(&out_);
    if (!span.inputs.empty()) {
      args.Text("shapes", absl::StrJoin(span.inputs, ", ",
                                        [](std::string* out, const auto& in) {
                                          *out += in.shape.ToString();
                                        }));
      args.Text("dtypes", absl::StrJoin(span.inputs, ", ",
                                        [](std::string* out, const auto& in) {
                                          *out += DTypeName(in.dtype);
                                        }));
    }
    if (span.in_place) {
      args.Key("in_place");
      out_ += "true";
    }
    if (span.line().known()) args.Text("line", span.line().ToString());
    if (span.requested_at.known() && span.requested_at != span.line()) {
      args.Text("requested_at", span.requested_at.ToString());
    }
    if (span.stream >= 0) {
      args.Text("stream", profile_.streams[span.stream].name);
      args.Number("number", span.number);
    }
    if (span.allocated_bytes != 0) {
      args.Number("allocated_bytes", span.allocated_bytes);
    }
    args.Micros("host_us", span.host_nanos());
    if (HasDeviceWork(span)) {
      args.Micros("queue_us", span.queue_nanos());
      args.Micros("device_us", span.device_nanos());
    } else if (computes) {
      args.Text("device", WhyNoDeviceTime(span.device_time));
    }
    args.End();
  }

  void WriteSlice(const ProfiledSpan& span, int process, int track,
                  std::int64_t begin, std::int64_t end) {
    Object slice = Event("X", process, track);
    Time(begin, &slice);
    slice.Micros("dur", end - begin);
    slice.Text("name", span.name);
    slice.Text("cat", KindName(span.kind));
    slice.Key("args");
    WriteArguments(span);
    slice.End();
  }

  // An end of the arrow from a request to its execution. Viewers bind it to the
  // slice that was opened last, so it must follow its slice in the file.
  void WriteArrow(absl::string_view phase, std::size_t id, int process,
                  int track, std::int64_t time) {
    Object arrow = Event(phase, process, track);
    Time(time, &arrow);
    arrow.Number("id", id);
    arrow.Text("name", "launch");
    arrow.Text("cat", "launch");
    if (phase == "f") arrow.Text("bp", "e");
    arrow.End();
  }

  void WriteSpans() {
    const std::vector<DrawnInterval> drawn = DrawnDeviceWork(profile_);
    for (std::size_t i = 0; i < profile_.spans.size(); ++i) {
      if (!fit_.kept[i]) continue;
      const ProfiledSpan& span = profile_.spans[i];
      const int thread = ThreadTrack(span.thread);
      WriteSlice(span, kFrontEnd, thread, span.host_begin, span.host_end);
      if (!HasDeviceWork(span)) continue;
      WriteArrow("s", i, kFrontEnd, thread, span.host_begin);
      const int process = DeviceProcess(profile_.streams[span.stream].device);
      const int stream = StreamTrack(span.stream);
      WriteSlice(span, process, stream, drawn[i].begin, drawn[i].end);
      WriteArrow("f", i, process, stream, drawn[i].begin);
    }
  }

  void WriteMemory() {
    for (const MemoryCurve& curve :
         ThinnedMemory(profile_, options_.max_memory_points)) {
      const std::string name = MemoryCurveName(profile_, curve);
      const int process = DeviceProcess(curve.device);
      for (const MemoryPoint& point : curve.points) {
        Object counter = Event("C", process, process);
        Time(point.time, &counter);
        counter.Text("name", name);
        counter.Key("args");
        Object args(&out_);
        args.Number("bytes in use", point.allocated);
        args.Number("bytes in flight", point.pending);
        args.End();
        counter.End();
      }
    }
  }

  void WriteCut(std::int64_t at) {
    Object instant = Event("i", kFrontEnd, ThreadTrack(0));
    Time(at, &instant);
    instant.Text("s", "g");
    instant.Text("name", absl::StrCat("cut here: ", fit_.note));
    instant.Text("cat", "cut");
    instant.End();
  }

  const Profile& profile_;
  const ExportOptions& options_;
  const SpansThatFit fit_;
  std::string out_;
  bool first_event_ = true;
};

}  // namespace

std::string ToChromeTrace(const Profile& profile,
                          const ExportOptions& options) {
  return Writer(profile, options).Write();
}

absl::Status WriteChromeTrace(const Profile& profile, const std::string& path,
                              const ExportOptions& options) {
  return WriteAtomically(path, ToChromeTrace(profile, options));
}

}  // namespace d2l
