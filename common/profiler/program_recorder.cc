#include "common/profiler/program_recorder.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <set>
#include <thread>
#include <unordered_map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"
#include "common/base/source_location.h"
#include "common/base/ticks.h"
#include "common/base/timer.h"
#include "common/device/device_table.h"
#include "common/device/event.h"
#include "common/device/listener.h"
#include "common/device/op_label.h"
#include "common/device/stream.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/record.h"

namespace d2l {
namespace {

double Median(std::vector<double> values) {
  const auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Work that a device did.
struct Interval {
  double begin, end;
  int stream;
};

// When work that could have begun at `ready`, and did at `begin`, got one of so
// many cores. all: what the device did, by begin.
double CoreAt(const std::vector<Interval>& all, int stream, int cores,
              double ready, double begin) {
  std::set<int> others;
  double free = ready;
  auto other = std::lower_bound(
      all.begin(), all.end(), begin,
      [](const Interval& one, double time) { return one.begin < time; });
  while (other != all.begin() && (--other)->end > ready) {
    if (other->stream == stream) continue;
    others.insert(other->stream);
    if (other->end <= begin) free = std::max(free, other->end);
  }
  return static_cast<int>(others.size()) >= cores ? free : ready;
}

}  // namespace

class ProgramRecorder::Log : private OpListener, private DeviceListener {
 public:
  Log() {
    AddProcessOpListener(this);
    AddDeviceListener(this, kStreams | kOrder | kWaits);
  }
  ~Log() override { Stop(); }

  void Stop() {
    if (!std::exchange(listens_, false)) return;
    RemoveDeviceListener(this, kStreams | kOrder | kWaits);
    RemoveProcessOpListener(this);
    std::vector<Stream*> streams;
    {
      const MutexLock lock(mutex_);
      for (const OfStream& of : streams_) streams.push_back(of.stream);
    }
    // Until these are done devices write stamps.
    for (Stream* stream : streams) stream->Record().state()->Block();
  }

  // Of the streams, in the order in which they were seen.
  std::vector<Device> Devices() {
    const MutexLock lock(mutex_);
    std::vector<Device> devices;
    for (const OfStream& of : streams_) {
      const Device device = of.stream->device();
      if (std::count(devices.begin(), devices.end(), device) == 0) {
        devices.push_back(device);
      }
    }
    return devices;
  }
  // measured: for wake-ups that the program does not show often enough; may be
  // null.
  RecordedProgram Build(const PlayedMachine* measured);

 private:
  // A request as it was seen; times in ticks, but for those of stamps.
  struct Entry {
    PlayedRequest request;
    int previous = -1;       // of its thread
    std::uint64_t slot = 0;  // its number in the stream
    std::size_t waits = 0;   // of the stream for events, before it
    const OpStamps* stamps = nullptr;
    std::int64_t asks = 0, then = 0;  // what these took
    std::int64_t asked = 0, waits_from = 0, returned = 0;
  };
  struct Thread {
    int number = 0;
    std::int64_t last = 0;   // when the last call of this had returned
    std::int64_t own = 0;    // what the program did since its last entry
    std::int64_t calls = 0;  // what its calls took
    int entry = -1;          // the last
    std::vector<int> unclaimed = {};  // waits whose line is not known yet
    // Of the operation that is being asked for.
    OpStamps* stamps = nullptr;
    std::int64_t before_stamps = 0, stamps_at = 0;
  };
  // While it lives, this is called, which is not the program's time.
  struct Call {
    Thread& thread;
    const std::int64_t now;
    ~Call() { thread.last = NowTicks(); }
  };
  struct OfStream {
    Stream* stream;
    std::vector<int> entries = {};
    std::vector<int> events = {};  // that it waits for, before its next entry
  };

  static std::int64_t From(std::int64_t begin, std::int64_t end) {
    return std::max<std::int64_t>(0, end - begin);
  }

