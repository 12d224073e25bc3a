#include "common/base/event_count.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace d2l {

void EventCount::SleepInRound(std::uint32_t round, std::uint32_t lanes) {
  // Returns at once if the round has changed; a signal does no harm.
  syscall(SYS_futex, &round_, FUTEX_WAIT_BITSET_PRIVATE, round, nullptr,
          nullptr, lanes);
}

void EventCount::Wake(int most, std::uint32_t lanes) {
  round_.fetch_add(1, std::memory_order_seq_cst);
  syscall(SYS_futex, &round_, FUTEX_WAKE_BITSET_PRIVATE, most, nullptr, nullptr,
          lanes);
}

}  // namespace d2l
