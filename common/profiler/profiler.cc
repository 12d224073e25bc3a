#include "common/profiler/profiler.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/console/language.h"
#include "common/base/ticks.h"
#include "common/device/device_table.h"
#include "common/device/stream.h"
#include "common/profiler/collector.h"
#include "common/profiler/peaks.h"
#include "common/profiler/profile.h"

namespace d2l {
namespace internal {
namespace {

// A written record, its thread, and copies of what calls are sorted by: a sort
// that read the records would wait for memory.
struct Call {
  const CallRecord* record;
  const OpCost* cost;
  int thread;
  std::int64_t begin;
  std::int64_t end;
};

// The end of a range that has not ended.
constexpr std::int64_t kOpen = std::numeric_limits<std::int64_t>::max();

std::vector<Call> WrittenCalls(const std::vector<ChunkPtr>& chunks) {
  std::vector<Call> calls;
  calls.reserve(chunks.size() * Chunk::kRecords);
  for (const ChunkPtr& chunk : chunks) {
    const std::uint32_t used = chunk->used.load(std::memory_order_acquire);
    for (std::uint32_t i = 0; i < used; ++i) {
      const CallRecord& record = chunk->records[i];
      if (record.name == nullptr) continue;
      const std::int64_t end = record.host_end.load(std::memory_order_acquire);
      calls.push_back({&record, &chunk->costs[i], chunk->thread,
                       record.host_begin, end == 0 ? kOpen : end});
    }
  }
  return calls;
}

void WaitForAll(const std::vector<Call>& calls) {
  std::unordered_map<Stream*, std::uint64_t> lasts;
  for (const Call& call : calls) {
    if (call.record->stream == nullptr) continue;
    std::uint64_t& last = lasts[call.record->stream];
    last = std::max(last, call.record->number);
  }
  for (const auto& [stream, last] : lasts) stream->WaitFor(last);
}

// The calls of one thread are mostly in order.
template <typename Less>
void SortIfNeeded(std::vector<Call>* calls, Less less) {
  if (std::is_sorted(calls->begin(), calls->end(), less)) return;
  std::stable_sort(calls->begin(), calls->end(), less);
}

std::vector<ProfiledInput> InputsOf(const CallRecord& record) {
  if (record.inputs == CallRecord::kManyInputs) return *record.many;
  std::vector<ProfiledInput> inputs(record.inputs);
  int used = 0;
  for (int i = 0; i < record.inputs; ++i) {
    inputs[i].dtype = record.dtypes[i];
    inputs[i].shape = Shape::Filled(record.ranks[i], 0);
    for (int d = 0; d < record.ranks[i]; ++d) {
      inputs[i].shape[d] = record.sizes[used++];
    }
  }
  return inputs;
}

// Converts the records of threads to plain data: makes the spans, and the
// streams and devices that they name.
class Builder {
 public:
  // Times in ticks were taken between `begin` and `end`, or soon after.
  Builder(Profile* profile, const TickScale& begin, const TickScale& end)
      : profile_(*profile), begin_(begin), end_(end) {}

  // Makes the spans, in the order that Profile::spans has. It is the calls that
  // are sorted, since a span is ten times as large.
  void AddSpans(std::vector<Call> calls) {
    SortIfNeeded(&calls, [](const Call& a, const Call& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
    });
    // The thread with the first call is the first.
    for (Call& call : calls) call.thread = ThreadOf(call.thread);
    SortIfNeeded(&calls, [](const Call& a, const Call& b) {
      return a.thread < b.thread;
    });
    profile_.spans.reserve(calls.size());
    for (const Call& call : calls) Add(call);
    Nest();
  }

  void AddMemory(std::vector<TimedMemoryRecord> records) {
    std::sort(records.begin(), records.end(),
              [](const TimedMemoryRecord& a, const TimedMemoryRecord& b) {
                return a.record.time < b.record.time;
              });
    std::map<int, OpenSpans> threads;  // by the collector's number
    for (const TimedMemoryRecord& timed : records) {
      const MemoryRecord& record = timed.record;
      MemoryPoint point;
      point.time = ToNanos(record.time);
      point.device = DeviceOf(record.device);
      point.pinned = record.pinned;
      point.change = record.change;
      point.allocated = record.allocated;
      point.in_flight = record.in_flight;
      point.reserved = record.reserved;
      point.span = SpanAround(timed.thread, point.time, &threads);
      if (point.span >= 0 && record.change > 0 && !record.pinned) {
        profile_.spans[point.span].allocated_bytes += record.change;
      }
      profile_.memory.push_back(point);
    }
  }

