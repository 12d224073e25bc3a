// The memory that this process may still allocate.
//
//   if (FreeHostMemory(promised) < bytes) return nullptr;  // or Linux kills us
//
// The least of what /proc/meminfo calls available, what is left below the
// limits of the process's memory cgroups (v1 and v2, up to the root), and what
// RLIMIT_AS leaves of its address space.

#ifndef D2L_COMMON_DEVICE_CPU_FREE_MEMORY_H_
#define D2L_COMMON_DEVICE_CPU_FREE_MEMORY_H_

#include <cstdint>
#include <string>

namespace d2l {

// In bytes; the largest number if nothing limits it. promised: bytes allocated
// to this process that it may not have touched yet; Linux counts memory only
// when it is touched. root: the folder of /proc and /sys, for tests.
std::int64_t FreeHostMemory(std::int64_t promised,
                            const std::string& root = "");

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_CPU_FREE_MEMORY_H_
