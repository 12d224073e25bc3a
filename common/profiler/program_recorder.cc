#include "common/profiler/program_recorder.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
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
    // Devices write stamps until these are done.
    for (Stream* stream : streams) stream->Record().state()->Block();
  }

  std::vector<Device> devices() {
    const MutexLock lock(mutex_);
    return devices_;
  }
  // machine: for wake-ups that the program does not show often enough.
  RecordedProgram Build(const PlayedMachine& machine, std::size_t enough);

 private:
  using Kind = PlayedRequest::Kind;
  // A recorded request; times are in ticks, except those of stamps.
  struct Entry {
    PlayedRequest request;
    int previous = -1;       // of its thread
    std::uint64_t slot = 0;  // its number in the stream
    const OpStamps* stamps = nullptr;
    std::int64_t asks = 0, then = 0;  // their durations
    std::int64_t asked = 0, returned = 0;
  };
  // A thread's own time is the clock's, less `left_out`.
  struct Thread {
    int number = 0;
    int entry = -1;             // the last
    std::int64_t left_out = 0;  // the recorder's calls, and waits for room
    std::int64_t seen = 0;      // in its own time: the end of its entries
    // Of the operation that is being enqueued.
    OpStamps* stamps = nullptr;
    std::int64_t left_out_before = 0;
  };
  // Leaves out the thread's time from `begin` to the end of this object.
  struct Call {
    Thread& thread;
    const std::int64_t begin;
    ~Call() { thread.left_out += NowTicks() - begin; }
  };
  struct OfStream {
    Stream* stream;
    int device;  // in devices_
    std::vector<int> entries = {};
    std::vector<int> events = {};  // those that its next entry waits for
  };

  Thread& ThisThread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto [found, first] =
        threads_.try_emplace(std::this_thread::get_id());
    Thread& thread = found->second;
    if (first) {
      thread.number = static_cast<int>(threads_.size()) - 1;
      thread.seen = begin_ticks_;
      AddEmpty(thread, begin_ticks_);
    }
    return thread;
  }

  int IndexOf(Stream* stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto found =
        std::find_if(streams_.begin(), streams_.end(),
                     [&](const OfStream& of) { return of.stream == stream; });
    const auto index = static_cast<int>(found - streams_.begin());
    if (found != streams_.end()) return index;
    const Device device = stream->device();
    const auto known = std::find(devices_.begin(), devices_.end(), device);
    streams_.push_back({stream, static_cast<int>(known - devices_.begin())});
    if (known == devices_.end()) devices_.push_back(device);
    return index;
  }

  // The thread made no request until then, which is in its own time.
  void SeeOwn(Thread& thread, std::int64_t until)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto own = std::max<std::int64_t>(0, until - thread.seen);
    entries_[thread.entry].then += own;
    thread.seen += own;
  }

  Entry& AddEmpty(Thread& thread, std::int64_t now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Entry& entry = entries_.emplace_back();
    entry.request.thread = thread.number;
    entry.request.stream = PlayedRequest::kHost;
    entry.request.beside = true;
    entry.previous =
        std::exchange(thread.entry, static_cast<int>(entries_.size()) - 1);
    entry.asked = entry.returned = now;
    return entry;
  }

  Entry& Add(Thread& thread, std::int64_t now, Stream* on, std::uint64_t slot,
             const char* name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Entry& entry = AddEmpty(thread, now);
    entry.slot = slot;
    entry.request.stream = IndexOf(on);
    entry.request.name = name;
    OfStream& of = streams_[entry.request.stream];
    entry.request.after = std::exchange(of.events, {});
    if (!of.entries.empty()) {
      entry.request.slots =
          static_cast<int>(slot - entries_[of.entries.back()].slot);
    }
    of.entries.push_back(thread.entry);
    return entry;
  }

  bool wants_times() const override { return true; }

  OpStamps* NewStamps(Stream& stream) override {
    const std::int64_t now = NowTicks();
    const MutexLock lock(mutex_);
    const Call call{ThisThread(), now};
    IndexOf(&stream);  // Stop waits for it, even if the request fails
    call.thread.left_out_before = call.thread.left_out;
    return call.thread.stamps = &stamps_.emplace_back();
  }

  void OnOp(const OpRecord& record) override {
    if (record.host_begin == 0) return;  // began before the recorder
    const MutexLock lock(mutex_);
    Thread& thread = ThisThread();
    const Call call{thread, record.host_end};
    const bool launched = record.stream != nullptr && thread.stamps != nullptr;
    SeeOwn(thread, record.host_begin -
                       (launched ? thread.left_out_before : thread.left_out));
    Entry& entry = launched ? Add(thread, record.host_end, record.stream,
                                  record.number, record.primitive->name())
                            : AddEmpty(thread, record.host_end);
    const std::int64_t asked = record.host_end - thread.left_out;
    entry.asks = asked - std::exchange(thread.seen, asked);
    if (!launched) return;
    entry.stamps = std::exchange(thread.stamps, nullptr);
    PlayedRequest& request = entry.request;
    request.kind = Kind::kOperation;
    request.beside = record.stream->device().type() != DeviceType::kCpu;
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
    if (record.stamps == nullptr) return;  // OnOrder records it
    const std::int64_t now = NowTicks();
    const MutexLock lock(mutex_);
    const Call call{ThisThread(), now};
    SeeOwn(call.thread, now - call.thread.left_out);
    const bool copy = record.kind == StreamRecord::Kind::kCopy;
    Entry& entry = Add(call.thread, now, record.stream, record.number,
                       copy ? "copy" : "host_callback");
    OpStamps& stamps = stamps_.emplace_back();
    stamps.next = std::exchange(*record.stamps, &stamps);
    entry.stamps = &stamps;
    entry.request.kind = copy ? Kind::kCopy : Kind::kCallback;
    entry.request.at = record.requested_at;
    entry.request.cost.bytes = static_cast<std::int64_t>(record.bytes);
  }

  void OnOrder(const OrderRecord& record) noexcept override {
    const std::int64_t now = NowTicks();
    const MutexLock lock(mutex_);
    Thread& thread = ThisThread();
    const Call call{thread, now};
    const bool wait = record.kind == OrderRecord::Kind::kHostWait;
    if (wait) AddWait(thread, record, now);
    SeeOwn(thread, now - thread.left_out);
    if (record.kind == OrderRecord::Kind::kRecord) {
      Add(thread, now, record.stream, record.number - 1, "record");
      events_[record.event] = thread.entry;
    } else if (record.kind == OrderRecord::Kind::kWait) {
      const auto event = events_.find(record.event);
      if (event == events_.end()) return;
      streams_[IndexOf(record.stream)].events.push_back(event->second);
    }
  }

  void AddWait(Thread& thread, const OrderRecord& record, std::int64_t now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    int awaited = -1;
    const PlayedRequest before = entries_[thread.entry].request;
    const std::int64_t from = thread.seen + thread.left_out;
    if (const auto event = events_.find(record.event); event != events_.end()) {
      awaited = event->second;
    } else if (record.stream != nullptr) {
      const OfStream& of = streams_[IndexOf(record.stream)];
      // The last entry below this number. If no entry follows it, an entry
      // whose work takes no time stands for all work of the stream.
      auto last = of.entries.rbegin();
      const auto end = of.entries.rend();
      while (last != end && entries_[*last].slot >= record.number) ++last;
      if (last == of.entries.rbegin() && (last != end || !of.events.empty())) {
        Add(thread, from, record.stream, record.number - 1, "record");
        awaited = thread.entry;
      } else if (last != end) {
        awaited = *last;
      }
    }
    if (awaited < 0) return;
    Entry& entry = AddEmpty(thread, from);
    entry.request.awaits = {awaited};
    entry.returned = now;
    // Claim replaces these if the wait is within a call with a line.
    entry.request.kind = before.kind;
    entry.request.name = before.name;
    entry.request.at = before.at;
    thread.seen = now - thread.left_out;
  }

  // The last waits, from `begin` on, were within this call.
  void Claim(const char* name, SourceLocation at, std::int64_t begin) {
    const std::int64_t now = NowTicks();
    const MutexLock lock(mutex_);
    const Call call{ThisThread(), now};
    for (int i = call.thread.entry; i >= 0; i = entries_[i].previous) {
      Entry& entry = entries_[i];
      if (entry.returned < begin) break;
      if (entry.request.awaits.empty()) continue;
      entry.request.kind = Kind::kOther;
      entry.request.name = name;
      entry.request.at = at;
      if (begin <= entry.asked) continue;
      entries_[entry.previous].then += begin - entry.asked;
      entry.asked = begin;
    }
    SeeOwn(call.thread, now - call.thread.left_out);
  }

  void OnWait(const WaitRecord& record) noexcept override {
    if (record.full_queue == 0) {
      return Claim(record.what, record.requested_at, record.host_begin);
    }
    const MutexLock lock(mutex_);
    const Call call{ThisThread(), record.host_begin};
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
  std::vector<Device> devices_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, int> events_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, int> writers_ ABSL_GUARDED_BY(mutex_);
  std::int64_t queue_ ABSL_GUARDED_BY(mutex_) =
      StreamOptions().max_queued_operations;  // or that of a full queue
};