  Thread& ThisThread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const int number = static_cast<int>(threads_.size());
    return threads_
        .emplace(std::this_thread::get_id(), Thread{number, begin_ticks_})
        .first->second;
  }

  int IndexOf(Stream* stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto found =
        std::find_if(streams_.begin(), streams_.end(),
                     [&](const OfStream& of) { return of.stream == stream; });
    const auto index = static_cast<int>(found - streams_.begin());
    if (found == streams_.end()) streams_.push_back({stream});
    return index;
  }

  Entry& Add(Thread& thread, int stream, std::uint64_t slot, std::int64_t asked)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    // What a thread did before it asked for anything is behind an empty one.
    for (bool first = thread.entry < 0;; first = false) {
      if (thread.entry >= 0) {
        entries_[thread.entry].then += std::exchange(thread.own, 0);
      }
      entries_.push_back({});
      Entry& entry = entries_.back();
      entry.request.thread = thread.number;
      entry.request.stream = first ? PlayedRequest::kHost : stream;
      entry.request.beside = true;
      entry.previous =
          std::exchange(thread.entry, static_cast<int>(entries_.size()) - 1);
      if (first) continue;
      entry.slot = slot;
      entry.asks = std::exchange(thread.calls, 0);
      entry.asked = entry.waits_from = entry.returned = asked;
      if (stream < 0) return entry;
      OfStream& of = streams_[stream];
      entry.request.after = std::exchange(of.events, {});
      entry.waits = entry.request.after.size();
      of.entries.push_back(thread.entry);
      return entry;
    }
  }

  bool wants_times() const override { return true; }

  OpStamps* NewStamps(Stream& stream) override {
    const std::int64_t now = NowTicks();
    const MutexLock lock(mutex_);
    Thread& thread = ThisThread();
    const Call call{thread, now};
    IndexOf(&stream);
    // A request before that failed was the program's time.
    if (thread.stamps != nullptr) {
      thread.own += thread.stamps_at - thread.before_stamps;
    }
    thread.stamps = &stamps_.emplace_back();
    thread.before_stamps = thread.last;
    thread.stamps_at = now;
    return thread.stamps;
  }

  void OnOp(const OpRecord& record) override {
    const MutexLock lock(mutex_);
    Thread& thread = ThisThread();
    const Call call{thread, 0};
    const bool stamped = record.stream != nullptr && thread.stamps != nullptr;
    const std::int64_t before = stamped ? thread.before_stamps : thread.last;
    const std::int64_t begin = std::max(before, record.host_begin);
    thread.own += begin - before;
    if (!stamped) {
      thread.calls += From(begin, record.host_end);
      return;
    }
    thread.calls +=
        From(begin, thread.stamps_at) + From(thread.last, record.host_end);
    Entry& entry =
        Add(thread, IndexOf(record.stream), record.number, record.host_end);
    entry.stamps = std::exchange(thread.stamps, nullptr);
    PlayedRequest& request = entry.request;
    request.beside = record.stream->device().type() != DeviceType::kCpu;
    request.movable = true;
    request.name = record.primitive->name();
    request.at =
        record.requested_by.known() ? record.requested_by : record.requested_at;
    request.cost = record.primitive->Cost(record.inputs, record.output);
    for (const Tensor* input : record.inputs) {
      const auto writer = writers_.find(input->storage()->id());
      if (writer != writers_.end()) request.inputs.push_back(writer->second);
    }
    writers_[record.output.storage()->id()] = thread.entry;
  }

  void OnStream(const StreamRecord& record) override {
    if (record.stamps == nullptr) return;  // OnOrder is told
    const std::int64_t now = NowTicks();
    const MutexLock lock(mutex_);
    Thread& thread = ThisThread();
    const Call call{thread, now};
    thread.own += now - thread.last;
    Entry& entry = Add(thread, IndexOf(record.stream), record.number, now);
    OpStamps& stamps = stamps_.emplace_back();
    stamps.next = std::exchange(*record.stamps, &stamps);
    entry.stamps = &stamps;
    entry.request.name =
        record.kind == StreamRecord::Kind::kCopy ? "copy" : "host_callback";
    entry.request.at = record.requested_at;
    entry.request.cost.bytes = static_cast<std::int64_t>(record.bytes);
  }

