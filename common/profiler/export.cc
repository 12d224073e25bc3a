#include "common/profiler/export.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/console/language.h"
#include "common/base/files/atomic_file.h"

namespace d2l {
namespace {

bool IsRange(const ProfiledSpan& span) {
  return span.kind == ProfiledKind::kRange;
}

// The points of one bucket that must stay, in their order.
void KeepPeaks(const MemoryPoint* begin, const MemoryPoint* end,
               std::vector<MemoryPoint>* kept) {
  const auto peak = [&](auto&& bytes) {
    return std::max_element(begin, end,
                            [&](const MemoryPoint& a, const MemoryPoint& b) {
                              return bytes(a) < bytes(b);
                            });
  };
  const std::set<const MemoryPoint*> keep = {
      peak([](const MemoryPoint& at) { return at.allocated; }),
      peak([](const MemoryPoint& at) { return at.in_flight; }),
      peak([](const MemoryPoint& at) { return at.allocated + at.in_flight; }),
      end - 1};
  for (const MemoryPoint* point : keep) kept->push_back(*point);
}

std::vector<MemoryPoint> Thinned(const std::vector<MemoryPoint>& points,
                                 int max_points) {
  if (points.size() <= static_cast<std::size_t>(max_points)) return points;
  const std::size_t buckets = max_points / 4;
  std::vector<MemoryPoint> kept;
  for (std::size_t b = 0; b < buckets; ++b) {
    KeepPeaks(points.data() + points.size() * b / buckets,
              points.data() + points.size() * (b + 1) / buckets, &kept);
  }
  return kept;
}

}  // namespace

SpansThatFit FitSpans(const Profile& profile, const ExportOptions& options) {
  const std::vector<ProfiledSpan>& spans = profile.spans;
  const std::int64_t all = static_cast<std::int64_t>(spans.size());
  const std::int64_t max = std::max<std::int64_t>(options.max_spans, 0);
  SpansThatFit fit;
  fit.kept.assign(spans.size(), all <= max);
  if (all <= max) return fit;

  // The range around each span, or itself if it is one; -1 - thread if none.
  std::vector<int> range_of(spans.size());
  std::vector<std::size_t> ranges;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const int parent = spans[i].parent;
    range_of[i] = parent < 0 ? -1 - spans[i].thread : range_of[parent];
    if (!IsRange(spans[i])) continue;
    range_of[i] = static_cast<int>(i);
    ranges.push_back(i);
  }
  std::stable_sort(ranges.begin(), ranges.end(),
                   [&](std::size_t a, std::size_t b) {
                     return spans[a].host_begin < spans[b].host_begin;
                   });
  std::int64_t left = max;
  for (const std::size_t i : ranges) {
    if (left == 0) break;
    fit.kept[i] = true;
    --left;
  }
  // The calls by their place in their range: the second call of any range
  // stands behind the first calls of all.
  std::vector<std::pair<std::int64_t, std::size_t>> calls;
  std::map<int, std::int64_t> count;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const int range = range_of[i];
    if (IsRange(spans[i]) || (range >= 0 && !fit.kept[range])) continue;
    calls.emplace_back(count[range]++, i);
  }
  std::sort(calls.begin(), calls.end());
  calls.resize(std::min<std::size_t>(calls.size(), left));
  for (const auto& [place, i] : calls) fit.kept[i] = true;

  std::map<int, std::int64_t> cut_at;
  // Each span, or the nearest one around it that is kept; -1 for none.
  std::vector<int> kept_around(spans.size());
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const int parent = spans[i].parent;
    kept_around[i] = fit.kept[i]  ? static_cast<int>(i)
                     : parent < 0 ? -1
                                  : kept_around[parent];
    if (fit.kept[i]) continue;
    ++fit.cut;
    // If the range is left out itself, the cut is in the range around it.
    const int around = IsRange(spans[i]) ? parent : range_of[i];
    cut_at.emplace(around < 0 ? around : kept_around[around],
                   spans[i].host_begin);
  }
  for (const auto& [range, at] : cut_at) fit.cut_at.push_back(at);
  std::sort(fit.cut_at.begin(), fit.cut_at.end());
  fit.note = Say("This file holds %d of %d calls, the first of each range. %s",
                 max, all, options.more_spans);
  return fit;
}

