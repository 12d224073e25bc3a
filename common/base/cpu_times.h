// CpuTimes: how long the machine's cores have worked, from /proc/stat.
//
//   const CpuTimes before = ReadCpuTimes("/", Cpus::kUsable);
//   …
//   const std::optional<CpuUse> use =
//       UseBetween(before, ReadCpuTimes("/", Cpus::kUsable));
//   if (use) std::printf("%.1f cores were busy\n", use->busy);
//
// In a sandbox, or a container that hides it, nothing is known.
//
// Thread-safe.

#ifndef D2L_COMMON_BASE_CPU_TIMES_H_
#define D2L_COMMON_BASE_CPU_TIMES_H_

#include <optional>
#include <string>

namespace d2l {

// In the kernel's ticks since the machine was started. Doubles: sums of
// whatever the file says cannot overflow.
struct CpuTimes {
  int cpus = 0;  // 0: unknown
  // Nothing if /proc/stat does not say.
  std::optional<double> busy, idle, steal;
};

// Of all, or of those that this thread may run on.
enum class Cpus { kAll, kUsable };

// root: "/", or a folder of a test.
CpuTimes ReadCpuTimes(const std::string& root, Cpus cpus);

// What was used from one reading to the other, in cores.
struct CpuUse {
  double ticks = 0;   // of one CPU, between the two
  double busy = 0;    // all processes and the kernel
  double stolen = 0;  // by the host, for other virtual machines
};

// Nothing if it is not known, or the counters stand still.
std::optional<CpuUse> UseBetween(const CpuTimes& before, const CpuTimes& after);

}  // namespace d2l

#endif  // D2L_COMMON_BASE_CPU_TIMES_H_
