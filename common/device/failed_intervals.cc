#include "common/device/failed_intervals.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

namespace d2l {

void FailedIntervals::Open(std::uint64_t first, FailurePtr failure) {
  while (!intervals_.empty() && intervals_.back().first >= first) {
    intervals_.pop_back();
  }
  intervals_.push_back({first, kOpen, std::move(failure)});
}

FailedIntervals::Interval* FailedIntervals::open() {
  if (intervals_.empty() || intervals_.back().end != kOpen) return nullptr;
  return &intervals_.back();
}

FailedIntervals::Interval* FailedIntervals::Find(std::uint64_t number) {
  if (intervals_.empty() || number >= intervals_.back().end) return nullptr;
  const auto behind = std::upper_bound(
      intervals_.begin(), intervals_.end(), number,
      [](std::uint64_t n, const Interval& one) { return n < one.first; });
  if (behind == intervals_.begin()) return nullptr;
  Interval& last = *std::prev(behind);
  return number < last.end ? &last : nullptr;
}

FailurePtr FailedIntervals::FailureOf(std::uint64_t number) {
  const Interval* const interval = Find(number);
  return interval == nullptr ? nullptr : interval->failure;
}

FailurePtr FailureLedger::FailureOf(std::uint64_t number) {
  if (!ever_failed()) return nullptr;
  MutexLock lock(mutex_);
  return failed_.FailureOf(number);
}

FailurePtr FailureLedger::Unreported() {
  MutexLock lock(mutex_);
  const FailedIntervals::Interval* const open = failed_.open();
  // At the end of the program a thread that only waits gets no exception.
  if (open == nullptr || open->failure->end_of_program || lost_reported_ ||
      follows_) {
    return nullptr;
  }
  return open->failure;
}

bool FailureLedger::IsUnreported(std::uint64_t number) {
  if (!ever_failed()) return false;
  MutexLock lock(mutex_);
  const FailedIntervals::Interval* const open = failed_.open();
  return open != nullptr && open->first <= number && !lost_reported_;
}

void FailureLedger::Report(std::uint64_t before, const char* noticed_in,
                           SourceLocation noticed_at) {
  std::int64_t skipped = -1;
  FailurePtr failure = Take(before, &skipped);
  if (failure == nullptr) return;
  throw AsyncError(std::move(failure), noticed_in, noticed_at, skipped);
}

FailurePtr FailureLedger::Take(std::uint64_t before, std::int64_t* skipped) {
  if (!ever_failed()) return nullptr;
  MutexLock lock(mutex_);
  if (lost_ != nullptr) {
    lost_reported_ = true;
    return lost_;
  }
  const FailedIntervals::Interval* const open = failed_.open();
  if (open == nullptr || open->first >= before || follows_ ||
      open->failure->end_of_program) {
    return nullptr;
  }
  FailurePtr failure = open->failure;
  *skipped = open->skipped;
  if (follower_ != nullptr) follower_->ReportedByLeader();
  // The stream decides under this lock what to skip, so all it has skipped is
  // below the end, and everything from the end on will run.
  failed_.Close(Restart());
  return failure;
}

void FailureLedger::SetFollower(FailureLedger* follower) {
  {
    MutexLock lock(follower->mutex_);
    follower->follows_ = true;
  }
  MutexLock lock(mutex_);
  follower_ = follower;
}

void FailureLedger::ReportedByLeader() {
  MutexLock lock(mutex_);
  const FailedIntervals::Interval* const open = failed_.open();
  const bool ends =
      open != nullptr && lost_ == nullptr && !open->failure->end_of_program;
  if (ends) failed_.Close(Restart());
  reported_before_ = pushed();
}

void FailureLedger::Fail(std::uint64_t number, FailurePtr failure) {
  MutexLock lock(mutex_);
  Open(number, std::move(failure));
}

void FailureLedger::Open(std::uint64_t number, FailurePtr failure) {
  if (IsConsequence(number)) return;
  failed_.Open(number, std::move(failure));
  if (number < reported_before_) failed_.Close(reported_before_);
  set_ever_failed();
}

bool FailureLedger::IsConsequence(std::uint64_t number) {
  // A failure inside a launch that failed alone is none: one of its kernels has
  // run and written to the GPU's record, which cannot name later failures.
  const FailedIntervals::Interval* const known = failed_.Find(number);
  return known != nullptr && !known->alone;
}

bool FailureLedger::Skip(std::uint64_t number) {
  if (!ever_failed()) return false;
  MutexLock lock(mutex_);
  FailedIntervals::Interval* const interval = failed_.Find(number);
  if (interval != nullptr) ++interval->skipped;
  return interval != nullptr;
}

}  // namespace d2l