  void OnOrder(const OrderRecord& record) noexcept override {
    const std::int64_t now = NowTicks();
    const MutexLock lock(mutex_);
    Thread& thread = ThisThread();
    const Call call{thread, now};
    if (record.kind == OrderRecord::Kind::kHostWait) {
      AddWait(thread, record, now);
      return;
    }
    thread.calls += now - thread.last;
    const int stream = IndexOf(record.stream);
    if (record.kind == OrderRecord::Kind::kRecord) {
      Add(thread, stream, record.number - 1, now).request.name = "record";
      events_[record.event] = thread.entry;
    } else if (const auto event = events_.find(record.event);
               event != events_.end()) {
      streams_[stream].events.push_back(event->second);
    }
  }

  void AddWait(Thread& thread, const OrderRecord& record, std::int64_t now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    int awaited = -1;
    const int before = thread.entry;
    if (record.stream == nullptr) {
      const auto event = events_.find(record.event);
      if (event != events_.end()) awaited = event->second;
    } else {
      const int stream = IndexOf(record.stream);
      const OfStream& of = streams_[stream];
      // The last below this number. If nothing is behind it, work that takes no
      // time stands for all that was asked of the stream.
      auto last = of.entries.rbegin();
      const auto end = of.entries.rend();
      while (last != end && entries_[*last].slot >= record.number) ++last;
      if (last == of.entries.rbegin() && (last != end || !of.events.empty())) {
        Add(thread, stream, record.number - 1, thread.last).request.name =
            "record";
        awaited = thread.entry;
      } else if (last != end) {
        awaited = *last;
      }
    }
    if (awaited < 0) {
      thread.own += now - thread.last;
      return;
    }
    Entry& entry = Add(thread, PlayedRequest::kHost, 0, thread.last);
    entry.request.awaits = {awaited};
    entry.returned = now;
    if (before >= 0) {  // unless it is a call that tells its line
      entry.request.name = entries_[before].request.name;
      entry.request.at = entries_[before].request.at;
    }
    thread.unclaimed.push_back(thread.entry);
  }

  // The last waits were in a call, from `begin` on.
  void Claim(const char* name, SourceLocation at, std::int64_t begin) {
    const std::int64_t now = NowTicks();
    const MutexLock lock(mutex_);
    Thread& thread = ThisThread();
    const Call call{thread, now};
    for (const int number : std::exchange(thread.unclaimed, {})) {
      Entry& entry = entries_[number];
      if (entry.returned < begin) continue;  // of a copy before
      entry.request.name = name;
      entry.request.at = at;
      if (begin <= entry.waits_from) continue;
      entries_[entry.previous].then += begin - entry.waits_from;
      entry.waits_from = begin;
    }
    thread.own += now - thread.last;
  }

  void OnWait(const WaitRecord& record) noexcept override {
    if (record.full_queue == 0) {
      return Claim(record.what, record.requested_at, record.host_begin);
    }
    const MutexLock lock(mutex_);
    Thread& thread = ThisThread();
    const Call call{thread, 0};
    thread.calls += From(thread.last, record.host_begin);
    queue_ = static_cast<std::int64_t>(record.full_queue);
  }

  void AfterRead(const ReadRecord& record) override {
    Claim(record.reader, record.requested_at, record.host_begin);
  }

  const std::int64_t begin_ticks_ = NowTicks();
  const TickScale begin_;
  bool listens_ = true;
  Mutex mutex_;
  std::map<std::thread::id, Thread> threads_ ABSL_GUARDED_BY(mutex_);
  std::deque<Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::deque<OpStamps> stamps_ ABSL_GUARDED_BY(mutex_);
  std::vector<OfStream> streams_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, int> events_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, int> writers_ ABSL_GUARDED_BY(mutex_);
  std::int64_t queue_ ABSL_GUARDED_BY(mutex_) =
      StreamOptions().max_queued_operations;  // or that of one that was full
};

