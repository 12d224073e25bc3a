// Order: which accesses of a grid's threads are ordered.
//
//   Order order;
//   order.BeginBlock(0);
//   order.Barrier();             // orders all threads of the block
//   order.JoinLanes(32, 0xff);   // a warp's lanes wait for each other
//   order.Fence(40);
//   order.Atomic(40, &arrived);  // whoever uses `arrived` later comes after
//   if (order.Ordered(before, use)) …
//
// Besides barriers there are two orders. Lanes of a warp that wait for each
// other know what each did before; a thread's time counts these meetings, and
// a table has the time up to which a lane knows another one. And what a thread
// did, or knew, when it called __threadfence() is known to the threads that
// use, after it, a word that it used atomically next.
//
// Not thread-safe.

#ifndef D2L_COMMON_KERNELS_CUDA_FAKE_ORDER_H_
#define D2L_COMMON_KERNELS_CUDA_FAKE_ORDER_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/kernels/cuda/fake/check.h"

namespace d2l::kernels::cuda::internal {

class Order {
 public:
  void Clear() {
    BeginBlock(0);
    published_.clear();
  }
  void BeginBlock(std::uint32_t block) {
    block_ = block;
    epoch_ = 0;
    threads_.clear();
    of_block_.clear();
  }

  void Barrier() {
    ++epoch_;
    for (Thread& thread : threads_) {
      Join(thread.known, of_block_);
      thread.known.clear();
    }
  }

  void JoinLanes(unsigned first, unsigned lanes) {
    std::array<std::uint32_t, warpSize> times{};
    Known known;
    const auto for_each = [&](const auto& function) {
      for (unsigned lane = 0; lane < warpSize; ++lane) {
        if ((lanes >> lane & 1) != 0) function(lane, At(first + lane));
      }
    };
    for_each([&](unsigned lane, Thread& thread) {
      ++thread.lanes[lane];
      for (unsigned l = 0; l < warpSize; ++l) {
        times[l] = std::max(times[l], thread.lanes[l]);
      }
      Join(thread.known, known);
    });
    for_each([&](unsigned, Thread& thread) {
      thread.lanes = times;
      thread.known = known;
    });
  }

  void Fence(unsigned t) {
    Thread& thread = At(t);
    ++thread.lanes[t % warpSize];
    thread.fenced = true;
    Known& known = thread.before_fence;
    known = thread.known;
    Join(of_block_, known);
    for (unsigned lane = 0; lane < warpSize; ++lane) {
      known[Key(block_, t / warpSize * warpSize + lane)] = thread.lanes[lane];
    }
    known[Key(block_, kAllThreads)] = epoch_;
  }

  void Atomic(unsigned t, const void* word) {
    Thread& thread = At(t);
    const auto found = published_.find(word);
    if (found != published_.end()) Join(found->second, thread.known);
    if (thread.fenced) Join(thread.before_fence, published_[word]);
  }

  std::uint32_t TimeOf(unsigned t) { return At(t).lanes[t % warpSize]; }

  // Whether the earlier access is known to the thread of the later one, which
  // runs now.
  bool Ordered(const Use& before, const Use& use) {
    if (before.block == use.block) {
      if (before.thread == use.thread || before.epoch != use.epoch) return true;
      const Thread& thread = At(use.thread);
      if (before.thread / warpSize == use.thread / warpSize &&
          thread.lanes[before.thread % warpSize] > before.time) {
        return true;
      }
    }
    return Covers(At(use.thread).known, before) || Covers(of_block_, before);
  }

 private:
  // For a thread of a block, the time before which its accesses are known; for
  // all threads of a block, the epoch.
  using Known = std::map<std::uint64_t, std::uint32_t>;
  static constexpr std::uint32_t kAllThreads = 1 << 16;

  struct Thread {
    // Of the lanes of its warp, the time before which their accesses are known:
    // 0 before they meet. Of the thread itself, its time.
    std::array<std::uint32_t, warpSize> lanes{};
    bool fenced = false;
    Known known, before_fence;  // of other blocks, and warps
  };

  static std::uint64_t Key(std::uint32_t block, std::uint32_t thread) {
    return std::uint64_t{block} << 32 | thread;
  }
  static void Join(const Known& from, Known& to) {
    for (const auto& [key, time] : from) to[key] = std::max(to[key], time);
  }
  static bool Covers(const Known& known, const Use& use) {
    if (known.empty()) return false;
    const auto time = known.find(Key(use.block, use.thread));
    if (time != known.end() && time->second > use.time) return true;
    const auto epoch = known.find(Key(use.block, kAllThreads));
    return epoch != known.end() && epoch->second > use.epoch;
  }
  Thread& At(unsigned t) {
    if (threads_.size() <= t) threads_.resize(t + 1);
    return threads_[t];
  }

  std::uint32_t block_ = 0, epoch_ = 0;
  std::vector<Thread> threads_;
  Known of_block_;  // what all threads knew at the last barrier
  absl::flat_hash_map<const void*, Known> published_;
};

}  // namespace d2l::kernels::cuda::internal

#endif  // D2L_COMMON_KERNELS_CUDA_FAKE_ORDER_H_
