#include "common/base/machine.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/files/atomic_file.h"

namespace d2l {

std::vector<Cgroup> Cgroups(const std::string& controller,
                            const std::string& root) {
  std::vector<Cgroup> groups;
  std::ifstream lines(root + "/proc/self/cgroup");
  std::string line;
  // "0::/user.slice" for version 2, "4:cpu,cpuacct:/docker/1f" for version 1.
  while (std::getline(lines, line)) {
    const std::vector<std::string> fields =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    const bool v2 = fields[1].empty();
    const std::vector<std::string> controllers = absl::StrSplit(fields[1], ',');
    if (!v2 && !absl::c_linear_search(controllers, controller)) continue;
    const std::string mounted =
        root + "/sys/fs/cgroup" + (v2 ? "" : "/" + controller);
    // In a container the path may be one of the host's, of which only the end
    // is mounted, at the root: then only the last round finds a file.
    for (std::string path = fields[2];; path.erase(path.rfind('/'))) {
      if (path == "/") path.clear();
      groups.push_back({absl::StrCat(mounted, path, "/"), v2});
      if (path.rfind('/') == std::string::npos) break;
    }
  }
  return groups;
}

std::vector<std::string> CgroupValues(const std::string& controller,
                                      const std::string& v1_file,
                                      const std::string& v2_file,
                                      const std::string& root) {
  std::vector<std::string> values;
  for (const Cgroup& group : Cgroups(controller, root)) {
    std::ifstream file(group.folder + (group.v2 ? v2_file : v1_file));
    std::string value;
    if (std::getline(file, value)) values.push_back(std::move(value));
  }
  return values;
}

namespace internal {

double CpuQuota(const std::string& root) {
  // Version 2 has both numbers in one file, version 1 in two.
  std::vector<std::string> limits = CgroupValues("cpu", "", "cpu.max", root);
  const std::vector<std::string> quotas =
      CgroupValues("cpu", "cpu.cfs_quota_us", "", root);
  const std::vector<std::string> periods =
      CgroupValues("cpu", "cpu.cfs_period_us", "", root);
  for (std::size_t i = 0; i < std::min(quotas.size(), periods.size()); ++i) {
    limits.push_back(absl::StrCat(quotas[i], " ", periods[i]));
  }
  double smallest = 0;
  for (const std::string& limit : limits) {
    const std::vector<std::string> words = absl::StrSplit(limit, ' ');
    double quota = 0;
    double period = 0;
    // No limit is "max" in version 2 and -1 in version 1.
    if (words.size() != 2 || !absl::SimpleAtod(words[0], &quota) ||
        !absl::SimpleAtod(words[1], &period) || !(quota > 0) || !(period > 0)) {
      continue;
    }
    const double cores = quota / period;
    if (smallest == 0 || cores < smallest) smallest = cores;
  }
  return smallest;
}

}  // namespace internal

int UsableCores() {
  cpu_set_t allowed;
  // More than the 1024 that a cpu_set_t has room for is an error.
  int cores = sched_getaffinity(0, sizeof(allowed), &allowed) == 0
                  ? CPU_COUNT(&allowed)
                  : static_cast<int>(std::thread::hardware_concurrency());
  const double quota = internal::CpuQuota("");
  if (quota > 0 && quota < cores) cores = static_cast<int>(std::ceil(quota));
  return std::max(cores, 1);
}

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
