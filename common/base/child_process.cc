#include "common/base/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "common/base/console/language.h"

namespace d2l {
namespace {

using Clock = std::chrono::steady_clock;

struct Pipe {
  // Programs that other threads start at the same time do not inherit it.
  Pipe() : error(pipe2(ends, O_CLOEXEC) == 0 ? 0 : errno) {}
  ~Pipe() {
    Close(0);
    Close(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  void Close(int end) {
    if (ends[end] >= 0) close(ends[end]);
    ends[end] = -1;
  }

  // Reads the available bytes, and closes the pipe at its end.
  void Read(std::string* text) {
    std::array<char, 4096> buffer;
    const ssize_t n = read(ends[0], buffer.data(), buffer.size());
    if (n > 0) text->append(buffer.data(), static_cast<std::size_t>(n));
    if (n == 0 || (n < 0 && errno != EINTR)) Close(0);
  }

  int ends[2] = {-1, -1};
  int error;  // 0, or an errno
};

// The child's stdin. A file, unlike a pipe, takes all at once, so that nobody
// has to wait for a child that does not read.
struct Input {
  explicit Input(const std::string& text)
      : file(memfd_create("input", MFD_CLOEXEC)) {
    std::size_t done = 0;
    while (file >= 0 && done < text.size()) {
      const ssize_t n = write(file, text.data() + done, text.size() - done);
      if (n < 0 && errno != EINTR) break;
      done += static_cast<std::size_t>(std::max<ssize_t>(n, 0));
    }
    error = file < 0 || done < text.size() ? errno : 0;
    if (error == 0) lseek(file, 0, SEEK_SET);
  }
  ~Input() {
    if (file >= 0) close(file);
  }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  int file;
  int error;  // 0, or an errno
};

std::vector<std::string> Environment(const std::vector<std::string>& changes) {
  const auto name = [](absl::string_view setting) {
    return setting.substr(0, setting.find('='));
  };
  std::vector<std::string> settings;
  for (char** old = environ; *old != nullptr; ++old) {
    if (std::none_of(changes.begin(), changes.end(),
                     [&](const std::string& change) {
                       return name(change) == name(*old);
                     })) {
      settings.push_back(*old);
    }
  }
  for (const std::string& change : changes) {
    if (change.find('=') != std::string::npos) settings.push_back(change);
  }
  return settings;
}

// The pointers refer to `texts`.
std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Returns 0 or an errno.
int Spawn(std::vector<std::string> command,
          std::vector<std::string> environment, bool own_group, int input,
          int output, int error_output, pid_t* child) {
  // These fail for lack of memory only, and then posix_spawnp does too.
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, error_output, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  if (own_group) posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  const int error =
      posix_spawnp(child, command[0].c_str(), &files, &attributes,
                   Pointers(command).data(), Pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return error;
}

// Milliseconds for poll; -1 waits without a limit.
int Left(std::optional<Clock::time_point> end) {
  if (!end) return -1;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(*end - Clock::now());
  return static_cast<int>(
      std::clamp<std::chrono::milliseconds::rep>(left.count(), 0, 1 << 30));
}

}  // namespace

ProgramResult RunProgram(const std::string& program,
                         const std::vector<std::string>& arguments,
                         const std::vector<std::string>& environment,
                         const ProgramOptions& options) {
  ProgramResult result;
  std::optional<Clock::time_point> end;
  if (options.time_limit) end = Clock::now() + *options.time_limit;
  const Input input(options.input);
  Pipe output;
  Pipe error_output;
  std::vector<std::string> command = {program};
  command.insert(command.end(), arguments.begin(), arguments.end());
  pid_t child = -1;
  int error = std::max({input.error, output.error, error_output.error});
  if (error == 0) {
    error = Spawn(command, Environment(environment), end.has_value(),
                  input.file, output.ends[1],
                  (options.separate_stderr ? error_output : output).ends[1],
                  &child);
  }
  if (error != 0) {
    result.failure =
        Say("cannot be run: %s", std::string(std::strerror(error)));
    return result;
  }
  // Otherwise the pipes would never end.
  output.Close(1);
  error_output.Close(1);

  int status = 0;
  while (true) {
    const bool open = output.ends[0] >= 0 || error_output.ends[0] >= 0;
    // A process that has closed its output ends soon, but sends no notice.
    if (!open && waitpid(child, &status, WNOHANG) != 0) break;
    const int left = Left(end);
    if (left == 0) {
      result.timed_out = true;
      kill(-child, SIGKILL);
      while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
      }
      break;
    }
    // poll ignores negative descriptors.
    pollfd files[] = {{output.ends[0], POLLIN, 0},
                      {error_output.ends[0], POLLIN, 0}};
    if (poll(files, 2, open ? left : 1) <= 0) continue;
    if (files[0].revents != 0) output.Read(&result.output);
    if (files[1].revents != 0) error_output.Read(&result.error_output);
  }

  result.exit_code =
      WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  if (result.timed_out) {
    result.failure = absl::StrFormat(
        "was stopped after its limit of %.3g s",
        std::chrono::duration<double>(*options.time_limit).count());
  } else if (WIFSIGNALED(status)) {
    result.failure =
        absl::StrFormat("was ended by signal %d (%s)", WTERMSIG(status),
                        strsignal(WTERMSIG(status)));
  } else if (result.exit_code != 0) {
    result.failure = absl::StrCat("ended with exit code ", result.exit_code);
  }
  return result;
}

}  // namespace d2l