  void AddNotes() {
    if (open_ > 0) {
      profile_.notes.push_back(
          open_ == 1
              ? Say("1 range was still open when the recording ended; it is "
                    "counted up to there.")
              : Say("%d ranges were still open when the recording "
                    "ended; they are counted up to there.",
                    open_));
    }
    if (unmeasured_ > 0) {
      profile_.notes.push_back(
          unmeasured_ == 1
              ? Say("1 operation has no device time: the device did the work, "
                    "but "
                    "could not take the time.")
              : Say("%d operations have no device time: the device "
                    "did the work, but could not take the time.",
                    unmeasured_));
    }
  }

 private:
  void Add(const Call& call) {
    const CallRecord& record = *call.record;
    ProfiledSpan span;
    span.kind = record.kind;
    span.name = record.name;
    span.thread = call.thread;
    span.requested_at = {record.file, record.line};
    span.requested_by = {record.by_file, record.by_line};
    span.host_begin = ToNanos(call.begin);
    if (call.end == kOpen) {
      span.host_end = std::max(profile_.end, span.host_begin);
      ++open_;
    } else {
      span.host_end = ToNanos(call.end);
    }
    span.inputs = InputsOf(record);
    span.in_place = record.in_place;
    if (record.kind == ProfiledKind::kOperation) span.cost = *call.cost;
    if (record.stream != nullptr) AddDeviceTime(record, &span);
    profile_.spans.push_back(std::move(span));
  }

  // Finds the parents of the spans.
  void Nest() {
    std::vector<ProfiledSpan>& spans = profile_.spans;
    std::vector<int> around;
    for (std::size_t i = 0; i < spans.size(); ++i) {
      ProfiledSpan& span = spans[i];
      while (!around.empty() &&
             (spans[around.back()].thread != span.thread ||
              (spans[around.back()].host_end <= span.host_begin &&
               spans[around.back()].host_end < span.host_end))) {
        around.pop_back();
      }
      if (!around.empty()) {
        span.parent = around.back();
        // Ranges may end in another order than they began: each ends no later
        // than the one around it.
        span.host_end = std::min(span.host_end, spans[around.back()].host_end);
      }
      around.push_back(static_cast<int>(i));
    }
  }

  std::int64_t ToNanos(std::int64_t ticks) const {
    return TickScale::ToNanos(ticks, begin_, end_);
  }

  int ThreadOf(int number) {
    const auto [entry, is_new] =
        threads_.emplace(number, static_cast<int>(threads_.size()));
    if (is_new) {
      profile_.threads.push_back(
          {threads_.size() == 1 ? "front end"
                                : absl::StrCat("front end ", threads_.size())});
    }
    return entry->second;
  }

  int DeviceOf(Device device) {
    const auto [entry, is_new] =
        devices_.emplace(device, static_cast<int>(devices_.size()));
    if (is_new) {
      profile_.devices.push_back(
          {device, GetDeviceInfo(device).Describe(), {}});
    }
    return entry->second;
  }

  int StreamOf(const Stream* stream) {
    const auto [entry, is_new] =
        streams_.emplace(stream, static_cast<int>(streams_.size()));
    if (is_new) {
      profile_.streams.push_back({stream->name(), DeviceOf(stream->device())});
    }
    return entry->second;
  }

  void AddDeviceTime(const CallRecord& record, ProfiledSpan* span) {
    span->stream = StreamOf(record.stream);
    span->number = record.number;
    if (record.stream->FailureOf(record.number) != nullptr) {
      span->device_time = DeviceTime::kNotRun;
      return;
    }
    const std::int64_t end = record.stamps.end.load(std::memory_order_acquire);
    if (end == 0) {
      span->device_time = DeviceTime::kUnmeasured;
      ++unmeasured_;
      return;
    }
    span->device_time = DeviceTime::kMeasured;
    span->device_begin = record.stamps.begin.load(std::memory_order_relaxed);
    span->device_end = end;
  }

  // A thread's spans up to a time: those that have not ended, each within the
  // one before it, and the next that begins.
  struct OpenSpans {
    std::vector<int> open;
    std::size_t next = 0;
  };

