// Shared by the tests of train: a small training, the running program, and its
// saved files.

#ifndef D2L_CHAPTERS_MULTI_GPU_TRAIN_TRAIN_TESTING_H_
#define D2L_CHAPTERS_MULTI_GPU_TRAIN_TRAIN_TESTING_H_

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/child_process.h"
#include "common/base/files/atomic_file.h"
#include "common/base/timer.h"
#include "common/ops/read.h"
#include "common/safetensors/safetensors.h"
#include "gtest/gtest.h"

namespace d2l {

inline constexpr char kProgram[] = "chapters/multi_gpu/train";
// 19 small steps an epoch.
inline const std::vector<std::string> kSmall = {
    "--net=mlp", "--images=600", "--batch_size=32", "--momentum=0.5",
    "--devices=cpu:0"};

// The flags, and more, which replace those of the same names.
inline std::vector<std::string> With(std::vector<std::string> flags,
                                     const std::vector<std::string>& more) {
  for (const std::string& flag : more) {
    const std::string name = flag.substr(0, flag.find('=')) + "=";
    flags.erase(std::remove_if(flags.begin(), flags.end(),
                               [&](const std::string& other) {
                                 return absl::StartsWith(other, name);
                               }),
                flags.end());
  }
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

inline ProgramResult Train(const std::vector<std::string>& flags) {
  return RunProgram(kProgram, flags, {"BUILD_WORKING_DIRECTORY"});
}

// Undoes the wrapping of the text.
inline std::string Unwrapped(const std::string& text) {
  std::string result;
  for (const absl::string_view word :
       absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty())) {
    absl::StrAppend(&result, word, " ");
  }
  return result;
}

// The running program, on a pipe or on a terminal.
class Child {
 public:
  enum class Output { kPipe, kTerminal };

  // words: the program, which is looked up in PATH, and its arguments.
  Child(std::vector<std::string> words, Output output,
        unsigned short columns = 80) {
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    int ends[2] = {-1, -1};
    if (output == Output::kTerminal) {
      const winsize size = {40, columns, 0, 0};
      pid_ = forkpty(&from_, nullptr, nullptr, &size);
    } else {
      if (pipe2(ends, O_CLOEXEC) != 0) std::abort();
      from_ = ends[0];
      pid_ = fork();
    }
    if (pid_ != 0) {
      if (ends[1] >= 0) close(ends[1]);
      return;
    }
    if (output == Output::kPipe) {
      dup2(ends[1], STDOUT_FILENO);
      dup2(ends[1], STDERR_FILENO);
    } else {
      setenv("TERM", "xterm", 1);
    }
    unsetenv("BUILD_WORKING_DIRECTORY");
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  ~Child() {
    if (pid_ > 0) Kill(SIGKILL), Wait();
    close(from_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Reads until the text appears; false at the end, or after a minute.
  bool ReadUntil(const std::string& text) {
    const Timer timer;
    while (output.find(text) == std::string::npos) {
      pollfd file = {from_, POLLIN, 0};
      if (timer.Seconds() > 60 || poll(&file, 1, 1000) < 0) return false;
      if (file.revents == 0) continue;
      std::array<char, 4096> buffer;
      const ssize_t n = read(from_, buffer.data(), buffer.size());
      if (n <= 0) return false;  // a terminal's end is an error
      output.append(buffer.data(), static_cast<std::size_t>(n));
    }
    return true;
  }
  void Type(char key) const {
    ASSERT_EQ(write(from_, &key, 1), 1) << "no terminal";
  }
  pid_t pid() const { return pid_; }
  void Kill(int number) const { kill(pid_, number); }
  // Reads to the end. Returns the exit code as a shell reports it.
  int Wait() {
    ReadUntil("\1 which nobody prints");
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

  std::string output;

 private:
  pid_t pid_ = -1;
  int from_ = -1;
};

class TrainTest : public testing::Test {
 protected:
  std::string File(const std::string& name) const {
    return directory_.path() + "/" + name;
  }

 private:
  const TemporaryDirectory directory_;
};

// The tensors' bits.
inline std::string InHex(const std::string& file) {
  const auto loaded = safetensors::LoadFile(file, Device());
  if (!loaded.ok()) return std::string(loaded.status().message());
  std::string text;
  for (const auto& [name, tensor] : loaded->tensors) {
    absl::StrAppend(&text, "\n", name);
    for (const float value : ToVector<float>(tensor)) {
      std::uint32_t bits;
      std::memcpy(&bits, &value, sizeof(bits));
      absl::StrAppend(&text, " ", absl::Hex(bits));
    }
  }
  return text;
}

}  // namespace d2l

#endif  // D2L_CHAPTERS_MULTI_GPU_TRAIN_TRAIN_TESTING_H_
