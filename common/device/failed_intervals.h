// FailedIntervals: which operations of a stream did not do their work, and why.
//
//   FailedIntervals failed;
//   failed.Open(41, failure);  // operation 41 failed; later ones are skipped
//   failed.FailureOf(45);      // `failure`: the reason why 45 was skipped
//   failed.Close(50);          // the stream runs again from operation 50 on
//   failed.FailureOf(45);      // still `failure`
//
// Intervals are disjoint and sorted, so FailureOf is a binary search, and one
// comparison for an operation after the last failure. They are kept for the
// stream's life.
//
// Not thread-safe. A stream has a FailureLedger, which is thread-safe and also
// holds whether the failures have been reported.

#ifndef D2L_COMMON_DEVICE_FAILED_INTERVALS_H_
#define D2L_COMMON_DEVICE_FAILED_INTERVALS_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"
#include "common/base/source_location.h"
#include "common/device/failure.h"

namespace d2l {

class FailedIntervals {
 public:
  static constexpr std::uint64_t kOpen = ~std::uint64_t{0};

  // The operations in [first, end) did not do their work.
  struct Interval {
    std::uint64_t first;
    std::uint64_t end;  // kOpen until the failure has been reported
    FailurePtr failure;
    std::int32_t skipped = 0;  // so far; without the failed operation
    bool alone = false;        // one failed launch, whose call threw
  };

  // Operation `first` failed. Intervals from `first` on become part of this
  // one. Those before it must be closed.
  void Open(std::uint64_t first, FailurePtr failure);
  // Operations from `end` on run again. There is an open interval.
  void Close(std::uint64_t end) { intervals_.back().end = end; }
  // Only operation `number`, which is after all intervals, failed.
  void AddAlone(std::uint64_t number, FailurePtr failure) {
    intervals_.push_back(
        {number, number + 1, std::move(failure), 0, /*alone=*/true});
  }

  // The open interval; null if there is none.
  Interval* open();
  // The interval that has operation `number`; null if there is none.
  Interval* Find(std::uint64_t number);
  // Why operation `number` did not do its work; null if it did.
  FailurePtr FailureOf(std::uint64_t number);

 private:
  std::deque<Interval> intervals_;
};

class FailureLedger {
 public:
  FailureLedger() = default;
  virtual ~FailureLedger() = default;
  FailureLedger(const FailureLedger&) = delete;
  FailureLedger& operator=(const FailureLedger&) = delete;

  // How many operations the stream has taken.
  virtual std::uint64_t pushed() const = 0;

  // False if nothing has ever failed: a cheap check before the others.
  bool ever_failed() const {
    return ever_failed_.load(std::memory_order_acquire);
  }
  // Why operation `number` did not do its work; null if it did, or if that is
  // not known yet.
  FailurePtr FailureOf(std::uint64_t number);
  // The failure that Report would throw; null if there is none.
  FailurePtr Unreported();
  // True if operation `number` did not do its work, and Report(number + 1)
  // would still throw the reason.
  bool IsUnreported(std::uint64_t number);

  // Throws an AsyncError if there is a failure below `before` that was not
  // reported. Later operations are then valid again. The failure of a lost
  // device, which stays lost, is thrown every time.
  void Report(std::uint64_t before, const char* noticed_in,
              SourceLocation noticed_at);
  // As Report, but returns the failure, or null, for the caller to throw it.
  // skipped: see AsyncError.
  FailurePtr Take(std::uint64_t before, std::int64_t* skipped);
  void ThrowIfLost(const char* noticed_in, SourceLocation noticed_at) {
    Report(0, noticed_in, noticed_at);  // no other failure is below 0
  }

  // The stream's copy stream reports no failure itself: each reaches this
  // stream, too, and when this one reports a failure, what was requested of
  // both is past. The follower outlives this ledger.
  void SetFollower(FailureLedger* follower);

  // ---- For the stream.

  // Records that operation `number` failed, unless an earlier failure caused
  // it.
  void Fail(std::uint64_t number, FailurePtr failure);
  // True if operation `number` is to be skipped; then counts it as skipped.
  bool Skip(std::uint64_t number);

 protected:
  // Fail, with the lock held.
  void Open(std::uint64_t number, FailurePtr failure)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // True if a failure of operation `number` is caused by an earlier one.
  bool IsConsequence(std::uint64_t number)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void set_ever_failed() {
    ever_failed_.store(true, std::memory_order_release);
  }
  // Called when a failure has been reported. Returns the number of the first
  // operation that runs again.
  virtual std::uint64_t Restart() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return pushed();
  }

  Mutex mutex_;
  FailedIntervals failed_ ABSL_GUARDED_BY(mutex_);
  FailurePtr lost_ ABSL_GUARDED_BY(mutex_);  // why the device is lost

 private:
  void ReportedByLeader();

  std::atomic<bool> ever_failed_{false};
  bool lost_reported_ ABSL_GUARDED_BY(mutex_) = false;
  FailureLedger* follower_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool follows_ ABSL_GUARDED_BY(mutex_) = false;
  // A failure before this operation has been reported already.
  std::uint64_t reported_before_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_FAILED_INTERVALS_H_
