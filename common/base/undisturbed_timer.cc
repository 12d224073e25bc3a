#include "common/base/undisturbed_timer.h"

#include <dirent.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
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
#include "common/base/machine.h"

namespace d2l {
namespace {

// Of one thread, the queues of its devices hide most of what it waits.
constexpr double kPartOfOneThread = 0.1;
constexpr double kSeconds = 20e-6;

std::atomic<std::int64_t> ended_nanos{0};

// How long a thread has waited, in nanoseconds; nullopt if the kernel does not
// count it.
std::optional<std::int64_t> WaitedNanos(int thread) {
  // "RUN WAITED SLICES"; zeros without CONFIG_SCHED_INFO.
  const std::string text =
      ReadFile(absl::StrCat("/proc/self/task/", thread, "/schedstat"));
  const std::vector<absl::string_view> words = absl::StrSplit(text, ' ');
  std::int64_t waited = 0, slices = 0;
  if (words.size() != 3 || !absl::SimpleAtoi(words[1], &waited) ||
      !absl::SimpleAtoi(words[2], &slices) || slices == 0) {
    return std::nullopt;
  }
  return waited;
}

}  // namespace

ProcessTimes ProcessTimes::Read() {
  ProcessTimes times;
  const std::unique_ptr<DIR, int (*)(DIR*)> tasks(opendir("/proc/self/task"),
                                                  &closedir);
  if (tasks == nullptr) return times;
  while (const dirent* entry = readdir(tasks.get())) {
    int id = 0;
    if (!absl::SimpleAtoi(entry->d_name, &id)) continue;  // ".", ".."
    if (const auto nanos = WaitedNanos(id)) {
      times.waited[id] = 1e-9 * static_cast<double>(*nanos);
    }
  }
  times.ended_waited = 1e-9 * static_cast<double>(ended_nanos);
  times.run = CpuSeconds(CLOCK_PROCESS_CPUTIME_ID);
  return times;
}

ProcessTimes ProcessTimes::ReadThisThread() {
  ProcessTimes times;
  if (const auto nanos = WaitedNanos(gettid())) {
    times.waited[gettid()] = 1e-9 * static_cast<double>(*nanos);
  }
  return times;
}

bool Undisturbed(double seconds, const ProcessTimes& before,
                 const ProcessTimes& after, int cores, double part) {
  double waited = after.ended_waited - before.ended_waited;
  for (const auto& [id, now] : after.waited) {
    const auto then = before.waited.find(id);
    waited += then == before.waited.end() ? now : now - then->second;
  }
  // Other programs had the rest of the cores at most.
  const double rest = cores * seconds - (after.run - before.run);
  return std::min(waited, rest) < part * seconds + kSeconds;
}

Elapsed UndisturbedTimer::Read() const {
  static const int cores = UsableCores();
  const double seconds = Seconds();
  // Before the files are read, which is work as well.
  const double run = CpuSeconds(CLOCK_PROCESS_CPUTIME_ID);
  ProcessTimes after =
      this_thread_ ? ProcessTimes::ReadThisThread() : ProcessTimes::Read();
  if (!this_thread_) after.run = run;
  return {seconds, Undisturbed(seconds, before_, after, cores,
                               this_thread_ ? kPartOfOneThread : kWaitedPart)};
}

void KeepWaits() { ended_nanos += WaitedNanos(gettid()).value_or(0); }

}  // namespace d2l
