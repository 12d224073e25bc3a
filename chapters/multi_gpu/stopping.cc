#include "chapters/multi_gpu/stopping.h"

#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>

#include "common/base/files/atomic_file.h"

namespace d2l {
namespace {

std::atomic<int> stop_signal{0};
std::atomic<bool> waits{false};
std::atomic<pid_t> speaker{0};  // instead of this process

// Written in turn, so that a signal finds one that is complete: to spoil it,
// the other one must be replaced twice while it is written out.
char texts[2][1000];
std::atomic<const char*> text{texts[0]};

// These have only calls that are safe in a signal handler.
void WriteText(int) {
  if (speaker != 0 && kill(speaker, 0) == 0) return;
  const char* const to_say = text;
  if (write(STDERR_FILENO, to_say, std::strlen(to_say)) < 0) {
    // There is nowhere to report it.
  }
}

void OnSignal(int number) {
  if (stop_signal.exchange(number) != 0) {
    RemoveTemporaryFiles();
    signal(number, SIG_DFL);
    raise(number);
    return;
  }
  if (!waits) return WriteText(0);
  const itimerval half_a_second = {{0, 0}, {0, 500'000}};
  setitimer(ITIMER_REAL, &half_a_second, nullptr);
}

}  // namespace

void StopOnSignals() {
  for (const int number : {SIGINT, SIGTERM}) {
    struct sigaction action = {};
    if (sigaction(number, nullptr, &action) == 0 &&
        action.sa_handler == SIG_IGN) {
      continue;
    }
    action = {};
    action.sa_handler = OnSignal;
    action.sa_flags = SA_RESTART;
    sigaction(number, &action, nullptr);
  }
}

void SpeakOnlyFor(pid_t other) {
  speaker = other;
  waits = true;
  struct sigaction action = {};
  action.sa_handler = WriteText;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
}

int StopSignal() { return stop_signal; }

void SetStopText(const std::string& new_text) {
  char* const other = text == texts[0] ? texts[1] : texts[0];
  const std::size_t size = std::min(new_text.size(), sizeof(texts[0]) - 1);
  std::memcpy(other, new_text.data(), size);
  other[size] = '\0';
  text = other;
}

}  // namespace d2l