RecordedProgram ProgramRecorder::Log::Build(const PlayedMachine* measured) {
  const TickScale end;
  RecordedProgram recorded;
  recorded.devices = Devices();
  const MutexLock lock(mutex_);
  PlayedProgram& program = recorded.program;
  PlayedMachine& machine = recorded.machine;
  const std::vector<Device>& devices = recorded.devices;
  if (measured != nullptr) machine = *measured;
  machine.queue = queue_;
  for (const OfStream& of : streams_) {
    const Device device = of.stream->device();
    const auto found = std::find(devices.begin(), devices.end(), device);
    program.device_of.push_back(static_cast<int>(found - devices.begin()));
    program.streams.push_back(of.stream->name());
    const DeviceInfo& info = GetDeviceInfo(device);
    if (info.kind == DeviceKind::kVirtual) machine.cores = info.cores;
  }
  const auto at = [&](std::int64_t ticks) {
    return 1e-9 * static_cast<double>(TickScale::ToNanos(ticks, begin_, end) -
                                      begin_.nanos());
  };
  const auto seconds = [&](std::int64_t ticks) {
    return at(begin_ticks_ + ticks) - at(begin_ticks_);
  };
  const auto stamp = [&](const std::atomic<std::int64_t>& nanos) {
    return 1e-9 * static_cast<double>(nanos.load(std::memory_order_acquire) -
                                      begin_.nanos());
  };
  std::vector<std::vector<Interval>> work(devices.size());
  for (const Entry& entry : entries_) {
    if (entry.stamps == nullptr || entry.request.beside) continue;
    const int stream = entry.request.stream;
    work[program.device_of[stream]].push_back(
        {stamp(entry.stamps->begin), stamp(entry.stamps->end), stream});
  }
  for (std::vector<Interval>& all : work) {
    std::sort(all.begin(), all.end(), [](const Interval& a, const Interval& b) {
      return a.begin < b.begin;
    });
  }
  struct Progress {
    double free = 0;
    double idle_since = -std::numeric_limits<double>::infinity();
    std::uint64_t slot = 0;
    bool any = false;
  };
  std::vector<Progress> streams(streams_.size());
  std::vector<double> ends;  // of the work of each entry
  std::array<std::vector<double>, kWakeUps> seen;
  const auto see = [&seen](WakeUp kind, double seconds) {
    seen[static_cast<std::size_t>(kind)].push_back(std::max(0.0, seconds));
    return RecordedWakeUp{kind, std::max(0.0, seconds)};
  };
  for (const Entry& entry : entries_) {
    program.requests.push_back(entry.request);
    PlayedRequest& request = program.requests.back();
    request.ask = seconds(entry.asks);
    request.then = seconds(entry.then);
    const double asked = at(entry.asked);
    double ended = asked;
    if (request.stream >= 0) {
      Progress& stream = streams[request.stream];
      const std::uint64_t places = stream.any ? entry.slot - stream.slot : 1;
      request.slots = static_cast<int>(places);
      double events = 0;
      for (const int event : request.after) {
        events = std::max(events, ends[event]);
      }
      double ready = std::max({asked, stream.free, events});
      ended = ready;
      if (entry.stamps != nullptr && entry.stamps->end > 0) {
        const double begin = stamp(entry.stamps->begin);
        ended = stamp(entry.stamps->end);
        request.work = ended - begin;
        WakeUp kind =
            WakeUpOf(asked, stream.idle_since, events, machine.sleeps_after);
        if (!request.beside) {
          const double core =
              CoreAt(work[program.device_of[request.stream]], request.stream,
                     machine.cores, ready, begin);
          if (core > ready) ready = core, kind = WakeUp::kBehind;
        }
        if (places > 1 + entry.waits) {
          request.work = ended - std::min(ready, begin);  // with what else ran
        } else {
          request.wake_up = see(kind, begin - ready);
        }
        stream.idle_since = ended;
      }
      stream = {ended, stream.idle_since, entry.slot, true};
    }
    ends.push_back(ended);
    recorded.seconds = std::max({recorded.seconds, ended, at(entry.returned)});
    if (request.awaits.empty()) continue;
    const double from = at(entry.waits_from), until = ends[request.awaits[0]];
    if (until <= from) continue;
    const bool late = until - from > machine.sleeps_after;
    request.return_from_wait =
        see(late ? WakeUp::kReturnLate : WakeUp::kReturnSoon,
            at(entry.returned) - until);
  }
  // Whether the program shows enough of a kind.
  const auto shows = [&](WakeUp kind) {
    return seen[static_cast<std::size_t>(kind)].size() >=
           (measured == nullptr ? 1 : 9);
  };
  for (int kind = 1; kind < kWakeUps; ++kind) {
    // One that does not wait shows workers that are hardly ever idle.
    if (!shows(WakeUp(kind)) ||
        (WakeUp(kind) == WakeUp::kSoon && !shows(WakeUp::kReturnSoon))) {
      continue;
    }
    machine.wake_up[kind] = Median(seen[kind]);
  }
  return recorded;
}

