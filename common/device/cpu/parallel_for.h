// ParallelFor: one operation of a CPU device spread over the device's cores.
//
//   // in a task that runs on a CpuStream
//   ParallelFor(n, 4096, [&](std::int64_t begin, std::int64_t end) {
//     for (std::int64_t i = begin; i < end; ++i) out[i] = a[i] + b[i];
//   });
//
// The streams of a device share its cores. Each has a worker thread, and all of
// them share one ThreadPool. Its helpers work on one operation at a time, on as
// many of its parts at once as cores are free. A core that another stream waits
// for goes to that stream after a part, as blocks of two kernels share a GPU. A
// stream that finds the helpers busy computes alone, as does a ParallelFor
// within a part. A thread that waits in a stream's Synchronize, WaitFor or
// Finish computes parts, too, while it polls, in place of a helper: else there
// would be a thread more than cores. The result must not depend on where the
// cuts are, nor on the threads that compute the parts.
//
// Thread-safety: ParallelFor may be called on any thread, as may a ThreadPool's
// functions, except as stated. f is called on several threads at the same time
// and must not call into streams.

#ifndef D2L_COMMON_DEVICE_CPU_PARALLEL_FOR_H_
#define D2L_COMMON_DEVICE_CPU_PARALLEL_FOR_H_

#include <atomic>
#include <cfenv>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "common/base/event_count.h"
#include "common/base/mutex.h"

namespace d2l {

// The cores of a virtual device, each for one thread at a time. Threads that
// wait get a core in the order in which they came. While enough cores are free,
// taking and releasing one costs an atomic addition each. A thread that has a
// core may only wait for threads that have one, too.
class FairSemaphore {
 public:
  explicit FairSemaphore(int cores) : free_(cores) {}
  FairSemaphore(const FairSemaphore&) = delete;
  FairSemaphore& operator=(const FairSemaphore&) = delete;

  void Take() {
    if (free_.fetch_sub(1) <= 0) WaitInLine();
  }
  // Returns false, without waiting, if all are taken.
  bool TryTake() {
    int free = free_.load();
    while (free > 0) {
      if (free_.compare_exchange_weak(free, free - 1)) return true;
    }
    return false;
  }
  // True if the core is free afterwards; false if a waiting thread gets it.
  bool Release() {
    if (free_.fetch_add(1) >= 0) return true;
    ServeFirst();
    return false;
  }

  // The number of free cores; 0 or less if there is none.
  int free() const { return free_.load(); }
  // True if a thread waits for a core. Cheap enough to call after every task.
  bool wanted() const { return free_.load(std::memory_order_relaxed) < 0; }

 private:
  // A stream that is about to wait for an event keeps its core for less than
  // this; a turn is far longer (cpu_stream.cc).
  static constexpr std::int64_t kSpinNanos = 2'000;

  void WaitInLine() {
    const std::uint64_t number = waited_.fetch_add(1);
    // The wait is bounded by the tasks that have the cores.
    changed_.Await(
        kSpinNanos, [&] { return served_.load() > number; },
        /*keeps_core=*/true, EventCount::Lane(number));
  }
  void ServeFirst() {
    const std::uint64_t number = served_.fetch_add(1);
    changed_.Notify(EventCount::kAll, EventCount::Lane(number));
  }

  // If it is -n, n threads wait or are about to.
  alignas(64) std::atomic<int> free_;
  // How many threads have begun to wait, and how many cores have been given to
  // waiting threads, perhaps before they began.
  alignas(64) std::atomic<std::uint64_t> waited_{0};
  std::atomic<std::uint64_t> served_{0};
  EventCount changed_;
};

// The cores of one device, and its helper threads, for parallelism within
// operations. The first operation starts the helpers. After each operation they
// poll for work for a while, and then sleep. If the system starts fewer
// threads, those do the work, and a line on stderr says so.
class ThreadPool {
 public:
  // For `cores` cores, one of which is the caller's: cores - 1 helpers.
  explicit ThreadPool(int cores);
  // Destroy it when no Run is left.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int cores() const { return cores_; }

  // For the threads that run tasks: see FairSemaphore.
  void TakeCore() { gate_.Take(); }
  void ReleaseCore() {
    if (gate_.Release() && any_unclaimed()) work_.Notify(1);
  }
  bool core_wanted() const { return gate_.wanted(); }
  // Of the stream that has released a core last (virtual_timing.h).
  std::atomic<std::int64_t> core_clock{0};

  // Calls part(f, begin, end) for parts of [0, n): see ParallelFor.
  using Part = void (*)(const void* f, std::int64_t begin, std::int64_t end);
  void Run(std::int64_t n, std::int64_t grain, Part part, const void* f);

