// UsableCores: how many cores this process may use at the same time.
//
//   std::printf("%d threads\n", UsableCores());
//
// std::thread::hardware_concurrency ignores a container's CPU quota.

#ifndef D2L_COMMON_BASE_USABLE_CORES_H_
#define D2L_COMMON_BASE_USABLE_CORES_H_

#include <string>

namespace d2l {

// The smaller of the cores that this thread may run on (taskset, cpusets) and
// of the CPU quota of its control groups (docker run --cpus=1.5), rounded up;
// at least 1. Reads files, so keep the answer. Thread-safe.
int UsableCores();

namespace internal {
// The smallest quota, in cores; 0 if there is none. root: see CgroupValues.
double CpuQuota(const std::string& root);
}  // namespace internal

}  // namespace d2l

#endif  // D2L_COMMON_BASE_USABLE_CORES_H_
