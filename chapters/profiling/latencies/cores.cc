#include "chapters/profiling/latencies/cores.h"

#include <pthread.h>

#include <cstddef>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace d2l {
namespace {

// The CPUs that this thread may use; none if the system does not say.
cpu_set_t AllowedCpus() {
  cpu_set_t cpus;
  if (pthread_getaffinity_np(pthread_self(), sizeof(cpus), &cpus) != 0) {
    CPU_ZERO(&cpus);
  }
  return cpus;
}

bool Allow(const cpu_set_t& cpus) {
  return pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus) == 0;
}

}  // namespace

std::vector<int> AllowedCores() {
  const cpu_set_t allowed = AllowedCpus();
  std::vector<int> cores;
  std::set<std::string> seen;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(static_cast<std::size_t>(cpu), &allowed)) continue;
    std::string siblings = absl::StrCat("CPU ", cpu);  // if /sys does not say
    std::ifstream(absl::StrCat("/sys/devices/system/cpu/cpu", cpu,
                               "/topology/thread_siblings_list")) >>
        siblings;
    if (seen.insert(siblings).second) cores.push_back(cpu);
  }
  return cores;
}

OnCpu::OnCpu(int cpu) : before_(AllowedCpus()) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(static_cast<std::size_t>(cpu), &cpus);
  pinned_ = Allow(cpus);
}

OnCpu::~OnCpu() { Allow(before_); }

}  // namespace d2l
