// ToChromeTrace: the Trace Event Format.

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/files/atomic_file.h"
#include "common/profiler/export.h"

namespace d2l {
namespace {

// Members stay in the order in which they are written.
using Json = nlohmann::ordered_json;

// What is no UTF-8 becomes U+FFFD.
std::string Dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// A double is exact to the nanosecond for fifty days.
double Micros(std::int64_t nanos) { return static_cast<double>(nanos) / 1e3; }

class Writer {
 public:
  Writer(const Profile& profile, const ExportOptions& options)
      : profile_(profile),
        options_(options),
        fit_(FitSpans(profile, options)) {}

  std::string Write() {
    out_ = absl::StrCat("{\"displayTimeUnit\":\"ns\",\n\"otherData\":",
                        Dumped(OtherData()), ",\n\"traceEvents\":[");
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

  static Json Event(const char* phase, int process, int track) {
    Json event;
    event["ph"] = phase;
    event["pid"] = process;
    event["tid"] = track;
    return event;
  }
  Json EventAt(std::int64_t nanos, const char* phase, int process, int track) {
    Json event = Event(phase, process, track);
    event["ts"] = Micros(nanos - profile_.begin);
    return event;
  }
  // One at a time: a tree of all of them would take gigabytes.
  void Write(const Json& event) {
    absl::StrAppend(&out_, first_event_ ? "\n" : ",\n", Dumped(event));
    first_event_ = false;
  }

  Json OtherData() const {
    Json other;
    other["devices"] = Json::array();
    for (const ProfiledDevice& device : profile_.devices) {
      other["devices"].push_back(DescriptionOf(device));
    }
    other["notes"] = profile_.notes;
    if (fit_.cut > 0) other["notes"].push_back(fit_.note);
    other["not_recorded"] = profile_.cut;
    other["cut"] = fit_.cut;
    return other;
  }

  void WriteMetadata(const std::string& what, int process, int track,
                     const std::string& name, std::size_t sort_index) {
    Json event = Event("M", process, track);
    event["name"] = what + "_name";
    event["args"]["name"] = name;
    Write(event);
    event = Event("M", process, track);
    event["name"] = what + "_sort_index";
    event["args"]["sort_index"] = sort_index;
    Write(event);
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

  Json Arguments(const ProfiledSpan& span) const {
    Json args;
    if (!span.inputs.empty()) {
      args["shapes"] = absl::StrJoin(span.inputs, ", ",
                                     [](std::string* out, const auto& input) {
                                       *out += input.shape.ToString();
                                     });
      args["dtypes"] = absl::StrJoin(span.inputs, ", ",
                                     [](std::string* out, const auto& input) {
                                       *out += DTypeName(input.dtype);
                                     });
    }
    if (span.in_place) args["in_place"] = true;
    if (span.line().known()) args["line"] = span.line().ToString();
    if (span.requested_at.known() && span.requested_at != span.line()) {
      args["requested_at"] = span.requested_at.ToString();
    }
    if (span.stream >= 0) {
      args["stream"] = profile_.streams[span.stream].name;
      args["number"] = span.number;
    }
    if (span.allocated_bytes != 0) {
      args["allocated_bytes"] = span.allocated_bytes;
    }
    args["host_us"] = Micros(span.host_nanos());
    if (HasDeviceWork(span)) {
      args["queue_us"] = Micros(span.queue_nanos());
      args["device_us"] = Micros(span.device_nanos());
    } else if (span.kind == ProfiledKind::kOperation ||
               span.kind == ProfiledKind::kView) {
      args["device"] = WhyNoDeviceTime(span.device_time);
    }
    return args;
  }

  void WriteSlice(const ProfiledSpan& span, int process, int track,
                  std::int64_t begin, std::int64_t end) {
    Json slice = EventAt(begin, "X", process, track);
    slice["dur"] = Micros(end - begin);
    slice["name"] = span.name;
    slice["cat"] = KindName(span.kind);
    slice["args"] = Arguments(span);
    Write(slice);
  }

  // An end of the arrow from a request to its execution. Viewers bind it to the
  // slice that was opened last, so it must follow its slice in the file.
  void WriteArrow(const char* phase, std::size_t id, int process, int track,
                  std::int64_t time) {
    Json arrow = EventAt(time, phase, process, track);
    arrow["id"] = id;
    arrow["name"] = "launch";
    arrow["cat"] = "launch";
    if (*phase == 'f') arrow["bp"] = "e";
    Write(arrow);
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
        Json counter = EventAt(point.time, "C", process, process);
        counter["name"] = name;
        counter["args"]["bytes in use"] = point.allocated;
        counter["args"]["bytes in flight"] = point.pending;
        Write(counter);
      }
    }
  }

  void WriteCut(std::int64_t at) {
    Json instant = EventAt(at, "i", kFrontEnd, ThreadTrack(0));
    instant["s"] = "g";
    instant["name"] = "cut here: " + fit_.note;
    instant["cat"] = "cut";
    Write(instant);
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
