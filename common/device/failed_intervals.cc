#include "common/device/failed_intervals.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

namespace d2l {

void FailedIntervals::Open(std::uint64_t first, FailurePtr failure) {
  while (!intervals_.empty() && intervals_.back().first >= first) {
    intervals_.pop_back();
  }
  summarised_ = std::min(summarised_, intervals_.size());
  const SourceLocation at = failure->requested_at;
  Add({first, kOpen, std::move(failure), at});
}

void FailedIntervals::AddAlone(std::uint64_t number, FailurePtr failure) {
  const SourceLocation at = failure->requested_at;
  Add({number, number + 1, std::move(failure), at, 0, /*alone=*/true});
}

void FailedIntervals::Add(Interval interval) {
  intervals_.push_back(std::move(interval));
  if (detailed() > kDetailed) intervals_[summarised_++].failure = nullptr;
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
  if (interval == nullptr) return nullptr;
  if (interval->failure != nullptr) return interval->failure;
  auto summary = std::make_shared<Failure>();
  summary->operation = "an operation";
  summary->number = interval->first;
  summary->stream = stream_;
  summary->requested_at = interval->requested_at;
  summary->what = absl::StrCat(
      "the cause is no longer kept; a stream keeps "
      "those of its last ",
      kDetailed, " failures");
  return summary;
}

}  // namespace d2l
