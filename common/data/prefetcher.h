// Prefetcher: a thread that makes values before they are needed.
//
//   int n = 0;
//   Prefetcher<int> squares([&] { ++n; return n * n; }, /*depth=*/2);
//   squares.Next();  // 1; the thread makes 4 and 9 meanwhile
//
// The thread keeps at most `depth` values that no Next has taken; then it
// waits. If the function throws, the Next that would return its value throws
// this, and so do all later ones; the function is not called again.
//
// One thread at a time may call Next. The function runs on the Prefetcher's
// thread; objects that it refers to must outlive the Prefetcher. The destructor
// waits only for a call that is running.

#ifndef D2L_COMMON_DATA_PREFETCHER_H_
#define D2L_COMMON_DATA_PREFETCHER_H_

#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "common/base/machine.h"
#include "common/base/mutex.h"

namespace d2l {

template <typename T>
class Prefetcher {
 public:
  Prefetcher(std::function<T()> make, std::size_t depth)
      : make_(std::move(make)),
        depth_(depth),
        thread_(StartThread("a Prefetcher", [this] { Run(); })) {}
  ~Prefetcher() {
    {
      MutexLock lock(mutex_);
      stop_ = true;
    }
    changed_.NotifyAll();
    thread_.join();
  }
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // Waits until the value is made.
  T Next() {
    MutexLock lock(mutex_);
    while (ready_.empty() && !failure_) changed_.Wait(mutex_);
    if (ready_.empty()) std::rethrow_exception(failure_);
    T value = std::move(ready_.front());
    ready_.pop_front();
    changed_.NotifyAll();
    return value;
  }

 private:
  void Run() {
    try {
      while (HasRoom()) {
        T value = make_();
        MutexLock lock(mutex_);
        ready_.push_back(std::move(value));
        changed_.NotifyAll();
      }
    } catch (...) {
      MutexLock lock(mutex_);
      failure_ = std::current_exception();
      changed_.NotifyAll();
    }
  }

  // Waits for room. Returns false at the end.
  bool HasRoom() {
    MutexLock lock(mutex_);
    while (ready_.size() >= depth_ && !stop_) changed_.Wait(mutex_);
    return !stop_;
  }

  const std::function<T()> make_;
  const std::size_t depth_;
  Mutex mutex_;
  CondVar changed_;  // one of the three members below changed
  std::deque<T> ready_ ABSL_GUARDED_BY(mutex_);
  std::exception_ptr failure_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace d2l

#endif  // D2L_COMMON_DATA_PREFETCHER_H_
