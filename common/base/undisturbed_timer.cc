#include "common/base/undisturbed_timer.h"

#include <dirent.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/files/atomic_file.h"
#include "common/base/spin_wait.h"

namespace d2l {
namespace {

// The cost of a sleep and a wake-up, to both threads that take part in it.
constexpr double kSliceSeconds = 10e-6;

double SecondsOf(clockid_t clock) {
  timespec time = {};
  if (clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) +
         1e-9 * static_cast<double>(time.tv_nsec);
}

// The clock of a thread's run time, as pthread_getcpuclockid makes it.
// schedstat has it, too, but of a running thread only up to the last tick.
clockid_t ClockOf(int thread) {
  return static_cast<clockid_t>(~static_cast<unsigned>(thread) << 3 | 6);
}

}  // namespace

void ProcessTimes::ReadWaits() {
  const std::unique_ptr<DIR, int (*)(DIR*)> tasks(opendir("/proc/self/task"),
                                                  &closedir);
  if (tasks == nullptr) return;
  while (const dirent* entry = readdir(tasks.get())) {
    int id = 0;
    if (!absl::SimpleAtoi(entry->d_name, &id)) continue;  // ".", ".."
    // "RUN WAITED SLICES", in nanoseconds; zeros without CONFIG_SCHED_INFO.
    const std::string text =
        ReadFile(absl::StrCat("/proc/self/task/", id, "/schedstat"));
    const std::vector<absl::string_view> words = absl::StrSplit(text, ' ');
    std::uint64_t waited = 0, slices = 0;
    if (words.size() != 3 || !absl::SimpleAtoi(words[1], &waited) ||
        !absl::SimpleAtoi(words[2], &slices) || slices == 0) {
      continue;
    }
    threads[id].waited = 1e-9 * static_cast<double>(waited);
    threads[id].slices = static_cast<double>(slices);
  }
}

void ProcessTimes::ReadRuns() {
  for (auto& [id, thread] : threads) thread.run = SecondsOf(ClockOf(id));
  self = gettid();
  self_spun = 1e-9 * static_cast<double>(SpinWait::OwnNanos());
  others_spun = 1e-9 * static_cast<double>(SpinWait::AllNanos()) - self_spun;
  run = SecondsOf(CLOCK_PROCESS_CPUTIME_ID);
}

std::optional<Bounds> Undisturbed(double seconds, const ProcessTimes& before,
                                  const ProcessTimes& after) {
  if (after.threads.empty()) return std::nullopt;
  for (const auto& [id, then] : before.threads) {
    if (after.threads.count(id) == 0) return std::nullopt;
  }
  const double run = after.run - before.run;
  double busiest = 0;             // what one thread did
  double none_ran = 0;            // while one thread waited
  double waited = 0, slices = 0;  // of all threads
  for (const auto& [id, now] : after.threads) {
    ProcessTimes::Thread thread = now;
    const auto then = before.threads.find(id);
    if (then != before.threads.end()) {
      thread.run -= then->second.run;
      thread.waited -= then->second.waited;
      thread.slices -= then->second.slices;
    }
    const double spun = id == after.self
                            ? after.self_spun - before.self_spun
                            : after.others_spun - before.others_spun;
    busiest = std::max(busiest, thread.run - spun);
    slices += thread.slices;
    // The thread may have begun to wait before the first reading.
    thread.waited = std::min(thread.waited, seconds);
    waited += thread.waited;
    none_ran = std::max(none_ran, thread.waited - (run - thread.run));
  }
  // Some of the waiting may be of the time in which it was read.
  const double most = std::clamp(
      seconds - none_ran + before.reading + after.reading, 0.0, seconds);
  // When all threads slept: for a timeout, a disk or a GPU.
  const double asleep = std::max(seconds - run - waited, 0.0);
  const double least = busiest + asleep - kSliceSeconds * slices;
  return Bounds{std::clamp(least, 0.0, most), most};
}

Elapsed Part(double seconds, const Elapsed& whole) {
  if (!whole.undisturbed) return {seconds, std::nullopt};
  const double lost = whole.seconds - whole.undisturbed->least;
  return {seconds, Bounds{std::max(seconds - lost, 0.0), seconds}};
}

// The clocks are read last here, and first below, so that reading the files
// does not count as work of this thread.
UndisturbedTimer::UndisturbedTimer() {
  before_.ReadWaits();
  before_.ReadRuns();
  before_.reading = Seconds();
  timer_.Restart();
}

Elapsed UndisturbedTimer::Read() const {
  const double seconds = Seconds();
  ProcessTimes after = before_;
  after.ReadRuns();
  const ProcessTimes runs = after;
  after.threads.clear();
  after.ReadWaits();
  // A thread that has begun since has run for as long as it has existed.
  for (auto& [id, thread] : after.threads) {
    const auto known = runs.threads.find(id);
    thread.run = known != runs.threads.end() ? known->second.run
                                             : SecondsOf(ClockOf(id));
  }
  after.reading = Seconds() - seconds;
  return {seconds, Undisturbed(seconds, before_, after)};
}

}  // namespace d2l
