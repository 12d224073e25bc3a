// Is the machine quiet? Who else uses it, which would spoil what is measured.
//
//   const MachineLoad load = LookAtMachine({});
//   std::cout << load.ToText();
//   if (load.warnings.empty()) …
//
// Two readings of /proc, 200 ms apart, give what every process used meanwhile;
// nvidia-smi, where it is, names the processes that use a GPU. Containers and
// virtual machines hide part of this: what is not known is said to be so, and
// never taken for quiet.
//
// LookAtMachine is thread-safe, takes a little longer than the window, and
// throws nothing. The others are pure functions.

#ifndef D2L_CHAPTERS_PROFILING_QUIET_H_
#define D2L_CHAPTERS_PROFILING_QUIET_H_

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace d2l {

// A process in /proc/PID/stat; times in ticks of the kernel (_SC_CLK_TCK).
struct ProcessStat {
  int pid = 0;
  std::string name;        // may hold anything: spaces, parentheses
  std::int64_t ticks = 0;  // used so far, in user and in kernel mode
};

// Nothing if the text is not that of such a file.
std::optional<ProcessStat> ParseProcessStat(const std::string& text);

// All CPUs in /proc/stat, in ticks since the machine was started.
struct CpuTicks {
  int cpus = 0;
  std::int64_t busy = 0;   // user and kernel mode, interrupts
  std::int64_t idle = 0;   // also while waiting for a disk
  std::int64_t steal = 0;  // used by other virtual machines
};

std::optional<CpuTicks> ParseCpuTicks(const std::string& stat);

// How many CPUs' time a cgroup may use; nothing if there is no limit. Of
// version 2's cpu.max: "50000 100000".
std::optional<double> ParseCpuMax(const std::string& text);

struct GpuProcess {
  int pid = 0;
  std::string name;
  std::string memory;  // "1024 MiB", or what nvidia-smi says instead
};

// Of nvidia-smi --query-compute-apps=pid,process_name,used_memory
// --format=csv,noheader.
std::vector<GpuProcess> ParseGpuProcesses(const std::string& csv);

struct ProcessUse {
  int pid = 0;
  std::string name;
  double cores = 0;  // 0.95: 95 % of one core
};

struct MachineLoad {
  int cpus = 0;                     // 0: unknown
  std::optional<double> cpu_limit;  // of this container, in cores
  std::optional<std::array<double, 3>> load_average;  // of 1, 5, 15 minutes

  // In the window; nothing if /proc/stat does not say. In cores.
  std::optional<double> window_seconds;
  double busy = 0;              // all processes and the kernel
  double own = 0;               // this process
  double visible = 0;           // by the other processes in /proc
  double stolen = 0;            // by the host, for others
  std::vector<ProcessUse> top;  // at most five others, the busiest first

  std::string governor;                    // "" if not known
  std::optional<double> min_mhz, max_mhz;  // of the CPUs now

  std::optional<std::int64_t> memory_total, memory_available;  // bytes
  std::optional<std::int64_t> swap_total, swap_free;           // bytes
  std::optional<std::int64_t> swapped_pages;  // in and out, in the window

  std::vector<GpuProcess> gpu_processes;  // others
  std::string gpu_note;                   // why they are not known, or ""

  // Plain sentences; none if nothing was seen that spoils figures.
  std::vector<std::string> warnings;

  // All of this in 80 columns, the warnings last.
  std::string ToText() const;
};

struct LookOptions {
  // "/", or in tests a folder with made-up files.
  std::string root = "/";
  // Lets the time between the two readings pass; null: 200 ms.
  std::function<void()> window;
  // The program that names the GPUs' processes, and how long it may take.
  std::string nvidia_smi = "nvidia-smi";
  double nvidia_smi_seconds = 5;
};

MachineLoad LookAtMachine(const LookOptions& options);

// The sentences for what is known; LookAtMachine calls it.
std::vector<std::string> Warnings(const MachineLoad& load);

}  // namespace d2l

#endif  // D2L_CHAPTERS_PROFILING_QUIET_H_
