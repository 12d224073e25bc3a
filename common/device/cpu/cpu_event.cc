#include "common/device/cpu/cpu_event.h"

#include <utility>

#include "common/base/spin_wait.h"
#include "common/base/timer.h"
#include "common/device/stream.h"

namespace d2l {
namespace {

// See task_queue.cc; here the waiter is often another stream's worker, which
// should not keep a core that the awaited work could use.
constexpr std::int64_t kSpinNanos = 10'000;

}  // namespace

void CpuEventState::Complete(FailurePtr failure) {
  failure_ = std::move(failure);
  nanos_ = NowNanos();
  done_.store(true, std::memory_order_seq_cst);
  completed_.Notify();
}

void CpuEventState::Block() {
  const auto done = [this] { return done_.load(std::memory_order_seq_cst); };
  if (SpinWait::Until(kSpinNanos, done, /*keeps_core=*/true)) return;
  internal::ThrowIfForked("Wait");
  // Bounded by the work before the event, which is queued already.
  completed_.Sleep(done);
}

double CpuEventState::NanosSince(EventState& begin) {
  return static_cast<double>(nanos_ -
                             static_cast<CpuEventState&>(begin).nanos_);
}

}  // namespace d2l
