#include "common/base/usable_cores.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/cgroup.h"

namespace d2l {
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

}  // namespace d2l
