// RaceChecker: finds operations that use the same memory on two streams without
// an event that orders them. The values may still be right, by chance.
//
//   RaceChecker checker;
//   const Tensor y = Square(x);            // on the current stream
//   {
//     const StreamGuard guard(other);
//     const Tensor z = y + 1;              // does not wait for y
//   }
//   std::cout << checker.Report();
//
//   RACE  add (a.cc:5, stream cpu:0/1) reads what square (a.cc:2, stream cpu:0)
//         writes, and no event orders them.
//         Missing: cpu:0/1.Wait(cpu:0.Record()) between lines 2 and 5.
//   1 race in 2 operations on 2 streams.
//
// The checker keeps a vector clock for each stream and one for the host
// (Lamport 1978; PyTorch's CUDA Stream Sanitizer, torch/cuda/_sanitizer.py).
// Streams are ordered by Record and Wait, the host by its waits, its reads, and
// Query where it returns true; work that is enqueued later comes after these.
// All threads of the host count as one. So the findings do not depend on times,
// unless the program itself looks at them, by Query.
//
// The checker sees operations on tensors and Stream::CopyAsync, of memory of
// the host as of devices, but not what a HostCallback does, or a thread of the
// host that uses raw memory. Two views of one tensor count as the same memory
// if the range from the first to the last element of one overlaps that of the
// other. It trusts the allocator: a block that is freed has no uses any more,
// so a reuse that comes too early is no race for it. FreeBlocks::Put
// (common/device/memory) looks for that.
//
// Each operation costs a lock and some map lookups: 0.1 us on one stream. It
// forgets no use and no event that a later one may race with or wait for: those
// since the host last waited. A tensor that is used in n parts between two
// waits costs time for n * n of them. Listens to all threads while it lives;
// thread-safe. Streams must outlive it.

#ifndef D2L_COMMON_PROFILER_RACE_CHECKER_H_
#define D2L_COMMON_PROFILER_RACE_CHECKER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/types/span.h"
#include "common/base/mutex.h"
#include "common/base/source_location.h"
#include "common/device/listener.h"
#include "common/ops/primitive/record.h"

namespace d2l {

// Two uses of the same memory that nothing orders; the second was enqueued
// later. At least one of them writes.
struct Race {
  struct Use {
    std::string operation;  // "matmul"
    SourceLocation at;      // the user's line
    std::string stream;     // "cpu:0/1"
    bool writes;
  };
  Use first, second;

  // As in the example above, in the run's language.
  std::string ToText() const;
  // Its first sentence, which does not say what is missing.
  std::string Conflict() const;
};

class RaceChecker : private OpListener, private DeviceListener {
 public:
  RaceChecker();
  ~RaceChecker() override;

  // Each pair of lines once, at most a hundred.
  std::vector<Race> races() const;
  // The texts of all races, and a line that counts them.
  std::string Report() const;

 private:
  // For each stream, by index: its operations below this number came before.
  using Clock = std::vector<std::uint64_t>;

  struct Use {
    const char* operation;
    SourceLocation at;
    std::size_t stream;
    std::uint64_t number;
    bool writes;
    std::uintptr_t begin, end;
  };
  // Memory by its first address.
  struct Block {
    std::uintptr_t end;
    std::uint64_t storage;  // 0: memory of which only copies are known
    std::vector<Use> uses;
  };
  using Blocks = std::map<std::uintptr_t, Block>;
  // A stream will wait for an event: its operations from `number` on come after
  // all that `clock` has.
  struct StreamWait {
    std::uint64_t number;
    Clock clock;
  };

  void OnOp(const OpRecord& record) override;
  void OnOps(absl::Span<const OpRecord> records) override;
  void OnMemory(const MemoryRecord& record) noexcept override;
  void OnStream(const StreamRecord& record) override;
  void OnOrder(const OrderRecord& record) noexcept override;

  // Whether the use came before what has this clock.
  static bool Has(const Clock& clock, const Use& use);
  std::size_t IndexOf(const Stream* stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The stream's clock for work that is enqueued now.
  Clock& ClockOf(std::size_t stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Counts an operation, and returns its stream's index.
  std::size_t Enter(const Stream* on, std::uint64_t number)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The first block that ends behind `begin`.
  Blocks::iterator FirstBehind(std::uintptr_t begin)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes a block of this range, and of those without a storage that overlap
  // it, whose uses it takes over. Others that overlap it were freed.
  Block& MakeBlock(std::uintptr_t begin, std::uintptr_t end,
                   std::uint64_t storage) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Block& BlockOf(const Tensor& x) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Block& BlockOf(std::uintptr_t begin, std::uintptr_t end)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Check(const OpRecord& record, std::size_t stream, const Tensor& x,
             bool writes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Finds the uses that race with this one, and, if `keep`, stores it.
  void Check(Block& block, const Use& use, bool keep)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The host has seen that the stream's operations below `number`, and all that
  // they waited for, are done; and, with `idle`, all waits.
  void HostSaw(std::size_t stream, std::uint64_t number, bool idle)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Forgets events, waits and memory without a storage that the host has seen
  // to be done with, if there are twice as many as after the last time.
  void ForgetDone() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::vector<const Stream*> streams_ ABSL_GUARDED_BY(mutex_);
  std::vector<Clock> clocks_ ABSL_GUARDED_BY(mutex_);  // of streams_
  // Of streams_; those that the host does not know to be over.
  std::vector<std::deque<StreamWait>> waits_ ABSL_GUARDED_BY(mutex_);
  Clock host_ ABSL_GUARDED_BY(mutex_);
  std::map<std::uint64_t, Clock> events_ ABSL_GUARDED_BY(mutex_);
  Blocks blocks_ ABSL_GUARDED_BY(mutex_);
  std::size_t most_events_ ABSL_GUARDED_BY(mutex_) = 1000;
  std::size_t most_blocks_ ABSL_GUARDED_BY(mutex_) = 1000;
  std::vector<Race> races_ ABSL_GUARDED_BY(mutex_);
  std::int64_t operations_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace d2l

#endif  // D2L_COMMON_PROFILER_RACE_CHECKER_H_