  // The innermost span of the thread at that time; -1 for none. The calls are
  // in the order of time, and share `threads`.
  int SpanAround(int thread, std::int64_t time,
                 std::map<int, OpenSpans>* threads) const {
    const auto of_profile = threads_.find(thread);
    if (of_profile == threads_.end()) return -1;
    const std::vector<ProfiledSpan>& spans = profile_.spans;
    const auto [entry, is_new] = threads->try_emplace(thread);
    auto& [open, next] = entry->second;
    if (is_new) {
      next = std::partition_point(spans.begin(), spans.end(),
                                  [&](const ProfiledSpan& span) {
                                    return span.thread < of_profile->second;
                                  }) -
             spans.begin();
    }
    for (; next < spans.size() && spans[next].thread == of_profile->second &&
           spans[next].host_begin <= time;
         ++next) {
      while (!open.empty() && open.back() != spans[next].parent) {
        open.pop_back();
      }
      open.push_back(static_cast<int>(next));
    }
    while (!open.empty() && spans[open.back()].host_end < time) {
      open.pop_back();
    }
    return open.empty() ? -1 : open.back();
  }

  Profile& profile_;
  const TickScale& begin_;
  const TickScale& end_;
  std::map<int, int> threads_;  // the collector's number -> the profile's
  std::map<Device, int> devices_;
  std::unordered_map<const Stream*, int> streams_;
  std::int64_t open_ = 0;
  std::int64_t unmeasured_ = 0;
};

}  // namespace

Profile Recording::ToProfile() const {
  Profile profile;
  profile.begin = begin_.nanos();
  profile.end = end_->nanos();
  std::vector<Call> calls = WrittenCalls(chunks_);
  WaitForAll(calls);
  Builder builder(&profile, begin_, *end_);
  builder.AddSpans(std::move(calls));
  builder.AddMemory(memory_);
  builder.AddNotes();
  if (options_.with_bounds) {
    for (ProfiledDevice& device : profile.devices) {
      device.peaks = PeaksOf(device.device);
    }
  }
  profile.cut = cut_;
  if (cut_ > 0) {
    profile.notes.push_back(
        Say("%d calls were not recorded: there was room for %d "
            "(ProfilerOptions::max_records).",
            cut_, options_.max_records));
  }
  if (memory_cut_ > 0) {
    profile.notes.push_back(
        Say("%d allocations and returns of memory were not recorded: there was "
            "room for %d (ProfilerOptions::max_records).",
            memory_cut_, options_.max_records));
  }
  std::vector<Profile> parts;
  parts.push_back(std::move(profile));
  return Merge(std::move(parts));  // sorts it
}

}  // namespace internal

using internal::Collector;

void RecordFunction::Begin(const std::string& name, SourceLocation at) {
  record_ = Collector::Get().BeginRange(name, at, &chunk_);
}

void RecordFunction::End() {
  record_->host_end.store(NowTicks(), std::memory_order_release);
}

Profiler::Profiler(ProfilerOptions options) : options_(options) {
  if (options_.max_records < 1) {
    throw std::invalid_argument(
        absl::StrFormat("[profiler] max_records is %d; it must be at least 1",
                        options_.max_records));
  }
}

Profiler::~Profiler() {
  if (running_) Collector::Get().Stop(*recording_);
}

void Profiler::Start(SourceLocation at) {
  if (running_) {
    throw std::logic_error(absl::StrFormat(
        "[profiler] started at %s, but it runs already, since %s; call Stop "
        "first, or use another Profiler",
        at.ToString(), started_at_.ToString()));
  }
  profile_.reset();
  recording_ = Collector::Get().Start(options_);
  running_ = true;
  started_at_ = at;
}

void Profiler::Stop(SourceLocation at) {
  if (!running_) {
    throw std::logic_error(absl::StrCat(
        "[profiler] stopped at ", at.ToString(), ", but ",
        stopped_at_.known()
            ? absl::StrCat("it was stopped before, at ", stopped_at_.ToString())
            : std::string("it was never started"),
        "; each Stop needs a Start"));
  }
  Collector::Get().Stop(*recording_);
  running_ = false;
  stopped_at_ = at;
}

const Profile& Profiler::profile(SourceLocation at) {
  if (running_) {
    throw std::logic_error(absl::StrFormat(
        "[profiler] the result was asked for at %s, but the profiler still "
        "runs, since %s; call Stop first",
        at.ToString(), started_at_.ToString()));
  }
  if (!profile_.has_value()) {
    profile_ = recording_ == nullptr ? Profile() : recording_->ToProfile();
    recording_ = nullptr;
  }
  return *profile_;
}

d2l::KeyAverages Profiler::KeyAverages(SourceLocation at) {
  return d2l::KeyAverages(profile(at));
}

}  // namespace d2l
