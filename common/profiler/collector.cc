#include "common/profiler/collector.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ticks.h"
#include "common/device/backend.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/device_times.h"
#include "common/device/keep_until_passed.h"
#include "common/device/stream.h"
#include "common/ops/primitive.h"

namespace d2l {
namespace internal {

std::atomic<bool> profiling{false};

namespace {

// Chunks that were used and can be used again: their pages are there already,
// which fresh memory would have to be given one by one.
class ChunkPool {
 public:
  // Never destroyed: threads may return chunks until the process ends.
  static ChunkPool& Get() {
    static ChunkPool& pool = *new ChunkPool;
    return pool;
  }

  ChunkPtr Take() {
    std::unique_ptr<Chunk> chunk;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      free_.reserve(kMostFree);  // Return allocates nothing
      if (!free_.empty()) {
        chunk = std::move(free_.back());
        free_.pop_back();
      }
    }
    if (chunk == nullptr) chunk.reset(new Chunk);
    return ChunkPtr(chunk.release(), [](Chunk* done) {
      ChunkPool::Get().Return(std::unique_ptr<Chunk>(done));
    });
  }

 private:
  static constexpr std::size_t kMostFree = 128;  // 8 MiB

  void Return(std::unique_ptr<Chunk> chunk) {
    std::vector<Stream*> unfinished;
    const std::uint32_t used = chunk->used.load(std::memory_order_acquire);
    // The one behind the last may have been begun.
    const std::uint32_t end = std::min(used + 1, Chunk::kRecords);
    for (std::uint32_t i = 0; i < end; ++i) {
      CallRecord& record = chunk->records[i];
      if (record.stream == nullptr) continue;
      if (record.stamps.end.load(std::memory_order_acquire) == 0) {
        unfinished.push_back(record.stream);
      }
    }
    if (!unfinished.empty()) {
      KeepUntilPassed(std::shared_ptr<Chunk>(std::move(chunk)), unfinished);
      return;
    }
    chunk->names.clear();
    chunk->inputs.clear();
    for (std::uint32_t i = 0; i < end; ++i) chunk->records[i].stream = nullptr;
    chunk->used.store(0, std::memory_order_relaxed);
    std::lock_guard<std::mutex> lock(mutex_);
    if (free_.size() < kMostFree) free_.push_back(std::move(chunk));
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Chunk>> free_;
};

int NewThreadNumber() {
  static std::atomic<int> next{0};
  return next.fetch_add(1, std::memory_order_relaxed);
}

void SetPlace(CallRecord& record, SourceLocation at, SourceLocation by) {
  record.file = at.file();
  record.line = at.line();
  record.by_file = by.file();
  record.by_line = by.line();
}

void SetInputs(Chunk& chunk, CallRecord& record,
               absl::Span<const Tensor* const> inputs) {
  int used = 0;
  bool fits = inputs.size() <= CallRecord::kMaxInputs;
  for (std::size_t i = 0; fits && i < inputs.size(); ++i) {
    const Shape& shape = inputs[i]->shape();
    record.dtypes[i] = inputs[i]->dtype();
    record.ranks[i] = static_cast<std::uint8_t>(shape.rank());
    if (used + shape.rank() > CallRecord::kMaxSizes) fits = false;
    for (int d = 0; fits && d < shape.rank(); ++d) {
      fits = shape[d] <= std::numeric_limits<std::int32_t>::max();
      record.sizes[used++] = static_cast<std::int32_t>(shape[d]);
    }
  }
  if (fits) {
    record.inputs = static_cast<std::uint8_t>(inputs.size());
    return;
  }
  chunk.inputs.emplace_front();
  for (const Tensor* input : inputs) {
    chunk.inputs.front().push_back({input->shape(), input->dtype()});
  }
  record.inputs = CallRecord::kManyInputs;
  record.many = &chunk.inputs.front();
}

}  // namespace

std::shared_ptr<DeviceTimes> BeginTimingOfGpus() {
  for (const DeviceInfo& info : Devices()) {
    if (info.device.type() == DeviceType::kCuda) {
      return CudaBackend().BeginTiming();
    }
  }
  return nullptr;
}

// What a thread writes to.
struct Collector::ThreadLog {
  ThreadLog() = default;
  ~ThreadLog() {
    gone = true;
    if (chunk == nullptr) return;
    Collector& collector = Collector::Get();
    std::lock_guard<std::mutex> lock(collector.mutex_);
    collector.Retire(chunk);
  }

