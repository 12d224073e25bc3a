// The resources that the machine and the limits of this process leave
// available: cores and their time, memory, caches and threads.
//
//   std::thread worker = StartThread("the loader", [] { Load(); });
//   if (FreeHostMemory(promised) < bytes) return nullptr;  // or Linux kills us
//   std::printf("%d threads\n", UsableCores());
//   const CpuTimes before = ReadCpuTimes("/", Cpus::kUsable);
//   …
//   const std::optional<CpuUse> use =
//       UseBetween(before, ReadCpuTimes("/", Cpus::kUsable));
//   if (use) std::printf("%.1f cores were busy\n", use->busy);
//
// `root` is the directory that has proc and sys, for tests. All functions read
// files, so cache their results. Thread-safe.

#ifndef D2L_COMMON_BASE_MACHINE_H_
#define D2L_COMMON_BASE_MACHINE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace d2l {

// How many cores this process may use at the same time: the smaller of the
// number of cores that this thread may run on (taskset, cpusets) and the CPU
// quota of its control groups (docker run --cpus=1.5), rounded up; at least 1.
// (std::thread::hardware_concurrency ignores the quota.)
int UsableCores();

// The memory that this process may still allocate, in bytes; the largest number
// if nothing limits it. It is the least of what /proc/meminfo calls available,
// what is left below the limits of the process's memory cgroups (v1 and v2, up
// to the root), and what RLIMIT_AS leaves of its address space. promised: bytes
// allocated to this process that it may not have touched yet; Linux counts
// memory only when it is touched.
std::int64_t FreeHostMemory(std::int64_t promised,
                            const std::string& root = "");

// The size in bytes of the data cache of level 1, 2 or 3 of the first CPU;
// nullopt if /sys does not report it, as in some virtual machines.
std::optional<std::int64_t> CacheBytes(int level, const std::string& root = "");

// Throws std::runtime_error, with the limits on threads and what to do about
// them, if the system starts no thread. name: the thread's user, for the
// message.
std::thread StartThread(const std::string& name, std::function<void()> run);

// How long the cores have worked, from /proc/stat, in the kernel's ticks since
// the machine was started. They are doubles so that no sum can overflow,
// whatever the file says.
struct CpuTimes {
  int cpus = 0;  // 0: unknown
  // nullopt if /proc/stat does not report them, as in a sandbox.
  std::optional<double> busy, idle, steal;
};

// All CPUs, or those that this thread may run on.
enum class Cpus { kAll, kUsable };

CpuTimes ReadCpuTimes(const std::string& root, Cpus cpus);

// The use of the CPUs between two readings, in cores.
struct CpuUse {
  double ticks = 0;   // of one CPU, between the two
  double busy = 0;    // all processes and the kernel
  double stolen = 0;  // by the host, for other virtual machines
};

// nullopt if it is unknown or the counters have not changed.
std::optional<CpuUse> UseBetween(const CpuTimes& before, const CpuTimes& after);

namespace internal {
// The contents, without the line's end, of a file of each control group that
// the process is in, from the innermost one up; groups without the file are
// left out. controller: "cpu", "memory", "pids". v1_file, v2_file: the file's
// name in either version of the interface.
std::vector<std::string> CgroupValues(const std::string& controller,
                                      const std::string& v1_file,
                                      const std::string& v2_file,
                                      const std::string& root = "");
// The smallest quota, in cores; 0 if there is none.
double CpuQuota(const std::string& root);
}  // namespace internal

}  // namespace d2l

#endif  // D2L_COMMON_BASE_MACHINE_H_
