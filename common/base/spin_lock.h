// SpinLock: a mutex for sections of a few tens of nanoseconds.
//
//   SpinLock lock;
//   std::lock_guard<SpinLock> guard(lock);
//
// Taking and releasing a free std::mutex costs two atomic read-modify-writes;
// this costs one, which matters where two such sections are half of an
// operation's price. Do not block or make system calls while holding it. A
// thread that finds it taken spins a little and then yields its core, since the
// holder may have lost its own.
//
// Satisfies Lockable, and has Clang's thread-safety annotations. Not recursive.

#ifndef D2L_COMMON_BASE_SPIN_LOCK_H_
#define D2L_COMMON_BASE_SPIN_LOCK_H_

#include <atomic>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "common/base/spin_wait.h"

namespace d2l {

class ABSL_LOCKABLE SpinLock {
 public:
  SpinLock() = default;
  SpinLock(const SpinLock&) = delete;
  SpinLock& operator=(const SpinLock&) = delete;

  void lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    for (int spins = 0; !try_lock(); ++spins) {
      if (spins < 64) {
        Pause();
      } else {
        std::this_thread::yield();
      }
    }
  }
  bool try_lock()
      ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return !taken_.load(std::memory_order_relaxed) &&
           !taken_.exchange(true, std::memory_order_acquire);
  }
  void unlock() ABSL_UNLOCK_FUNCTION() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    taken_.store(false, std::memory_order_release);
  }

 private:
  std::atomic<bool> taken_{false};
};

}  // namespace d2l

#endif  // D2L_COMMON_BASE_SPIN_LOCK_H_
