#include "common/lesson/cell/other_load.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>

#include "common/base/console/language.h"
#include "common/base/files/atomic_file.h"
#include "common/base/machine.h"

namespace d2l {
namespace {

// Fewer cores than this are the usual background.
constexpr double kDisturbing = 0.3;
// The kernel counts ticks of a hundredth of a second: fewer are no evidence.
constexpr double kLeastTicks = 5;

// CPU time of this process and of its ended children.
double OwnSeconds() {
  double seconds = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage = {};
    if (getrusage(who, &usage) != 0) continue;
    for (const timeval& time : {usage.ru_utime, usage.ru_stime}) {
      seconds += static_cast<double>(time.tv_sec) +
                 1e-6 * static_cast<double>(time.tv_usec);
    }
  }
  return seconds;
}

}  // namespace

bool OtherLoad::Disturbs(int needed) const {
  return cores > kDisturbing && cores + needed > of;
}

std::string OtherLoad::Text() const {
  return of == 1 ? Say("Other programs used %.1f of %d core.", cores, of)
                 : Say("Other programs used %.1f of %d cores.", cores, of);
}

double LoadAllowance() {
  // "0", or for two hyper-threads "0,4" and "0-1".
  const std::string siblings =
      ReadFile("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list");
  return siblings.find_first_of(",-") == std::string::npos ? 1.05 : 1.3;
}

LoadWatch::LoadWatch()
    : before_(ReadCpuTimes("/", Cpus::kUsable)), own_before_(OwnSeconds()) {}

std::optional<OtherLoad> LoadWatch::Seen() const {
  const double own = OwnSeconds() - own_before_;
  const CpuTimes after = ReadCpuTimes("/", Cpus::kUsable);
  const std::optional<CpuUse> use = UseBetween(before_, after);
  if (!use) return std::nullopt;
  const double own_cores =
      own * static_cast<double>(sysconf(_SC_CLK_TCK)) / use->ticks;
  const double others = use->busy + use->stolen - own_cores;
  if (others * use->ticks < kLeastTicks) return OtherLoad{0, after.cpus};
  return OtherLoad{std::min<double>(others, after.cpus), after.cpus};
}

}  // namespace d2l
