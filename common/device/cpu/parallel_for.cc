#include "common/device/cpu/parallel_for.h"

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <thread>
#include <utility>

#include "common/base/machine.h"
#include "common/base/spin_wait.h"
#include "common/device/stream.h"

namespace d2l {
namespace {

// More parts than cores, so that a core which is late, or which another
// program uses for a while, leaves its share to the others; few enough that
// handing them out costs nothing.
constexpr std::int64_t kPartsPerCore = 4;

// How long a thread polls before it sleeps: longer than a wake-up takes (20 to
// 70 us), as in task_queue.cc.
constexpr std::int64_t kSpinNanos = 120'000;

thread_local bool thread_locals_destroyed = false;
struct AtThreadEnd {
  ~AtThreadEnd() { thread_locals_destroyed = true; }
};

}  // namespace

void internal::SetCurrentPool(ThreadPool* pool, const void* stream) {
  current_pool = pool;
  current_stream = stream;
}

ThreadPool::ThreadPool(int cores) : cores_(cores), gate_(cores) {}

ThreadPool::~ThreadPool() {
  if (internal::forked_child.load(std::memory_order_relaxed)) {
    for (std::thread& helper : helpers_) helper.detach();  // the parent's
    return;
  }
  stopped_.store(true);
  work_.Notify();
  for (std::thread& helper : helpers_) helper.join();
}

void ThreadPool::Run(std::int64_t n, std::int64_t grain, Part part,
                     const void* f) {
  const std::int64_t grains = (n - 1) / grain + 1;
  if (grains == 1 || busy_.exchange(true, std::memory_order_acquire)) {
    part(f, 0, n);
    return;
  }
  StartHelpers();
  const std::int64_t parts = std::min(grains, kPartsPerCore * cores_);
  job_ = {part, f, n, grain, parts, grains / parts, grains % parts};
  unfinished_.store(parts, std::memory_order_relaxed);
  stream_.store(internal::current_stream, std::memory_order_relaxed);
  // Publishes all of the above.
  unclaimed_.store(unclaimed_.load(std::memory_order_relaxed) + kOperation +
                       static_cast<std::uint64_t>(parts),
                   std::memory_order_seq_cst);
  // Helpers that are awake find the parts themselves, and may have a core. Each
  // guest replaces a helper that sleeps.
  const std::int64_t sleepers = work_.sleepers();
  const std::int64_t guests = guests_.load();
  const std::int64_t awake =
      static_cast<std::int64_t>(helpers_.size()) - sleepers;
  const std::int64_t wanted = std::min<std::int64_t>(
      {parts - 1 - awake - guests, gate_.free(), sleepers - guests});
  if (wanted > 0) work_.Notify(static_cast<int>(wanted));
  RunParts(/*helping=*/false, [] { return true; });
  // The wait is bounded by the parts that helpers run.
  done_.Await(kSpinNanos, [this] { return unfinished_.load() == 0; });
  std::exception_ptr failure;
  if (failed_.exchange(false, std::memory_order_relaxed)) {
    MutexLock lock(mutex_);
    failure = std::exchange(failure_, nullptr);
  }
  busy_.store(false, std::memory_order_release);
  if (failure != nullptr) std::rethrow_exception(failure);
}

void ThreadPool::StartHelpers() {
  if (started_) return;
  started_ = true;
  std::fegetenv(&environment_);  // of the helpers, too, which inherit it
  helpers_.reserve(static_cast<std::size_t>(cores_ - 1));
  try {
    for (int i = 1; i < cores_; ++i) {
      helpers_.push_back(StartThread(
          "core " + std::to_string(i + 1) + " of " + std::to_string(cores_),
          [this, i] { Help(i); }));
    }
  } catch (const std::exception& error) {
    // The helpers that have started do the work.
    std::fprintf(stderr, "Slower, on %d of %d cores: %s\n",
                 static_cast<int>(helpers_.size()) + 1, cores_, error.what());
  }
}

void ThreadPool::Help(int index) {
  internal::enqueue_mode = internal::kOnWorker;
  const auto any_or_spare = [this, index] {
    return any_unclaimed() || guests_.load() >= cores_ - index;
  };
  while (!stopped_.load()) {
    if (SpinWait::Until(kSpinNanos, any_or_spare) && any_unclaimed() &&
        gate_.TryTake()) {
      RunParts(/*helping=*/true, [] { return true; });
      ReleaseCore();
      continue;
    }
    // Run publishes the parts and then looks for free cores; ReleaseCore frees
    // one and then looks for parts, as does a guest that stops polling; at
    // least one of them wakes this helper.
    // Once woken, perhaps too late, it polls for the next operation. This sleep
    // is not bounded: an idle pool sleeps until there is work or its end.
    work_.SleepUnless([this] {
      return stopped_.load() || (any_unclaimed() && gate_.free() > 0);
    });
  }
}

void ThreadPool::Guest::ReplaceHelper(bool replaces) {
  if (replaces == replaces_) return;
  replaces_ = replaces;
  pool_.guests_.fetch_add(replaces ? 1 : -1);
  if (replaces) return;
  // The helper that slept meanwhile.
  if (pool_.any_unclaimed() && pool_.gate_.free() > 0) pool_.work_.Notify(1);
}

bool ThreadPool::Guest::Help(absl::FunctionRef<bool()> done) {
  // When a program ends, its main thread may wait once more: its thread_local
  // objects, which parts of some operations use, have been destroyed by then.
  thread_local AtThreadEnd at_end;
  if (thread_locals_destroyed) return false;
  // No part of other work: that may last longer, or wait for this thread.
  const auto current = [this] {
    return pool_.stream_.load(std::memory_order_relaxed) == stream_;
  };
  ReplaceHelper(current());
  const auto may = [&] { return current() && !done(); };
  if (!pool_.any_unclaimed() || pool_.gate_.free() <= 0 || !may() ||
      !pool_.gate_.TryTake()) {
    return false;
  }
  // Parts round as on the pool's own threads, whatever this thread has set.
  std::fenv_t environment;
  std::fegetenv(&environment);
  std::fesetenv(&pool_.environment_);
  const auto mode = std::exchange(internal::enqueue_mode, internal::kOnWorker);
  const bool helped = pool_.RunParts(/*helping=*/true, may);
  internal::enqueue_mode = mode;
  std::fesetenv(&environment);
  pool_.ReleaseCore();
  return helped;
}

bool ThreadPool::RunParts(bool helping, absl::FunctionRef<bool()> may) {
  bool any = false;
  std::uint64_t unclaimed = unclaimed_.load(std::memory_order_acquire);
  // may() is asked after the load: if another operation begins in between, no
  // part of this one is left, and the exchange fails. A thread that takes a
  // part keeps its operation, and so job_, from ending.
  while (unclaimed % kOperation != 0 && may()) {
    if (!unclaimed_.compare_exchange_weak(unclaimed, unclaimed - 1,
                                          std::memory_order_acquire)) {
      continue;
    }
    any = true;
    RunPart(job_.parts - static_cast<std::int64_t>(unclaimed % kOperation));
    if (unfinished_.fetch_sub(1, std::memory_order_seq_cst) == 1) {
      done_.Notify();
    }
    if (helping && gate_.wanted()) break;  // a stream's turn
    unclaimed = unclaimed_.load(std::memory_order_acquire);
  }
  return any;
}

void ThreadPool::RunPart(std::int64_t index) {
  const std::int64_t first =
      index * job_.grains_per_part + std::min(index, job_.longer);
  const std::int64_t grains = job_.grains_per_part + (index < job_.longer);
  // The last grain may end beyond n, and even beyond the largest int64.
  const std::int64_t begin = first * job_.grain;
  const std::int64_t end =
      index == job_.parts - 1 ? job_.n : begin + grains * job_.grain;
  try {
    job_.part(job_.f, begin, end);
  } catch (...) {
    failed_.store(true, std::memory_order_relaxed);
    MutexLock lock(mutex_);
    if (failure_ == nullptr || index < failed_part_) {
      failed_part_ = index;
      failure_ = std::current_exception();
    }
  }
}

}  // namespace d2l
