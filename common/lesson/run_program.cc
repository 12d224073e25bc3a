#include "common/lesson/run_program.h"

#include <sys/wait.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace d2l {
namespace {

std::string Quoted(const std::string& word) {
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

}  // namespace

ProgramResult RunProgram(const std::string& program,
                         const std::vector<std::string>& arguments,
                         const std::vector<std::string>& environment) {
  // bazel run sets these for the test itself, maybe.
  std::string command =
      "exec env -u BUILD_WORKING_DIRECTORY -u CUDA_LAUNCH_BLOCKING";
  for (const std::string& setting : environment) {
    absl::StrAppend(&command, " ", Quoted(setting));
  }
  absl::StrAppend(&command, " ", Quoted(program));
  for (const std::string& argument : arguments) {
    absl::StrAppend(&command, " ", Quoted(argument));
  }
  absl::StrAppend(&command, " 2>&1");

  ProgramResult result;
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return result;
  std::array<char, 4096> buffer;
  std::size_t n;
  while ((n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0) {
    result.output.append(buffer.data(), n);
  }
  const int status = pclose(pipe);
  result.exit_code =
      WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace d2l
