#include "common/profiler/collector.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/types/span.h"
#include "common/base/mutex.h"
#include "common/base/ticks.h"
#include "common/device/listener.h"
#include "common/device/memory/host_memory.h"
#include "common/device/stream.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/record.h"
#include "common/profiler/profile.h"
#include "common/tensor/shape.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace internal {

std::atomic<bool> profiling{false};

namespace {

// Chunks for reuse: their pages are mapped already.
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
      const MutexLock lock(mutex_);
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
    // The record behind the last may have been launched.
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
    chunk->takers.clear();
    for (std::uint32_t i = 0; i < end; ++i) chunk->records[i].stream = nullptr;
    chunk->used.store(0, std::memory_order_relaxed);
    const MutexLock lock(mutex_);
    if (free_.size() < kMostFree) free_.push_back(std::move(chunk));
  }

  Mutex mutex_;
  std::vector<std::unique_ptr<Chunk>> free_ ABSL_GUARDED_BY(mutex_);
};

int NewThreadNumber() {
  static std::atomic<int> next{0};
  return next.fetch_add(1, std::memory_order_relaxed);
}

// Sets all fields but the stamps and the inputs.
void Fill(CallRecord& record, ProfiledKind kind, const char* name,
          std::int64_t begin, std::int64_t end, SourceLocation at,
          SourceLocation by) {
  record.kind = kind;
  record.name = name;
  record.in_place = false;
  record.inputs = 0;
  record.host_begin = begin;
  record.host_end.store(end, std::memory_order_relaxed);
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

// A thread's chunk, and its place in it.
struct Collector::ThreadLog {
  ThreadLog() = default;
  ~ThreadLog() {
    gone = true;
    if (chunk == nullptr) return;
    Collector& collector = Collector::Get();
    const MutexLock lock(collector.mutex_);
    collector.Close(chunk);
  }

  CallRecord& next() { return chunk->records[used]; }
  void Commit() {
    launched = false;
    chunk->used.store(++used, std::memory_order_release);
  }

  // Static objects may still request operations when this is gone.
  static thread_local bool gone;

  ChunkPtr chunk;  // null if there is no room, or nothing to record
  std::uint64_t generation = 0;
  std::uint32_t used = 0;  // of the chunk
  bool launched = false;   // NewStamps gave out the next record
  // Waits for room in a queue, of the current or the previous request.
  std::vector<WaitRecord> room_waits;
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

std::shared_ptr<Recording> Collector::Start(const ProfilerOptions& options) {
  const MutexLock lock(mutex_);
  const bool first = recordings_.empty();
  auto recording = std::make_shared<Recording>(options);
  recording->uncollected_at_start_ =
      uncollected_.load(std::memory_order_relaxed);
  recordings_.push_back(recording);
  recording->generation_ =
      generation_.fetch_add(1, std::memory_order_release) + 1;
  if (first) {
    profiling.store(true, std::memory_order_release);
    AddProcessOpListener(this);
    AddDeviceListener(this, kWaits);
  }
  if (options.profile_memory && recordings_of_memory_++ == 0) {
    AddDeviceListener(this, kMemory);
  }
  return recording;
}

void Collector::Stop(Recording& recording) {
  const TickScale now;
  const MutexLock lock(mutex_);
  recording.end_ = now;
  for (const ChunkPtr& chunk : open_) recording.Count(*chunk);
  recording.cut_ += uncollected_.load(std::memory_order_relaxed) -
                    recording.uncollected_at_start_;
  recordings_.erase(
      std::find_if(recordings_.begin(), recordings_.end(),
                   [&](const auto& r) { return r.get() == &recording; }));
  generation_.fetch_add(1, std::memory_order_release);
  if (recording.options_.profile_memory && --recordings_of_memory_ == 0) {
    RemoveDeviceListener(this, kMemory);
  }
  if (!recordings_.empty()) return;
  profiling.store(false, std::memory_order_release);
  RemoveProcessOpListener(this);
  RemoveDeviceListener(this, kWaits);
}

void Recording::Count(const Chunk& chunk) {
  if (chunk.generation < generation_) return;  // given out before the start
  const bool taken = std::find(chunk.takers.begin(), chunk.takers.end(),
                               this) != chunk.takers.end();
  (taken ? records_ : cut_) += chunk.used.load(std::memory_order_relaxed);
}

void Collector::Close(const ChunkPtr& chunk) {
  for (const auto& recording : recordings_) recording->Count(*chunk);
  open_.erase(std::find(open_.begin(), open_.end(), chunk));
}

void Collector::Renew(ThreadLog& log) {
  const ChunkPtr old = std::move(log.chunk);  // freed without the lock
  log.chunk = nullptr;
  log.used = 0;
  const MutexLock lock(mutex_);
  log.generation = generation_.load(std::memory_order_relaxed);
  if (old != nullptr) Close(old);
  for (const auto& recording : recordings_) {
    if (recording->records_ >= recording->options_.max_records) continue;
    if (log.chunk == nullptr) log.chunk = ChunkPool::Get().Take();
    log.chunk->takers.push_back(recording.get());
    recording->chunks_.push_back(log.chunk);
  }
  if (log.chunk == nullptr) return;
  log.chunk->thread = log.thread;
  log.chunk->generation = log.generation;
  open_.push_back(log.chunk);
}

Collector::ThreadLog* Collector::Room() {
  ThreadLog* const log = Log();
  if (log == nullptr) return nullptr;
  if (log->launched) log->Commit();  // the last request failed after NewStamps
  if (!log->room_waits.empty()) AddRoomWaits(*log);
  if (log->generation != generation_.load(std::memory_order_acquire) ||
      (log->chunk != nullptr && log->used == Chunk::kRecords)) {
    Renew(*log);
  }
  if (log->chunk != nullptr) return log;
  if (on()) uncollected_.fetch_add(1, std::memory_order_relaxed);
  return nullptr;
}

OpStamps* Collector::NewStamps(Stream& stream) {
  ThreadLog* const log = Room();
  if (log == nullptr) return nullptr;
  CallRecord& record = log->next();
  record.stamps.begin.store(0, std::memory_order_relaxed);
  record.stamps.end.store(0, std::memory_order_relaxed);
  record.stream = &stream;
  record.name = nullptr;
  log->launched = true;
  return &record.stamps;
}

void Collector::OnOps(absl::Span<const OpRecord> ops) {
  const OpRecord& op = ops[0];
  if (op.stream == nullptr) {
    AddHostCall(ProfiledKind::kView, op.primitive->name(), op.host_begin,
                op.host_end, op.requested_at, op.inputs);
    return;
  }
  ThreadLog* const log = Log();
  if (log == nullptr || !log->launched) return;  // counted by NewStamps
  CallRecord& record = log->next();
  Fill(record, ProfiledKind::kOperation, op.primitive->name(), op.host_begin,
       op.host_end, op.requested_at, op.requested_by);
  record.number = op.number;
  record.in_place = op.in_place;
  std::vector<const Tensor*> inputs;  // of several
  OpCost& sum = log->chunk->costs[log->used] = {};
  for (const OpRecord& one : ops) {
    sum += one.primitive->Cost(one.inputs, one.output);
    if (ops.size() == 1) continue;
    inputs.insert(inputs.end(), one.inputs.begin(), one.inputs.end());
  }
  SetInputs(*log->chunk, record,
            ops.size() == 1 ? op.inputs : absl::MakeConstSpan(inputs));
  log->Commit();
  if (!log->room_waits.empty()) AddRoomWaits(*log);
}

void Collector::AddRoomWaits(ThreadLog& log) {
  const std::vector<WaitRecord> waits = std::exchange(log.room_waits, {});
  for (const WaitRecord& wait : waits) {
    AddHostCall(ProfiledKind::kQueueFull, wait.what, wait.host_begin,
                wait.host_end, wait.requested_at, {});
  }
}

void Collector::AddHostCall(ProfiledKind kind, const char* name,
                            std::int64_t begin, std::int64_t end,
                            SourceLocation at,
                            absl::Span<const Tensor* const> inputs) {
  if (begin == 0) return;  // no listener wanted times when it began
  ThreadLog* const log = Room();
  if (log == nullptr) return;
  CallRecord& record = log->next();
  record.stream = nullptr;
  Fill(record, kind, name, begin, end, at, op_context.requested_by);
  SetInputs(*log->chunk, record, inputs);
  log->Commit();
}

void Collector::AfterRead(const ReadRecord& read) {
  AddHostCall(ProfiledKind::kRead, read.reader, read.host_begin, read.host_end,
              read.requested_at, {&read.input, 1});
}

void Collector::OnWait(const WaitRecord& wait) noexcept {
  if (wait.full_queue > 0) {
    // The next record is the request's; and a new chunk may need a stream.
    if (ThreadLog* const log = Log()) log->room_waits.push_back(wait);
    return;
  }
  AddHostCall(ProfiledKind::kWait, wait.what, wait.host_begin, wait.host_end,
              wait.requested_at, {});
}

CallRecord* Collector::BeginRange(std::string name, SourceLocation at,
                                  ChunkPtr* chunk) {
  ThreadLog* const log = Room();
  if (log == nullptr) return nullptr;
  CallRecord& record = log->next();
  record.stream = nullptr;
  log->chunk->names.push_front(std::move(name));
  Fill(record, ProfiledKind::kRange, log->chunk->names.front().c_str(),
       NowTicks(), /*end=*/0, at, {});
  *chunk = log->chunk;
  log->Commit();
  return &record;
}

void Collector::OnMemory(const MemoryRecord& memory) noexcept {
  ThreadLog* const log = Log();
  if (log == nullptr) return;
  const MutexLock lock(mutex_);
  for (const auto& recording : recordings_) {
    if (!recording->options_.profile_memory) continue;
    if (static_cast<std::int64_t>(recording->memory_.size()) <
        recording->options_.max_records) {
      recording->memory_.push_back({memory, log->thread});
    } else {
      ++recording->memory_cut_;
    }
  }
}

}  // namespace internal
}  // namespace d2l
