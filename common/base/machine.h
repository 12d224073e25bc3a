// What the machine, and the limits of this process on it, leave to be used:
// cores, and time on them; memory is in common/device/cpu/free_memory.h.
//
//   std::printf("%d threads\n", UsableCores());
//   const CpuTimes before = ReadCpuTimes("/", Cpus::kUsable);
//   …
//   const std::optional<CpuUse> use =
//       UseBetween(before, ReadCpuTimes("/", Cpus::kUsable));
//   if (use) std::printf("%.1f cores were busy\n", use->busy);
//
// `root` is the directory that has proc and sys, for tests. All functions read
// files, so keep their answers. Thread-safe.

#ifndef D2L_COMMON_BASE_MACHINE_H_
#define D2L_COMMON_BASE_MACHINE_H_

#include <optional>
#include <string>
#include <vector>

namespace d2l {

// How many cores this process may use at the same time: the smaller of the
// cores that this thread may run on (taskset, cpusets) and of the CPU quota of
// its control groups (docker run --cpus=1.5), rounded up; at least 1.
// (std::thread::hardware_concurrency ignores the quota.)
int UsableCores();

// A control group, such as a container's, that the process is in.
struct Cgroup {
  std::string folder;  // of its files; ends in a slash
  bool v2;             // the version of the interface
};

// The groups from the innermost one up, including folders that are not there:
// a container may not see its group's own. controller: "cpu", "memory", "pids".
std::vector<Cgroup> Cgroups(const std::string& controller,
                            const std::string& root = "");

// The contents, without the line's end, of a file of each of them; groups
// without the file are left out. v1_file, v2_file: the file's name in either
// version.
std::vector<std::string> CgroupValues(const std::string& controller,
                                      const std::string& v1_file,
                                      const std::string& v2_file,
                                      const std::string& root = "");

// How long the cores have worked, from /proc/stat, in the kernel's ticks since
// the machine was started. Doubles: sums of whatever the file says cannot
// overflow.
struct CpuTimes {
  int cpus = 0;  // 0: unknown
  // Nothing if /proc/stat does not say, as in a sandbox.
  std::optional<double> busy, idle, steal;
};

// Of all, or of those that this thread may run on.
enum class Cpus { kAll, kUsable };

CpuTimes ReadCpuTimes(const std::string& root, Cpus cpus);

// What was used from one reading to the other, in cores.
struct CpuUse {
  double ticks = 0;   // of one CPU, between the two
  double busy = 0;    // all processes and the kernel
  double stolen = 0;  // by the host, for other virtual machines
};

// Nothing if it is not known, or the counters stand still.
std::optional<CpuUse> UseBetween(const CpuTimes& before, const CpuTimes& after);

namespace internal {
// The smallest quota, in cores; 0 if there is none.
double CpuQuota(const std::string& root);
}  // namespace internal

}  // namespace d2l

#endif  // D2L_COMMON_BASE_MACHINE_H_
