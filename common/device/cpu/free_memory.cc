#include "common/device/cpu/free_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/machine.h"

namespace d2l {
namespace {

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

// What is left in one group. Files that the kernel has in memory give way.
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
  // Stacks, page tables and what the C library takes count, too.
  return std::max<std::int64_t>(0, left - limit / 16);
}

}  // namespace

std::int64_t FreeHostMemory(std::int64_t promised, const std::string& root) {
  // In pages: all addresses, what is in memory, what of it is files.
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

}  // namespace d2l
