// Who else uses the machine, and would spoil what is measured on it.
//
//   const MachineLoad load = LookAtMachine({});
//   std::cout << load.ToText();
//   if (load.warnings.empty()) …
//
// Two readings of /proc, 200 ms apart, give what every process used meanwhile;
// nvidia-smi, where it is installed, names the processes that use a GPU.
// Containers and virtual machines hide part of this: what is not known is said
// to be so, and never taken for quiet.
//
// Thread-safe; takes a little longer than the 200 ms. Errors are reported in
// the result.

#ifndef D2L_CHAPTERS_PROFILING_MACHINE_LOAD_MACHINE_LOAD_H_
#define D2L_CHAPTERS_PROFILING_MACHINE_LOAD_MACHINE_LOAD_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace d2l {

struct ProcessLoad {
  int pid = 0;
  std::string name;  // printable
  double cores = 0;  // 0.95: 95 % of one core
};

struct GpuProcess {
  int pid = 0;
  std::string name;    // printable
  std::string memory;  // "1024 MiB", or what nvidia-smi says instead
};

struct MachineLoad {
  int cpus = 0;                        // 0: unknown
  std::optional<double> load_average;  // of the last minute

  // Between the two readings, in cores; all 0 unless they are known.
  bool known = false;
  double busy = 0;                  // all processes and the kernel
  double own = 0;                   // this process
  double visible = 0;               // the other processes in /proc
  double stolen = 0;                // by the host, for other virtual machines
  std::vector<ProcessLoad> others;  // at most five, the busiest first

  std::vector<GpuProcess> gpu_processes;  // without this one
  std::string gpu_note;                   // why they are not known, or ""

  // Plain sentences; none if nothing was seen that spoils figures.
  std::vector<std::string> warnings;

  // All of this in 80 columns, the warnings last.
  std::string ToText() const;
};

struct LookOptions {
  // "/", or a folder of a test.
  std::string root = "/";
  // Lets the time between the two readings pass; null: sleeps for 200 ms.
  std::function<void()> window = nullptr;
  std::string nvidia_smi = "nvidia-smi";
};

MachineLoad LookAtMachine(const LookOptions& options);

}  // namespace d2l

#endif  // D2L_CHAPTERS_PROFILING_MACHINE_LOAD_MACHINE_LOAD_H_
