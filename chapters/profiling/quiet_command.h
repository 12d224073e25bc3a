// Runs a program and takes what it prints, but does not wait for ever.
//
//   const CommandOutput smi = RunCommand({"nvidia-smi", "-L"}, 5);
//   if (smi.failure.empty()) std::cout << smi.output;
//
// Thread-safe. The program is looked for in PATH; its stderr and stdin are
// /dev/null. When the time is up, it and what it started are ended.

#ifndef D2L_CHAPTERS_PROFILING_QUIET_COMMAND_H_
#define D2L_CHAPTERS_PROFILING_QUIET_COMMAND_H_

#include <string>
#include <vector>

namespace d2l {

struct CommandOutput {
  std::string output;   // of stdout
  std::string failure;  // "" if it ran and its exit code was 0; else a sentence
};

CommandOutput RunCommand(const std::vector<std::string>& arguments,
                         double seconds);

}  // namespace d2l

#endif  // D2L_CHAPTERS_PROFILING_QUIET_COMMAND_H_