  // Static objects may still ask for work when this is gone.
  static thread_local bool gone;

  ChunkPtr chunk;  // null if there is no room, or nothing to record
  std::uint64_t generation = 0;
  std::uint32_t used = 0;  // of the chunk
  bool pending = false;    // NewStamps gave out record `used`
  const int thread = NewThreadNumber();
};
thread_local bool Collector::ThreadLog::gone = false;

Collector& Collector::Get() {
  static Collector& collector = *new Collector;
  return collector;
}

Collector::ThreadLog* Collector::Log() {
  thread_local ThreadLog log;
  return ThreadLog::gone ? nullptr : &log;
}

std::shared_ptr<Recording> Collector::Start(const RecordingOptions& options) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (recordings_.empty()) {
    times_ = options.begin_timing();
    const bool without = times_ != nullptr && times_->available();
    wish_.store(without ? OpStamps::kOptional : 0, std::memory_order_relaxed);
  }
  auto recording = std::make_shared<Recording>(options, times_);
  recording->uncollected_at_start_ =
      uncollected_.load(std::memory_order_relaxed);
  recordings_.push_back(recording);
  recording->generation_ =
      generation_.fetch_add(1, std::memory_order_release) + 1;
  profiling.store(true, std::memory_order_release);
  if (recordings_.size() == 1) {
    AddProcessOpListener(this);
    AddDeviceListener(this, kWaits);
  }
  if (options.memory && recordings_of_memory_++ == 0) {
    AddDeviceListener(this, kMemory);
  }
  return recording;
}

void Collector::Stop(Recording& recording) {
  const TickScale now;
  std::lock_guard<std::mutex> lock(mutex_);
  recording.end_ = now;
  recording.cut_ += uncollected_.load(std::memory_order_relaxed) -
                    recording.uncollected_at_start_;
  for (const Outstanding& one : outstanding_) {
    if (one.MissedBy(recording)) recording.cut_ += one.chunk->used.load();
  }
  for (Outstanding& one : outstanding_) {
    one.takers.erase(
        std::remove(one.takers.begin(), one.takers.end(), &recording),
        one.takers.end());
  }
  recordings_.erase(
      std::find_if(recordings_.begin(), recordings_.end(),
                   [&](const auto& r) { return r.get() == &recording; }));
  generation_.fetch_add(1, std::memory_order_release);
  if (recording.options_.memory && --recordings_of_memory_ == 0) {
    RemoveDeviceListener(this, kMemory);
  }
  if (!recordings_.empty()) return;
  outstanding_.clear();
  if (times_ != nullptr) times_->End();
  times_ = nullptr;
  profiling.store(false, std::memory_order_release);
  RemoveProcessOpListener(this);
  RemoveDeviceListener(this, kWaits);
}

bool Collector::Outstanding::MissedBy(const Recording& recording) const {
  return generation >= recording.generation_ &&
         std::find(takers.begin(), takers.end(), &recording) == takers.end();
}

void Collector::Retire(const ChunkPtr& chunk) {
  const auto one =
      std::find_if(outstanding_.begin(), outstanding_.end(),
                   [&](const Outstanding& o) { return o.chunk == chunk; });
  if (one == outstanding_.end()) return;
  const std::int64_t used = chunk->used.load(std::memory_order_relaxed);
  for (const auto& recording : recordings_) {
    if (one->MissedBy(*recording)) {
      recording->cut_ += used;
    } else if (one->generation >= recording->generation_) {
      recording->records_ += used;
    }
  }
  outstanding_.erase(one);
}

void Collector::Renew(ThreadLog& log) {
  ChunkPtr old = std::move(log.chunk);  // let go of without the lock
  log.chunk = nullptr;
  log.used = 0;
  std::lock_guard<std::mutex> lock(mutex_);
  log.generation = generation_.load(std::memory_order_relaxed);
  if (old != nullptr) Retire(old);
  Outstanding one;
  one.generation = log.generation;
  for (const auto& recording : recordings_) {
    if (recording->records_ < recording->options_.max_records) {
      one.takers.push_back(recording.get());
    }
  }
  if (one.takers.empty()) return;
  one.chunk = ChunkPool::Get().Take();
  one.chunk->thread = log.thread;
  for (Recording* taker : one.takers) taker->chunks_.push_back(one.chunk);
  log.chunk = one.chunk;
  outstanding_.push_back(std::move(one));
}

CallRecord* Collector::Next(ThreadLog& log) {
  if (log.pending) {
    // The last request failed after it had asked for stamps.
    Commit(log);
    log.pending = false;
  }
  if (log.generation != generation_.load(std::memory_order_acquire) ||
      (log.chunk != nullptr && log.used == Chunk::kRecords)) {
    try {
      Renew(log);
    } catch (const std::bad_alloc&) {
      // Destructors end waits: what has no room is counted, and never throws.
      log.chunk = nullptr;
    }
  }
  if (log.chunk == nullptr) {
    if (on()) uncollected_.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  return &log.chunk->records[log.used];
}

void Collector::Commit(ThreadLog& log) {
  log.chunk->used.store(++log.used, std::memory_order_release);
}

OpStamps* Collector::NewStamps(Stream& stream) {
  ThreadLog* const log = Log();
  CallRecord* const record = log == nullptr ? nullptr : Next(*log);
  if (record == nullptr) return nullptr;
  record->stamps.begin.store(wish_.load(std::memory_order_relaxed),
                             std::memory_order_relaxed);
  record->stamps.end.store(0, std::memory_order_relaxed);
  record->stream = &stream;
  record->name = nullptr;
  log->pending = true;
  return &record->stamps;
}

void Collector::OnOp(const OpRecord& op) {
  ThreadLog* const log = Log();
  if (log == nullptr) return;
  CallRecord* record = nullptr;
  if (op.stream == nullptr) {
    record = Next(*log);
    if (record == nullptr) return;
    record->stream = nullptr;
    record->kind = ProfiledKind::kView;
  } else {
    if (!log->pending) return;  // there was no room, and it has been counted
    log->pending = false;
    record = &log->chunk->records[log->used];
    record->kind = ProfiledKind::kOperation;
  }
  record->number = op.number;
  record->name = op.primitive->name();
  record->host_begin = op.host_begin;
  record->host_end.store(op.host_end, std::memory_order_relaxed);
  record->in_place = op.in_place;
  SetPlace(*record, op.requested_at, op.requested_by);
  SetInputs(*log->chunk, *record, op.inputs);
  Commit(*log);
}

void Collector::AfterRead(const ReadRecord& read) {
  ThreadLog* const log = Log();
  CallRecord* const record = log == nullptr ? nullptr : Next(*log);
  if (record == nullptr) return;
  record->stream = nullptr;
  record->name = read.reader;
  record->host_begin = read.host_begin;
  record->host_end.store(read.host_end, std::memory_order_relaxed);
  record->kind = ProfiledKind::kRead;
  record->in_place = false;
  SetPlace(*record, read.requested_at, op_context.requested_by);
  SetInputs(*log->chunk, *record, {&read.input, 1});
  Commit(*log);
}

void Collector::OnWait(const WaitRecord& wait) noexcept {
  ThreadLog* const log = Log();
  CallRecord* const record = log == nullptr ? nullptr : Next(*log);
  if (record == nullptr) return;
  record->stream = nullptr;
  record->name = wait.what;
  record->host_begin = wait.host_begin;
  record->host_end.store(wait.host_end, std::memory_order_relaxed);
  record->kind = ProfiledKind::kWait;
  record->in_place = false;
  record->inputs = 0;
  SetPlace(*record, wait.requested_at, op_context.requested_by);
  Commit(*log);
}

CallRecord* Collector::BeginRange(ProfiledKind kind, std::string name,
                                  SourceLocation at, ChunkPtr* chunk) {
  ThreadLog* const log = Log();
  CallRecord* const record = log == nullptr ? nullptr : Next(*log);
  if (record == nullptr) return nullptr;
  log->chunk->names.push_front(std::move(name));
  record->stream = nullptr;
  record->name = log->chunk->names.front().c_str();
  record->kind = kind;
  record->in_place = false;
  record->inputs = 0;
  SetPlace(*record, at, {});
  record->host_end.store(0, std::memory_order_relaxed);
  record->host_begin = NowTicks();
  *chunk = log->chunk;
  Commit(*log);
  return record;
}

void Collector::OnMemory(const MemoryRecord& memory) noexcept {
  ThreadLog* const log = Log();
  if (log == nullptr) return;
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& recording : recordings_) {
    if (!recording->options_.memory) continue;
    if (static_cast<std::int64_t>(recording->memory_.size()) <
        recording->options_.max_records) {
      try {
        recording->memory_.push_back({memory, log->thread});
        continue;
      } catch (const std::bad_alloc&) {
        // Destructors return memory, and may not throw.
      }
    }
    ++recording->memory_cut_;
  }
}

}  // namespace internal
}  // namespace d2l