namespace {

// The interval in which work is drawn on its stream.
struct DrawnInterval {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

bool HasDeviceWork(const ProfiledSpan& span) {
  return span.stream >= 0 && span.device_time == DeviceTime::kMeasured;
}

// For each span; {0, 0} if its time was not measured. Intervals of a stream are
// disjoint and none begins before its request: if the conversion between clocks
// contradicts that, the later begin is moved.
std::vector<DrawnInterval> DrawnDeviceWork(const Profile& profile) {
  const std::vector<ProfiledSpan>& spans = profile.spans;
  std::vector<DrawnInterval> drawn(spans.size());
  std::vector<std::vector<std::size_t>> of_stream(profile.streams.size());
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (HasDeviceWork(spans[i])) of_stream[spans[i].stream].push_back(i);
  }
  for (std::vector<std::size_t>& order : of_stream) {
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::tie(spans[a].number, spans[a].device_begin, a) <
             std::tie(spans[b].number, spans[b].device_begin, b);
    });
    bool first = true;
    std::int64_t free_at = 0;
    for (const std::size_t i : order) {
      const ProfiledSpan& span = spans[i];
      DrawnInterval& interval = drawn[i];
      interval.begin = std::max(span.device_begin, span.host_begin);
      if (!first) interval.begin = std::max(interval.begin, free_at);
      interval.end = std::max(span.device_end, interval.begin);
      free_at = interval.end;
      first = false;
    }
  }
  return drawn;
}

// A curve of memory, thinned.
struct MemoryCurve {
  int device = 0;
  bool pinned = false;
  std::vector<MemoryPoint> points;  // by time
};

// Returns a curve for each device and kind of memory that has points: the
// devices in their order, pinned memory after the device's own. Of neighbouring
// points, it keeps those with the most allocated, in flight, and both together,
// and the last; at most `max_points` (4 or more) of a curve.
std::vector<MemoryCurve> ThinnedMemory(const Profile& profile, int max_points) {
  std::vector<MemoryCurve> curves(2 * profile.devices.size());
  for (std::size_t i = 0; i < curves.size(); ++i) {
    curves[i].device = static_cast<int>(i / 2);
    curves[i].pinned = i % 2 == 1;
  }
  for (const MemoryPoint& point : profile.memory) {
    curves[2 * point.device + (point.pinned ? 1 : 0)].points.push_back(point);
  }
  std::vector<MemoryCurve> present;
  for (MemoryCurve& curve : curves) {
    if (curve.points.empty()) continue;
    curve.points = Thinned(curve.points, max_points);
    present.push_back(std::move(curve));
  }
  return present;
}

// "memory of cpu:0", "pinned memory of cuda:0".
std::string MemoryCurveName(const Profile& profile, const MemoryCurve& curve) {
  return absl::StrCat(curve.pinned ? "pinned memory of " : "memory of ",
                      profile.devices[curve.device].device.ToString());
}

// Why an operation has no device time: a phrase; "" for kMeasured.
const char* WhyNoDeviceTime(DeviceTime device_time) {
  constexpr const char* kReasons[] = {
      "", "none: it launches nothing on a device",
      "none: it failed, or was skipped after an earlier failure",
      "not measured; the notes say why"};
  return kReasons[static_cast<int>(device_time)];
}

// PyTorch's category of a call, in the order of ProfiledKind: what waits is one
// of the runtime's functions.
const char* HostCategory(ProfiledKind kind) {
  constexpr const char* kCategories[] = {"cpu_op",       "cpu_op",
                                         "cpu_op",       "cuda_runtime",
                                         "cuda_runtime", "user_annotation"};
  return kCategories[static_cast<int>(kind)];
}

