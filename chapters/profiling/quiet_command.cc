#include "chapters/profiling/quiet_command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/timer.h"

namespace d2l {
namespace {

int MillisLeft(const Timer& timer, double seconds) {
  return static_cast<int>(1e3 * std::max(seconds - timer.Seconds(), 0.0));
}

// Reads until the end, or the time is up: then false.
bool ReadAll(int fd, const Timer& timer, double seconds, std::string* text) {
  while (true) {
    pollfd wait = {fd, POLLIN, 0};
    const int ready = poll(&wait, 1, MillisLeft(timer, seconds));
    if (ready == 0) return false;
    if (ready < 0 && errno == EINTR) continue;
    char buffer[4096];
    const ssize_t got = read(fd, buffer, sizeof(buffer));
    if (got <= 0) return true;
    text->append(buffer, static_cast<std::size_t>(got));
  }
}

// Waits until the program has ended, or the time is up: then false.
bool WaitForEnd(pid_t pid, const Timer& timer, double seconds, int* status) {
  while (waitpid(pid, status, WNOHANG) == 0) {
    if (MillisLeft(timer, seconds) == 0) return false;
    poll(nullptr, 0, 1);  // a process that has closed its output soon ends
  }
  return true;
}

}  // namespace

CommandOutput RunCommand(const std::vector<std::string>& arguments,
                         double seconds) {
  const std::string& program = arguments[0];
  CommandOutput result;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    result.failure = absl::StrCat("There is no pipe to ", program, ".");
    return result;
  }
  std::vector<char*> argv;
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY,
                                   0);
  posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY,
                                   0);
  // A process group of its own, so that its children can be ended with it.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  const Timer timer;
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, program.c_str(), &files, &attributes,
                                 argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    result.failure =
        error == ENOENT
            ? absl::StrCat("There is no ", program, " in PATH.")
            : absl::StrCat(program, " cannot be run: ", std::strerror(error),
                           ".");
    return result;
  }

  int status = 0;
  const bool in_time = ReadAll(ends[0], timer, seconds, &result.output) &&
                       WaitForEnd(pid, timer, seconds, &status);
  close(ends[0]);
  if (!in_time) {
    kill(-pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
  }
  if (!in_time) {
    result.failure =
        absl::StrFormat("%s did not answer in %g seconds.", program, seconds);
  } else if (!WIFEXITED(status)) {
    result.failure =
        absl::StrCat(program, " was ended by signal ", WTERMSIG(status), ".");
  } else if (WEXITSTATUS(status) != 0) {
    result.failure = absl::StrCat(program, " failed with exit code ",
                                  WEXITSTATUS(status), ".");
  }
  return result;
}

}  // namespace d2l
