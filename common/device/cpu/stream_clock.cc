#include "common/device/cpu/stream_clock.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/timer.h"

namespace d2l::internal {

void StreamClock::Begin(ActiveTiming& timing, bool computes) {
  timing_ = &timing;
  cpu_seconds_ = computes ? ThreadSeconds() : -1;
  begin_ = transfer_begin_ != 0 ? transfer_begin_ : nanos_;
  crosses_ = false;
}

void StreamClock::Cross(const std::vector<int>& from, int to,
                        std::size_t bytes) {
  if (!timing_->links.has_value()) return;
  crosses_ = true;
  const std::int64_t ready = nanos_;
  for (const int node : from) {
    const LinkClock::Span span =
        timing_->links->Book(node, to, static_cast<double>(bytes), ready);
    if (transfer_begin_ == 0) transfer_begin_ = span.begin;
    AdvanceTo(span.end);
  }
}

void StreamClock::EndWork() {
  if (cpu_seconds_ < 0) return;
  if (timing_->pace > 0) {
    nanos_ += static_cast<std::int64_t>(1e9 * timing_->pace *
                                        (ThreadSeconds() - cpu_seconds_));
  } else {
    AdvanceTo(NowNanos());
  }
}

void StreamClock::End() {
  timing_->late.store(NowNanos() - nanos_, std::memory_order_relaxed);
  timing_ = nullptr;
  if (!crosses_) transfer_begin_ = 0;
}

}  // namespace d2l::internal