bool IsCopy(const ProfiledSpan& span) {
  constexpr const char* kCopies[] = {"clone", "contiguous", "copy",
                                     "from_vector", "to"};
  return std::count(std::begin(kCopies), std::end(kCopies), span.name) > 0;
}

// The description of a device, or its name where there is none.
std::string DescriptionOf(const ProfiledDevice& device) {
  return device.description.empty() ? device.device.ToString()
                                    : device.description;
}

// Members stay in the order in which they are written.
using Json = nlohmann::ordered_json;

// Text that is not UTF-8 becomes U+FFFD.
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
      if (!device.peaks.measured()) continue;
      other["peaks"].push_back(device.peaks.ToText(device.device.ToString()));
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
      args["stream_name"] = profile_.streams[span.stream].name;
      args["number"] = span.number;
    }
    if (span.allocated_bytes != 0) {
      args["allocated_bytes"] = span.allocated_bytes;
    }
    args["host_us"] = Micros(span.host_nanos());
    if (HasDeviceWork(span)) {
      args["queue_us"] = Micros(span.queue_nanos());
      args["device_us"] = Micros(span.device_nanos());
      if (span.cost.bytes > 0) {
        args["flop"] = span.cost.flop;
        args["bytes"] = span.cost.bytes;
      }
      const Bound bound = BoundOf(profile_, span);
      if (bound.kind != BoundKind::kNone) {
        args["bound"] = kBoundNames[static_cast<int>(bound.kind)];
        args["bound_us"] = 1e6 * bound.seconds;
      }
    } else if (span.kind == ProfiledKind::kOperation ||
               span.kind == ProfiledKind::kView) {
      args["no_device_time"] = WhyNoDeviceTime(span.device_time);
    }
    return args;
  }

  void WriteSlice(const std::string& name, const char* category, Json args,
                  int process, int track, std::int64_t begin,
                  std::int64_t end) {
    Json slice = EventAt(begin, "X", process, track);
    slice["dur"] = Micros(end - begin);
    slice["name"] = name;
    slice["cat"] = category;
    slice["args"] = std::move(args);
    Write(slice);
  }

  // An end of the arrow from a request to its execution. Viewers bind it to the
  // slice that was opened last, so it must follow its slice in the file.
  void WriteArrow(const char* phase, std::size_t id, int process, int track,
                  std::int64_t time) {
    Json arrow = EventAt(time, phase, process, track);
    arrow["id"] = id;
    arrow["name"] = "ac2g";
    arrow["cat"] = "ac2g";
    if (*phase == 'f') arrow["bp"] = "e";
    Write(arrow);
  }

  void WriteSpans() {
    const std::vector<DrawnInterval> drawn = DrawnDeviceWork(profile_);
    for (std::size_t i = 0; i < profile_.spans.size(); ++i) {
      if (!fit_.kept[i]) continue;
      const ProfiledSpan& span = profile_.spans[i];
      const int thread = ThreadTrack(span.thread);
      const bool has_work = HasDeviceWork(span);
      Json args = Arguments(span);
      if (has_work) args["correlation"] = i + 1;
      WriteSlice(span.name, HostCategory(span.kind), args, kFrontEnd, thread,
                 span.host_begin, span.host_end);
      if (!has_work) continue;
      WriteArrow("s", i + 1, kFrontEnd, thread, span.host_begin);
      const int device = profile_.streams[span.stream].device;
      const int process = DeviceProcess(device);
      const int stream = StreamTrack(span.stream);
      args["device"] = device;
      args["stream"] = stream;
      const bool copies = IsCopy(span);
      WriteSlice(copies ? absl::StrCat("Memcpy (", span.name, ")") : span.name,
                 copies ? "gpu_memcpy" : "kernel", std::move(args), process,
                 stream, drawn[i].begin, drawn[i].end);
      WriteArrow("f", i + 1, process, stream, drawn[i].begin);
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
        counter["args"]["bytes in flight"] = point.in_flight;
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