RecordedProgram ProgramRecorder::Log::Build(const PlayedMachine& machine,
                                            std::size_t enough) {
  const TickScale end;
  RecordedProgram recorded;
  recorded.machine = machine;
  const MutexLock lock(mutex_);
  recorded.machine.queue = queue_;
  recorded.devices = devices_;
  PlayedProgram& program = recorded.program;
  for (const OfStream& of : streams_) {
    program.device_of.push_back(of.device);
    program.streams.push_back(of.stream->name());
    const DeviceInfo& info = GetDeviceInfo(of.stream->device());
    if (info.kind == DeviceKind::kVirtual) recorded.machine.cores = info.cores;
  }
  const auto since_begin = [&](std::int64_t nanos) {
    return 1e-9 * static_cast<double>(nanos - begin_.nanos());
  };
  const auto at = [&](std::int64_t ticks) {
    return since_begin(TickScale::ToNanos(ticks, begin_, end));
  };
  std::vector<PlayedTimes> seen;
  for (const Entry& entry : entries_) {
    PlayedRequest& request = program.requests.emplace_back(entry.request);
    request.ask = at(begin_ticks_ + entry.asks) - at(begin_ticks_);
    request.then = at(begin_ticks_ + entry.then) - at(begin_ticks_);
    PlayedTimes& times = seen.emplace_back();
    times.asked = at(entry.asked);
    times.returned = at(entry.returned);
    if (entry.stamps != nullptr && entry.stamps->end > 0) {
      times.end = since_begin(entry.stamps->end);
      times.begin = since_begin(entry.stamps->begin);
    }
    recorded.seconds = std::max({recorded.seconds, times.end, times.returned});
  }
  FindWakeUps(std::move(seen), enough, program, recorded.machine);
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
    return log.Build({}, 1).machine;
  };
  // First, no thread idles for long; then all idle for as long as an operation
  // takes; and then for long.
  PlayedMachine busy = record([&] {
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
  const double soon = machine.wake_up[WakeUp::kReturnSoon];
  // A worker waits for another's event as the front end waits for a result.
  machine.wake_up[WakeUp::kEvent] = soon;
  if (soon < 3 * busy.wake_up[WakeUp::kReturnSoon]) return machine;
  // With more workers than cores threads sleep almost at once.
  machine.sleeps_after = 6e-6;
  machine.wake_up[WakeUp::kLate] = machine.wake_up[WakeUp::kSoon];
  for (const WakeUp kind : {WakeUp::kSoon, WakeUp::kReturnSoon}) {
    machine.wake_up[kind] = busy.wake_up[kind];
  }
  return machine;
}

RecordedProgram ProgramRecorder::Stop() {
  log_->Stop();
  const std::vector<Device> devices = log_->devices();
  return devices.empty() ? RecordedProgram() : log_->Build(Measure(devices), 9);
}

}  // namespace d2l
