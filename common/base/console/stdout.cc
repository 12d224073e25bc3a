#include "common/base/console/stdout.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace d2l {
namespace {

void CheckStdout() {
  // std::cout writes by way of stdout. Closing a copy reports what a network
  // file system has put off.
  const bool lost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
  if (!lost && (close(dup(STDOUT_FILENO)) == 0 || errno == EBADF)) return;
  std::fputs(
      "Error: stdout cannot be written (the disk is full, or the stream is "
      "closed); output is lost.\n",
      stderr);
  _exit(EXIT_FAILURE);
}

}  // namespace

void CheckStdoutAtExit() {
  signal(SIGXFSZ, SIG_IGN);
  for (int file = STDIN_FILENO; file <= STDERR_FILENO; ++file) {
    if (fcntl(file, F_GETFD) >= 0) continue;
    // Takes the lowest number that is free, this one. The wrong direction, so
    // that its use still fails.
    if (open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) {
      return;
    }
  }
  std::atexit(CheckStdout);
}

}  // namespace d2l
