// Collector: collects the records of all profilers.
//
//   const std::shared_ptr<Recording> recording =
//       Collector::Get().Start({/*profile_memory=*/false, 1000});
//   …
//   Collector::Get().Stop(*recording);
//   const Profile profile = recording->ToProfile();
//
// There is one for the process. It listens to operations, reads and waits
// (common/ops/primitive/record.h, common/device/listener.h) while at least one
// recording is active. Recordings may overlap: each gets all events of its
// time.
//
// For speed each thread writes into a chunk of its own, 144 bytes for a call,
// without a lock, and devices write the times of an operation into its record.
// Chunks are exchanged under a lock.
//
// The states of a chunk:
//
//          Renew              full; Start or Stop; the thread ends
//   free ---------> a thread's ---------------------------------> closed
//    ^                                                              |
//    +--------------------------------------------------------------+
//      no recording has it any more, and devices have written all stamps
//
// Start and Stop begin a new generation, and a thread whose chunk is of an
// older one renews it at its next call, so a chunk is wholly within or wholly
// outside each recording's time. Renew gives the chunk to each recording that
// has room. When a chunk closes, each recording whose time includes it counts
// its calls: as records if it has the chunk, else as cut. If no recording has
// room, a thread has no chunk and only counts its calls (uncollected_).
//
// The states of a thread's next record:
//
//   unused --NewStamps--> launched --OnOp--> written
//     |                      |
//     |                      +--the request failed--> written, without a name
//     +--any other call--> written
//
// Internal to the profiler. Thread-safe, except as stated.

#ifndef D2L_COMMON_PROFILER_COLLECTOR_H_
#define D2L_COMMON_PROFILER_COLLECTOR_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <forward_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/types/span.h"
#include "common/base/mutex.h"
#include "common/base/source_location.h"
#include "common/base/ticks.h"
#include "common/device/listener.h"
#include "common/device/op_label.h"
#include "common/device/stream.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/record.h"
#include "common/profiler/profile.h"
#include "common/profiler/profiler.h"

namespace d2l {
namespace internal {

// A call of the front end. Its thread writes it; the device writes the stamps.
struct alignas(64) CallRecord {
  static constexpr int kMaxInputs = 4;
  static constexpr int kMaxSizes = 6;

  OpStamps stamps;
  Stream* stream = nullptr;  // null: nothing was launched
  std::uint64_t number;
  const char* name;         // null: the request failed
  std::int64_t host_begin;  // NowTicks, as host_end
  // 0 while a range is open, which may be longer than the recording.
  std::atomic<std::int64_t> host_end;

  const char* file;
  const char* by_file;
  std::int32_t line;
  std::int32_t by_line;
  ProfiledKind kind;
  bool in_place;
  std::uint8_t inputs;
  DType dtypes[kMaxInputs];
  std::uint8_t ranks[kMaxInputs];
  // The sizes of all inputs, one after the other; or, if there is no room for
  // them, `inputs` is kManyInputs and they are in `many`.
  static constexpr std::uint8_t kManyInputs = 255;
  union {
    std::int32_t sizes[kMaxSizes];
    const std::vector<ProfiledInput>* many;
  };
};
static_assert(sizeof(CallRecord) == 128, "two cache lines");

class Recording;

struct Chunk {
  static constexpr std::uint32_t kRecords = 512;

  std::array<CallRecord, kRecords> records;
  std::array<OpCost, kRecords> costs;  // of the operations
  // The number of written records.
  std::atomic<std::uint32_t> used{0};
  int thread = 0;
  // When it was given out, and to whom; guarded by the collector's mutex.
  std::uint64_t generation = 0;
  std::vector<const Recording*> takers;
  // The texts that records point to.
  std::forward_list<std::string> names;
  std::forward_list<std::vector<ProfiledInput>> inputs;
};
using ChunkPtr = std::shared_ptr<Chunk>;

struct TimedMemoryRecord {
  MemoryRecord record;
  int thread;
};

// The records between Start and Stop.
class Recording {
 public:
  explicit Recording(const ProfilerOptions& options) : options_(options) {}
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // Call it after Stop, from one thread at a time. Waits until the recorded
  // operations are done or skipped.
  Profile ToProfile() const;

 private:
  friend class Collector;

  // Counts the calls in a chunk that closes.
  void Count(const Chunk& chunk);

  const ProfilerOptions options_;
  const TickScale begin_;
  // The members below are guarded by the collector's mutex until Stop.
  std::optional<TickScale> end_;
  std::vector<ChunkPtr> chunks_;
  std::int64_t records_ = 0;  // in chunks that are closed
  std::vector<TimedMemoryRecord> memory_;
  std::int64_t cut_ = 0;
  std::int64_t memory_cut_ = 0;
  std::int64_t uncollected_at_start_ = 0;
  std::uint64_t generation_ = 0;  // the collector's at the start
};

class Collector : public OpListener, public DeviceListener {
 public:
  // Never destroyed.
  static Collector& Get();

  std::shared_ptr<Recording> Start(const ProfilerOptions& options)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // `recording` must be active.
  void Stop(Recording& recording) ABSL_LOCKS_EXCLUDED(mutex_);

  // True while there is a recording.
  bool on() const { return profiling.load(std::memory_order_acquire); }

  // Begins a user's range on this thread. Returns null if there is no
  // recording; else the record, and in *chunk the chunk that keeps it.
  CallRecord* BeginRange(std::string name, SourceLocation at, ChunkPtr* chunk);

  void OnOp(const OpRecord& record) override { OnOps({&record, 1}); }
  void OnOps(absl::Span<const OpRecord> records) override;
  void AfterRead(const ReadRecord& record) override;
  OpStamps* NewStamps(Stream& stream) override;
  bool wants_times() const override { return true; }
  void OnWait(const WaitRecord& record) noexcept override;
  void OnMemory(const MemoryRecord& record) noexcept override;

 private:
  struct ThreadLog;

  Collector() = default;
  // This thread's log; null when the thread is ending.
  static ThreadLog* Log();
  // This thread's log with room for a record; null if there is no room.
  ThreadLog* Room();
  void Renew(ThreadLog& log) ABSL_LOCKS_EXCLUDED(mutex_);
  void Close(const ChunkPtr& chunk) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Records the thread's waits for room in queues.
  void AddRoomWaits(ThreadLog& log);
  // Records a call that launches nothing.
  void AddHostCall(ProfiledKind kind, const char* name, std::int64_t begin,
                   std::int64_t end, SourceLocation at,
                   absl::Span<const Tensor* const> inputs);

  std::atomic<std::uint64_t> generation_{1};
  std::atomic<std::int64_t> uncollected_{0};

  Mutex mutex_;
  // The active ones.
  std::vector<std::shared_ptr<Recording>> recordings_ ABSL_GUARDED_BY(mutex_);
  int recordings_of_memory_ ABSL_GUARDED_BY(mutex_) = 0;
  // The threads' chunks.
  std::vector<ChunkPtr> open_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace internal
}  // namespace d2l

#endif  // D2L_COMMON_PROFILER_COLLECTOR_H_
