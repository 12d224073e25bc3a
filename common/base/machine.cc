#include "common/base/machine.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <limits>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/files/atomic_file.h"

namespace d2l {

namespace {

// The file's first word; "" if there is none.
std::string ReadWord(const std::string& path) {
  std::string word;
  std::ifstream(path) >> word;
  return word;
}

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

// A control group, such as a container's, that the process is in.
struct Cgroup {
  std::string folder;  // of its files; ends in a slash
  bool v2;             // the version of the interface
};

// The groups from the innermost one up, including folders that are not there:
// a container may not see its group's own.
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
    if (!v2 && std::find(controllers.begin(), controllers.end(), controller) ==
                   controllers.end()) {
      continue;
    }
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

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

// The first number in a file; kNoLimit if there is none, as in "max".
std::int64_t ReadNumber(const std::string& file) {
  std::ifstream in(file);
  std::int64_t number = 0;
  return in >> number ? number : kNoLimit;
}

// The number after `key` in a file of lines "key number"; `fallback` if there
// is none.
std::int64_t ReadField(const std::string& file, const std::string& key,
                       std::int64_t fallback) {
  std::ifstream in(file);
  std::string line;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string first;
    std::int64_t number = 0;
    if (words >> first && first == key && words >> number) return number;
  }
  return fallback;
}

// The memory left in one group. Cached files count as free, since the kernel
// drops them when memory is short.
std::int64_t LeftIn(const Cgroup& group) {
  const auto& [folder, v2] = group;
  const std::int64_t limit = v2 ? std::min(ReadNumber(folder + "memory.max"),
                                           ReadNumber(folder + "memory.high"))
                                : ReadNumber(folder + "memory.limit_in_bytes");
  const std::int64_t used =
      ReadNumber(folder + (v2 ? "memory.current" : "memory.usage_in_bytes"));
  if (limit < 0 || limit > kNoLimit / 2 || used < 0 || used > kNoLimit / 2) {
    return kNoLimit;
  }
  std::int64_t left = limit - used;
  for (const char* files : {"inactive_file", "active_file"}) {
    const std::string key = absl::StrCat(v2 ? "" : "total_", files);
    left += std::clamp<std::int64_t>(ReadField(folder + "memory.stat", key, 0),
                                     0, used);
  }
  // Stacks, page tables and the C library also need memory of the group.
  return std::max<std::int64_t>(0, left - limit / 16);
}

}  // namespace

namespace internal {

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
  // The call fails if there are more CPUs than the 1024 of a cpu_set_t.
  int cores = sched_getaffinity(0, sizeof(allowed), &allowed) == 0
                  ? CPU_COUNT(&allowed)
                  : static_cast<int>(std::thread::hardware_concurrency());
  const double quota = internal::CpuQuota("");
  if (quota > 0 && quota < cores) cores = static_cast<int>(std::ceil(quota));
  return std::max(cores, 1);
}

std::int64_t FreeHostMemory(std::int64_t promised, const std::string& root) {
  // In pages: the address space, the resident part, the part that is files.
  std::int64_t pages[3] = {};
  std::ifstream statm(root + "/proc/self/statm");
  for (std::int64_t& number : pages) statm >> number;
  const std::int64_t page_bytes = sysconf(_SC_PAGESIZE);
  const std::int64_t touched = (pages[1] - pages[2]) * page_bytes;

  const std::int64_t kilobytes =
      ReadField(root + "/proc/meminfo", "MemAvailable:", kNoLimit);
  std::int64_t free = kNoLimit;
  for (const Cgroup& group : Cgroups("memory", root)) {
    free = std::min(free, LeftIn(group));
  }
  if (kilobytes >= 0 && kilobytes < kNoLimit / 1024) {
    free = std::min(free, kilobytes * 1024);
  }
  free -= std::clamp<std::int64_t>(promised - touched, 0, free);

  rlimit addresses{};
  if (getrlimit(RLIMIT_AS, &addresses) == 0 &&
      addresses.rlim_cur != RLIM_INFINITY) {
    const std::int64_t left =
        static_cast<std::int64_t>(addresses.rlim_cur) - pages[0] * page_bytes;
    free = std::clamp<std::int64_t>(left, 0, free);
  }
  return free;
}

std::optional<std::int64_t> CacheBytes(int level, const std::string& root) {
  for (int index = 0;; ++index) {
    const std::string cache = absl::StrCat(
        root, "/sys/devices/system/cpu/cpu0/cache/index", index, "/");
    const std::string its_level = ReadWord(cache + "level");
    if (its_level.empty()) return std::nullopt;
    if (its_level != absl::StrCat(level) ||
        ReadWord(cache + "type") == "Instruction") {
      continue;
    }
    // "48K" or "2M"
    std::int64_t size = 0;
    std::string unit;
    std::ifstream(cache + "size") >> size >> unit;
    if (size <= 0 || size > kMiB) return std::nullopt;
    return size * (unit == "K" ? 1024 : unit == "M" ? kMiB : 1);
  }
}

std::thread StartThread(const std::string& name, std::function<void()> run) {
  try {
    return std::thread(std::move(run));
  } catch (const std::system_error& error) {
    std::vector<std::string> limits;
    rlimit of_user = {};
    if (getrlimit(RLIMIT_NPROC, &of_user) == 0 &&
        of_user.rlim_cur != RLIM_INFINITY) {
      limits.push_back(
          absl::StrCat(of_user.rlim_cur, " for this user (ulimit -u)"));
    }
    for (const std::string& max :
         internal::CgroupValues("pids", "pids.max", "pids.max")) {
      if (max == "max") continue;
      limits.push_back(absl::StrCat(max, " in this control group (pids.max)"));
    }
    throw std::runtime_error(absl::StrCat(
        "[thread] ", name, " needs a thread, and the system starts none: ",
        error.code().message(), ".",
        limits.empty() ? ""
                       : absl::StrCat(" The limits on threads are ",
                                      absl::StrJoin(limits, ", "), "."),
        " Raise them (ulimit -u, docker run --pids-limit), or use fewer "
        "devices, such as --devices=cpu:0."));
  }
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
  // The counters of one reading agree better with each other than with a clock
  // that is read separately.
  const double ticks = (busy + idle + steal) / after.cpus;
  if (ticks == 0) return std::nullopt;
  return CpuUse{ticks, busy / ticks, steal / ticks};
}

}  // namespace d2l
