#include "common/base/cpu_times.h"

#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/atomic_file.h"

namespace d2l {

CpuTimes ReadCpuTimes(const std::string& root, Cpus cpus) {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  const bool all =
      cpus == Cpus::kAll || sched_getaffinity(0, sizeof(usable), &usable) != 0;
  CpuTimes times;
  const std::string stat = ReadFile(root + "/proc/stat");
  for (const absl::string_view line : absl::StrSplit(stat, '\n')) {
    if (!absl::StartsWith(line, "cpu")) continue;
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, ' ', absl::SkipEmpty());
    int cpu = 0;
    const bool is_sum = !absl::SimpleAtoi(words[0].substr(3), &cpu);
    if (!is_sum && !all && (cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &usable))) {
      continue;
    }
    if (!is_sum) ++times.cpus;
    if (is_sum != all) continue;
    // user nice system idle iowait irq softirq steal; the guests' time, which
    // follows, is in user and nice already.
    std::vector<double> t;
    std::uint64_t value = 0;
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (!absl::SimpleAtoi(words[i], &value)) break;
      t.push_back(static_cast<double>(value));
    }
    if (t.size() < 8) continue;
    times.busy = times.busy.value_or(0) + t[0] + t[1] + t[2] + t[5] + t[6];
    times.idle = times.idle.value_or(0) + t[3] + t[4];
    times.steal = times.steal.value_or(0) + t[7];
  }
  return times;
}

std::optional<CpuUse> UseBetween(const CpuTimes& before,
                                 const CpuTimes& after) {
  if (!before.busy || !after.busy || after.cpus == 0) return std::nullopt;
  // A counter may go back by a tick when a CPU wakes up.
  const double busy = std::max(*after.busy - *before.busy, 0.0);
  const double idle = std::max(*after.idle - *before.idle, 0.0);
  const double steal = std::max(*after.steal - *before.steal, 0.0);
  // The counters of a moment fit together better than a clock that is read
  // beside them.
  const double ticks = (busy + idle + steal) / after.cpus;
  if (ticks == 0) return std::nullopt;
  return CpuUse{ticks, busy / ticks, steal / ticks};
}

}  // namespace d2l
