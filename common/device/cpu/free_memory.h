// How much more memory this process may take.
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

// In bytes; the largest number if nothing limits it. promised: what this
// process has been given, and will touch if it has not yet; Linux counts memory
// only when it is touched. root: where /proc and /sys are looked for; tests
// give a folder.
std::int64_t FreeHostMemory(std::int64_t promised,
                            const std::string& root = "");

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_CPU_FREE_MEMORY_H_
