// For tests: runs a program and takes what it printed.
//
//   ProgramResult r = RunProgram("chapters/x/lesson", {"--size=small"});
//   EXPECT_EQ(r.exit_code, 0) << r.output;
//
// A process can have one device table only, and an exit code is the process's:
// so whole lessons are tested from outside. Errors are reported as exit codes.

#ifndef D2L_COMMON_LESSON_RUN_PROGRAM_H_
#define D2L_COMMON_LESSON_RUN_PROGRAM_H_

#include <string>
#include <vector>

namespace d2l {

struct ProgramResult {
  int exit_code = -1;  // 128 + the signal if one ended it
  std::string output;  // stdout and stderr as they came
};

// environment: "NAME=value" each.
ProgramResult RunProgram(const std::string& program,
                         const std::vector<std::string>& arguments,
                         const std::vector<std::string>& environment = {});

// "" if the file cannot be read.
std::string ReadFile(const std::string& path);

}  // namespace d2l

#endif  // D2L_COMMON_LESSON_RUN_PROGRAM_H_
