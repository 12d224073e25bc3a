#include "common/device/cpu/virtual_timing.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <vector>

namespace d2l::internal {

std::atomic<ActiveTiming*> active_timing{nullptr};

LinkClock::Span LinkClock::Book(int from, int to, double bytes,
                                std::int64_t ready) {
  // No call is that late.
  constexpr std::int64_t kForgottenAfter = 1'000'000'000;
  MutexLock lock(mutex_);
  const bool with_host = from == kHostNode || to == kHostNode;
  if (from == to || (with_host && !topology_.has_host())) return {ready, ready};
  const int host = topology_.ranks();
  const std::vector<int> route = topology_.Route(
      from == kHostNode ? host : from, to == kHostNode ? host : to);
  const auto nanos =
      static_cast<std::int64_t>(1e9 * topology_.Seconds(route, bytes));
  std::int64_t begin = ready;
  for (bool moved = true; moved;) {
    moved = false;
    for (const int link : route) {
      const auto& busy = busy_[link];
      auto next = busy.upper_bound(begin);
      if (next != busy.begin()) --next;
      for (; next != busy.end() && next->first < begin + nanos; ++next) {
        if (next->second <= begin) continue;
        begin = next->second;
        moved = true;
      }
    }
  }
  for (const int link : route) {
    auto& busy = busy_[link];
    while (!busy.empty() && busy.begin()->second < ready - kForgottenAfter) {
      busy.erase(busy.begin());
    }
    busy.emplace(begin, begin + nanos);
  }
  return {begin, begin + nanos};
}

}  // namespace d2l::internal
