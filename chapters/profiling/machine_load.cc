#include "chapters/profiling/machine_load.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/child_process.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/base/files/atomic_file.h"
#include "common/base/timer.h"
#include "common/lesson/cell/other_load.h"

namespace d2l {
namespace {

constexpr std::chrono::milliseconds kWindow(200);
constexpr std::chrono::seconds kGpuTimeLimit(5);
constexpr std::size_t kMostProcesses = 3;
// /proc/stat and the processes' own counters do not agree to the tick.
constexpr double kHidden = 0.3;

struct Process {
  std::string name;
  double ticks = 0;
};

// A process may give itself any name, control characters included.
std::string Printable(absl::string_view text) {
  return CutText(PrintableText(absl::StripAsciiWhitespace(text)), 60);
}

// "12 (a) b (c) S 1 …": the name ends at the last parenthesis; utime and stime
// are the 12th and the 13th word after it.
std::optional<Process> ParseProcess(absl::string_view stat) {
  const std::size_t open = stat.find('(');
  const std::size_t close = stat.rfind(')');
  if (open == stat.npos || close == stat.npos || close < open) return {};
  const std::vector<absl::string_view> words =
      absl::StrSplit(stat.substr(close + 1), ' ', absl::SkipEmpty());
  std::uint64_t user = 0, kernel = 0;
  if (words.size() < 13 || !absl::SimpleAtoi(words[11], &user) ||
      !absl::SimpleAtoi(words[12], &kernel)) {
    return {};
  }
  // Doubles, so that no numbers in the file can make the sum overflow.
  return Process{Printable(stat.substr(open + 1, close - open - 1)),
                 static_cast<double>(user) + static_cast<double>(kernel)};
}

// The other processes, by pid.
std::map<int, Process> ReadProcesses(const std::string& root) {
  std::map<int, Process> processes;
  std::error_code error;
  std::filesystem::directory_iterator entry(root + "/proc", error), end;
  for (; !error && entry != end; entry.increment(error)) {
    int pid = 0;
    if (!absl::SimpleAtoi(entry->path().filename().string(), &pid)) continue;
    // The process may have ended since.
    const std::optional<Process> process =
        ParseProcess(ReadFile(entry->path().string() + "/stat"));
    if (process && pid != getpid()) processes[pid] = *process;
  }
  return processes;
}

// What the processes used between two readings, `seconds` apart.
void Compare(const std::map<int, Process>& before,
             const std::map<int, Process>& after, double seconds,
             MachineLoad* load) {
  const double ticks = seconds * static_cast<double>(sysconf(_SC_CLK_TCK));
  for (const auto& [pid, process] : after) {
    // A new process has used all its time since the first reading.
    const auto old = before.find(pid);
    const double used = old == before.end() ? 0 : old->second.ticks;
    const double cores = (process.ticks - used) / ticks;
    if (cores <= 0) continue;
    load->visible += cores;
    load->processes.push_back({pid, process.name, cores});
  }
  std::stable_sort(load->processes.begin(), load->processes.end(),
                   [](const ProcessLoad& a, const ProcessLoad& b) {
                     return a.cores > b.cores;
                   });
  if (load->processes.size() > kMostProcesses) {
    load->processes.resize(kMostProcesses);
  }
}

void AskGpus(const std::string& nvidia_smi, MachineLoad* load) {
  ProgramOptions options;
  options.time_limit = kGpuTimeLimit;
  options.separate_stderr = true;
  const ProgramResult smi =
      RunProgram(nvidia_smi,
                 {"--query-compute-apps=pid,process_name,used_memory",
                  "--format=csv,noheader"},
                 {}, options);
  if (!smi.failure.empty()) {
    load->gpu_note = absl::StrCat(nvidia_smi, " ", smi.failure, ".");
    return;
  }
  for (const absl::string_view line : absl::StrSplit(smi.output, '\n')) {
    // The name may have commas in it.
    const std::size_t first = line.find(',');
    const std::size_t last = line.rfind(',');
    int pid = 0;
    if (first == last || !absl::SimpleAtoi(line.substr(0, first), &pid) ||
        pid == getpid()) {
      continue;
    }
    load->gpu_processes.push_back(absl::StrFormat(
        "%s (pid %d), %s", Printable(line.substr(first + 1, last - first - 1)),
        pid, Printable(line.substr(last + 1))));
  }
}

std::vector<std::string> Warnings(const MachineLoad& load) {
  std::vector<std::string> warnings;
  if (!load.other) {
    warnings.push_back(
        Say("What other programs use is not known: /proc/stat does not say it. "
            "Times may be too long."));
  } else if (load.other->Disturbs(load.other->of)) {
    warnings.push_back(load.other->Text() + Say(" Times will be too long."));
    const double hidden = load.other->cores - load.visible;
    if (hidden >= kHidden) {
      warnings.push_back(Say(
          "%.1f of it are not visible here: other containers, other virtual "
          "machines, interrupts, or processes that have ended.",
          hidden));
    }
  }
  for (const std::string& process : load.gpu_processes) {
    warnings.push_back(Say("Another process uses a GPU: %s.", process));
  }
  return warnings;
}

}  // namespace

MachineLoad LookAtMachine(const LookOptions& options) {
  MachineLoad load;
  double average = 0;
  const std::string loadavg = ReadFile(options.root + "/proc/loadavg");
  if (absl::SimpleAtod(loadavg.substr(0, loadavg.find(' ')), &average)) {
    load.load_average = average;
  }
  const std::map<int, Process> before = ReadProcesses(options.root);
  double seconds = std::chrono::duration<double>(kWindow).count();
  if (options.window) {
    load.other = options.window();
  } else {
    const Timer timer;
    const LoadWatch watch;
    // The measurement lasts this long; the sleep waits for no event.
    std::this_thread::sleep_for(kWindow);
    load.other = watch.Seen();
    seconds = timer.Seconds();
  }
  Compare(before, ReadProcesses(options.root), seconds, &load);
  AskGpus(options.nvidia_smi, &load);
  load.warnings = Warnings(load);
  return load;
}

std::string MachineLoad::ToText() const {
  std::string text = Wrap(absl::StrCat(
      other ? other->Text() : Say("What other programs used is not known."),
      load_average
          ? Say(" The load average of the last minute is %.2f.", *load_average)
          : ""));
  for (const ProcessLoad& process : processes) {
    text += Wrap(absl::StrFormat("%s (pid %d)", process.name, process.pid),
                 absl::StrFormat("%5.1f  ", process.cores));
  }
  if (!gpu_note.empty())
    text += Wrap(Say("Users of GPUs are not known: %s", gpu_note));
  if (warnings.empty()) {
    return text + Say("Nothing was seen that would spoil the figures.\n");
  }
  for (const std::string& warning : warnings) text += Wrap(warning, "- ");
  return text;
}

}  // namespace d2l