ProgramRecorder::ProgramRecorder() : log_(std::make_unique<Log>()) {}

ProgramRecorder::~ProgramRecorder() = default;

PlayedMachine ProgramRecorder::Measure(const std::vector<Device>& devices) {
  constexpr int kInTurn = 100, kRepeats = 15, kLong = 12;
  constexpr std::int64_t kIdleNanos = 300'000;  // so that all sleep
  std::vector<Tensor> of_devices;
  for (const Device device : devices) {
    of_devices.push_back(Ones({128, 128}, device));
    Synchronize(device);
  }
  const Tensor small = Ones({16}, devices[0]);
  const auto record = [](const auto& program) {
    Log log;
    program();
    log.Stop();
    return log.Build(nullptr).machine;
  };
  // No thread idles for long; all do for as long as an operation takes; for
  // long.
  const PlayedMachine busy = record([&] {
    for (int i = 0; i < kInTurn; ++i) WaitToRead(small + 1);
  });
  PlayedMachine machine = record([&] {
    for (int i = 0; i < kInTurn; ++i) {
      for (const Tensor& x : of_devices) WaitToRead(MatMul(x, x));
    }
    for (int i = 0; i < kRepeats; ++i) {
      const Timer timer;
      while (timer.Nanos() < kIdleNanos) {
      }
      for (const Tensor& x : of_devices) {
        Tensor last;
        for (int k = 0; k < kLong; ++k) last = MatMul(x, x);
        WaitToRead(last);
      }
    }
  });
  const auto of = [](auto& one, WakeUp kind) -> auto& {
    return one.wake_up[static_cast<std::size_t>(kind)];
  };
  const double soon = of(machine, WakeUp::kReturnSoon);
  // A worker waits for another's event as the front end for a result.
  of(machine, WakeUp::kEvent) = soon;
  if (soon < 3 * of(busy, WakeUp::kReturnSoon)) return machine;
  // With more workers than cores threads sleep almost at once.
  machine.sleeps_after = 6e-6;
  of(machine, WakeUp::kLate) = of(machine, WakeUp::kSoon);
  of(machine, WakeUp::kSoon) = of(busy, WakeUp::kSoon);
  of(machine, WakeUp::kReturnSoon) = of(busy, WakeUp::kReturnSoon);
  return machine;
}

RecordedProgram ProgramRecorder::Stop() {
  log_->Stop();
  const std::vector<Device> devices = log_->Devices();
  if (devices.empty()) return log_->Build(nullptr);
  const PlayedMachine measured = Measure(devices);
  return log_->Build(&measured);
}

}  // namespace d2l
