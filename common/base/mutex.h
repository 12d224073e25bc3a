// Mutex, MutexLock and CondVar: std::mutex with Clang's thread-safety
// annotations; SpinLock for the shortest sections.
//
//   class Account {
//    public:
//     void Add(int n) {
//       MutexLock lock(mutex_);
//       balance_ += n;
//     }
//
//    private:
//     Mutex mutex_;
//     int balance_ ABSL_GUARDED_BY(mutex_) = 0;
//   };
//
// Clang's -Wthread-safety then refuses code that touches balance_ without the
// lock. absl::Mutex has the same annotations, but ThreadSanitizer cannot see
// into Debian's build of it and reports races where there are none.

#ifndef D2L_COMMON_BASE_MUTEX_H_
#define D2L_COMMON_BASE_MUTEX_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "common/base/spin_wait.h"

namespace d2l {

class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// Holds the mutex while it lives.
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex)
      : mutex_(mutex) {
    mutex_.Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// A condition variable: call Wait in a loop that checks the condition.
class CondVar {
 public:
  CondVar() = default;
  CondVar(const CondVar&) = delete;
  CondVar& operator=(const CondVar&) = delete;

  // Releases the mutex until it is notified, or woken spuriously.
  void Wait(Mutex& mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  // Waits for at most `timeout`. False on a timeout.
  bool WaitFor(Mutex& mutex, std::chrono::nanoseconds timeout)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const std::cv_status status = condition_.wait_for(lock, timeout);
    lock.release();
    return status == std::cv_status::no_timeout;
  }
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

// A mutex for sections of a few tens of nanoseconds, for std::lock_guard.
//
// Taking and releasing a free std::mutex costs two atomic read-modify-writes;
// this costs one, which matters where two such sections are half of an
// operation's price. Do not block or make system calls while holding it. A
// thread that finds it taken spins a little and then yields its core, since the
// holder may have lost its own. Satisfies Lockable. Not recursive.
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

#endif  // D2L_COMMON_BASE_MUTEX_H_