  // A thread that waits for operations of a stream, between its polls. While it
  // lives and the pool works for this stream, a helper without work sleeps.
  //
  //   ThreadPool::Guest guest(pool, this);  // in a stream's function
  //   while (!done()) guest.Help(done);
  class Guest {
   public:
    Guest(ThreadPool& pool, const void* stream)
        : pool_(pool), stream_(stream) {}
    ~Guest() { ReplaceHelper(false); }
    Guest(const Guest&) = delete;
    Guest& operator=(const Guest&) = delete;

    // Computes parts of the stream's operation, if there are any and a core is
    // free, and returns whether it did; none of an operation that runs when
    // done() is true already.
    bool Help(absl::FunctionRef<bool()> done);

   private:
    void ReplaceHelper(bool replaces);

    ThreadPool& pool_;
    const void* const stream_;
    bool replaces_ = false;
  };

 private:
  // The current operation. It is cut into `parts` parts of `grains_per_part`
  // grains; the first `longer` of them have one grain more.
  struct Job {
    Part part = nullptr;
    const void* f = nullptr;
    std::int64_t n = 0;
    std::int64_t grain = 1;
    std::int64_t parts = 0;
    std::int64_t grains_per_part = 0;
    std::int64_t longer = 0;
  };

  void StartHelpers();
  // index: from 1 to cores - 1.
  void Help(int index);
  // Claims and runs parts while may() is true, which is asked about the current
  // operation. Returns whether there were any.
  bool RunParts(bool helping, absl::FunctionRef<bool()> may);
  void RunPart(std::int64_t index);
  bool any_unclaimed() const { return unclaimed_.load() % kOperation != 0; }

  const int cores_;
  FairSemaphore gate_;

  // The thread that sets it may use the pool.
  alignas(64) std::atomic<bool> busy_{false};
  bool started_ = false;  // the helpers have been started
  std::vector<std::thread> helpers_;
  std::fenv_t environment_ = {};  // how helpers round
  // Written while no part is unfinished, read by threads that have claimed a
  // part.
  Job job_;

  // The operation's number * kOperation + the number of unclaimed parts. Parts
  // are claimed from the first to the last, each when a core is free: a core
  // that another process uses delays one part only.
  static constexpr std::uint64_t kOperation = std::uint64_t{1} << 24;
  alignas(64) std::atomic<std::uint64_t> unclaimed_{0};
  std::atomic<const void*> stream_{nullptr};  // whose operation it is
  alignas(64) std::atomic<std::int64_t> unfinished_{0};

  // How many guests replace a helper.
  alignas(64) std::atomic<int> guests_{0};
  EventCount work_;
  EventCount done_;
  std::atomic<bool> stopped_{false};
  Mutex mutex_;
  std::int64_t failed_part_ ABSL_GUARDED_BY(mutex_) = 0;
  // The exception of the lowest part that failed.
  std::exception_ptr failure_ ABSL_GUARDED_BY(mutex_);
  // True if any part failed. Read when all are done, to avoid the lock.
  std::atomic<bool> failed_{false};
};

namespace internal {
// The pool of the device whose stream's worker this thread is; null on other
// threads, helpers among them.
inline thread_local ThreadPool* current_pool = nullptr;
inline thread_local const void* current_stream = nullptr;  // that stream

// Out of line: within CpuStream::Work it would make each task 3 % slower.
void SetCurrentPool(ThreadPool* pool, const void* stream);
}  // namespace internal

// How many cores a ParallelFor on this thread may use.
inline int ParallelForCores() {
  const ThreadPool* const pool = internal::current_pool;
  return pool == nullptr ? 1 : pool->cores();
}

// Calls f(begin, end) for consecutive parts of [0, n), in parallel on the cores
// of the device whose stream's worker this is; on any other thread, and for too
// little work, calls f(0, n) itself. The size of every part but the last is a
// multiple of `grain`, at least 1. Returns when all are done; rethrows the
// exception of the first part that threw.
template <typename F>
void ParallelFor(std::int64_t n, std::int64_t grain, const F& f) {
  if (n <= 0) return;
  ThreadPool* pool = internal::current_pool;
  if (n <= grain || pool == nullptr) {
    f(std::int64_t{0}, n);
    return;
  }
  pool->Run(
      n, grain,
      [](const void* function, std::int64_t begin, std::int64_t end) {
        (*static_cast<const F*>(function))(begin, end);
      },
      &f);
}

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_CPU_PARALLEL_FOR_H_
