#include "common/device/cpu/parallel_for.h"

#include <algorithm>
#include <atomic>
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

}  // namespace

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
  // Publishes all of the above.
  unclaimed_.store(parts, std::memory_order_seq_cst);
  // Helpers that are awake find the parts themselves, and may have a core.
  const std::int64_t awake =
      static_cast<std::int64_t>(helpers_.size()) - work_.sleepers();
  const std::int64_t wanted =
      std::min<std::int64_t>(parts - 1 - awake, gate_.free());
  if (wanted > 0) work_.Notify(static_cast<int>(wanted));
  RunParts(/*helping=*/false);
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
  helpers_.reserve(static_cast<std::size_t>(cores_ - 1));
  try {
    for (int i = 1; i < cores_; ++i) {
      helpers_.push_back(StartThread(
          "core " + std::to_string(i + 1) + " of " + std::to_string(cores_),
          [this] { Help(); }));
    }
  } catch (const std::exception& error) {
    // The helpers that have started do the work.
    std::fprintf(stderr, "Slower, on %d of %d cores: %s\n",
                 static_cast<int>(helpers_.size()) + 1, cores_, error.what());
  }
}

void ThreadPool::Help() {
  internal::enqueue_mode = internal::kOnWorker;
  const auto any = [this] { return unclaimed_.load() != 0; };
  while (!stopped_.load()) {
    if (SpinWait::Until(kSpinNanos, any) && gate_.TryTake()) {
      RunParts(/*helping=*/true);
      ReleaseCore();
      continue;
    }
    // Run publishes the parts and then looks for free cores; ReleaseCore frees
    // one and then looks for parts; at least one of them wakes this helper.
    // Once woken, perhaps too late, it polls for the next operation. This sleep
    // is not bounded: an idle pool sleeps until there is work or its end.
    work_.SleepUnless(
        [&] { return stopped_.load() || (any() && gate_.free() > 0); });
  }
}

void ThreadPool::RunParts(bool helping) {
  std::int64_t unclaimed = unclaimed_.load(std::memory_order_relaxed);
  while (unclaimed != 0) {
    // A thread that takes a part keeps its operation, and so job_, from ending;
    // it need not know before which operation that is.
    if (!unclaimed_.compare_exchange_weak(unclaimed, unclaimed - 1,
                                          std::memory_order_acquire,
                                          std::memory_order_relaxed)) {
      continue;
    }
    RunPart(job_.parts - unclaimed);
    if (unfinished_.fetch_sub(1, std::memory_order_seq_cst) == 1) {
      done_.Notify();
    }
    if (helping && gate_.wanted()) return;  // a stream's turn
    unclaimed = unclaimed_.load(std::memory_order_relaxed);
  }
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
