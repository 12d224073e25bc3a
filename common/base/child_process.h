// RunProgram: runs a program as a child process and captures its output.
//
//   ProgramOptions options;
//   options.time_limit = std::chrono::seconds(5);
//   const ProgramResult r = RunProgram("nvidia-smi", {"-L"}, {}, options);
//   if (!r.failure.empty()) std::cerr << "nvidia-smi " << r.failure << "\n";
//
// The child inherits no descriptor that was opened with O_CLOEXEC. Errors are
// reported in the result. Thread-safe; blocks until the child has ended.

#ifndef D2L_COMMON_BASE_CHILD_PROCESS_H_
#define D2L_COMMON_BASE_CHILD_PROCESS_H_

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace d2l {

struct ProgramOptions {
  std::string input;  // what the child reads from stdin
  // At this limit the child and all processes it has started are killed.
  // Without a limit the child stays in the process group of this program.
  std::optional<std::chrono::milliseconds> time_limit;
  // Keeps stderr apart from stdout.
  bool separate_stderr = false;
};

struct ProgramResult {
  // As a shell reports it: 128 + the signal that ended the program, 127 if it
  // could not be started.
  int exit_code = 127;
  bool timed_out = false;
  std::string output;  // stdout; with stderr in between unless kept apart
  std::string error_output;
  // The end of a sentence that begins with the program's name, without a full
  // stop: "ended with exit code 7"; "" if the exit code is 0.
  std::string failure;
};

// program: a path, or a name that is looked up in PATH. environment: changes to
// this program's: "NAME=value" sets a variable, "NAME" removes it.
ProgramResult RunProgram(const std::string& program,
                         const std::vector<std::string>& arguments,
                         const std::vector<std::string>& environment = {},
                         const ProgramOptions& options = {});

}  // namespace d2l

#endif  // D2L_COMMON_BASE_CHILD_PROCESS_H_
