// Finds out who else uses the machine, and would spoil measurements.
//
//   const MachineLoad load = LookAtMachine({});
//   std::cout << load.ToText();
//   if (load.warnings.empty()) …
//
// A LoadWatch (common/lesson/cell/other_load.h) gives what other programs used
// in 200 ms; /proc, where they are visible, names them; nvidia-smi, where it is
// installed, names the processes that use a GPU. Containers and virtual
// machines hide part of this: the report says what is not known, and never
// takes it for quiet.
//
// Thread-safe; takes a little longer than the 200 ms. Errors are reported in
// the result.

#ifndef D2L_CHAPTERS_PROFILING_MACHINE_LOAD_H_
#define D2L_CHAPTERS_PROFILING_MACHINE_LOAD_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/lesson/cell/other_load.h"

namespace d2l {

struct ProcessLoad {
  int pid = 0;
  std::string name;  // printable
  double cores = 0;  // 0.95: 95 % of one core
};

struct MachineLoad {
  std::optional<double> load_average;  // of the last minute
  std::optional<OtherLoad> other;      // nothing: not known
  // At most three of the other processes in /proc, the busiest first; the cores
  // that all of them use together.
  std::vector<ProcessLoad> processes;
  double visible = 0;
  // "train (pid 77), 900 MiB": the other processes that use a GPU.
  std::vector<std::string> gpu_processes;
  std::string gpu_note;  // why they are not known, or ""

  // Plain sentences; none if nothing was seen that spoils figures.
  std::vector<std::string> warnings;

  // All of this in 80 columns, the warnings last.
  std::string ToText() const;
};

struct LookOptions {
  // "/", or a folder of a test.
  std::string root = "/";
  // Lets 200 ms pass and returns what other programs used; null: a LoadWatch.
  std::function<std::optional<OtherLoad>()> window = nullptr;
  std::string nvidia_smi = "nvidia-smi";
};

MachineLoad LookAtMachine(const LookOptions& options);

}  // namespace d2l

#endif  // D2L_CHAPTERS_PROFILING_MACHINE_LOAD_H_
