#include "chapters/profiling/machine_load/machine_load.h"

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
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/atomic_file.h"
#include "common/base/child_process.h"
#include "common/base/cpu_times.h"
#include "common/base/text.h"

namespace d2l {
namespace {

constexpr std::chrono::milliseconds kWindow(200);
constexpr std::chrono::seconds kGpuTimeLimit(5);
constexpr std::size_t kMostProcesses = 5;
constexpr std::size_t kLongestName = 60;
// Fewer cores than these are no warning.
constexpr double kBusy = 0.1;
constexpr double kStolen = 0.02;
// /proc/stat and the processes' own counters do not agree to the tick.
constexpr double kHidden = 0.2;

struct Process {
  std::string name;
  double ticks = 0;
};

struct Reading {
  CpuTimes cpus;
  std::map<int, Process> processes;  // by pid
};

std::vector<absl::string_view> Words(absl::string_view text) {
  return absl::StrSplit(text, absl::ByAnyChar(" \t\n"), absl::SkipEmpty());
}

// A process may give itself any name, control characters included.
std::string Printable(absl::string_view text) {
  std::string name(absl::StripAsciiWhitespace(text).substr(0, kLongestName));
  for (char& c : name) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c))) c = '?';
  }
  return name;
}

// "12 (a) b (c) S 1 …": the name ends at the last parenthesis; utime and stime
// are the 12th and the 13th word after it.
std::optional<Process> ParseProcess(absl::string_view stat) {
  const std::size_t open = stat.find('(');
  const std::size_t close = stat.rfind(')');
  if (open == stat.npos || close == stat.npos || close < open) return {};
  const std::vector<absl::string_view> words = Words(stat.substr(close + 1));
  std::uint64_t user = 0, kernel = 0;
  if (words.size() < 13 || !absl::SimpleAtoi(words[11], &user) ||
      !absl::SimpleAtoi(words[12], &kernel)) {
    return {};
  }
  // Doubles: sums of whatever the file says cannot overflow.
  return Process{Printable(stat.substr(open + 1, close - open - 1)),
                 static_cast<double>(user) + static_cast<double>(kernel)};
}

Reading Read(const std::string& root) {
  Reading reading;
  const std::string proc = root + "/proc";
  reading.cpus = ReadCpuTimes(root, Cpus::kAll);
  std::error_code error;
  std::filesystem::directory_iterator entry(proc, error), end;
  for (; !error && entry != end; entry.increment(error)) {
    int pid = 0;
    if (!absl::SimpleAtoi(entry->path().filename().string(), &pid)) continue;
    // It may have ended since.
    const std::optional<Process> process =
        ParseProcess(ReadFile(entry->path().string() + "/stat"));
    if (process) reading.processes[pid] = *process;
  }
  return reading;
}

// What was used from one reading to the other.
void Compare(const Reading& before, const Reading& after, MachineLoad* load) {
  load->cpus = after.cpus.cpus;
  const std::optional<CpuUse> use = UseBetween(before.cpus, after.cpus);
  if (!use) return;  // or a sandbox where the counters stand still
  load->known = true;
  load->busy = use->busy;
  load->stolen = use->stolen;
  for (const auto& [pid, process] : after.processes) {
    // A process that is new has used all its time since.
    const auto old = before.processes.find(pid);
    const double used = old == before.processes.end() ? 0 : old->second.ticks;
    const double cores = (process.ticks - used) / use->ticks;
    if (cores <= 0) continue;
    if (pid == getpid()) {
      load->own = cores;
    } else {
      load->visible += cores;
      load->others.push_back({pid, process.name, cores});
    }
  }
  std::stable_sort(load->others.begin(), load->others.end(),
                   [](const ProcessLoad& a, const ProcessLoad& b) {
                     return a.cores > b.cores;
                   });
  if (load->others.size() > kMostProcesses) load->others.resize(kMostProcesses);
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
    load->gpu_processes.push_back(
        {pid, Printable(line.substr(first + 1, last - first - 1)),
         Printable(line.substr(last + 1))});
  }
}

std::string Percent(double cores) {
  return absl::StrFormat("%.0f %%", 100 * cores);
}

std::vector<std::string> Warnings(const MachineLoad& load) {
  std::vector<std::string> warnings;
  const double others = load.busy - load.own;
  const double hidden = others - load.visible;
  if (!load.known) {
    warnings.push_back(
        "What other processes use is not known: /proc/stat does not say it. "
        "Figures may be too large.");
  } else if (load.visible >= kBusy || hidden >= kHidden) {
    warnings.push_back(
        absl::StrFormat("Others use %s of a core. Figures will be too large.",
                        Percent(std::max(others, load.visible))));
  }
  if (hidden >= kHidden) {
    warnings.push_back(absl::StrFormat(
        "%s of a core went to what is not visible here: other containers, "
        "interrupts, or processes that have ended.",
        Percent(hidden)));
  }
  if (load.stolen >= kStolen) {
    warnings.push_back(absl::StrFormat(
        "The host gave %s of a core of this virtual machine to others (steal "
        "time). Figures will be too large.",
        Percent(load.stolen)));
  }
  if (load.cpus > 0 && load.load_average.value_or(0) > load.cpus) {
    warnings.push_back(absl::StrFormat(
        "The load average of the last minute, %.2f, is above the number of "
        "CPUs, %d. It may be what you built or ran yourself: wait a minute and "
        "look again.",
        *load.load_average, load.cpus));
  }
  for (const GpuProcess& process : load.gpu_processes) {
    warnings.push_back(absl::StrFormat(
        "Another process uses a GPU: %s (pid %d), %s of its memory.",
        process.name, process.pid, process.memory));
  }
  return warnings;
}

std::string Row(const char* name, const std::string& text) {
  return Wrap(text, absl::StrFormat("%-14s", name), kTextWidth);
}

}  // namespace

MachineLoad LookAtMachine(const LookOptions& options) {
  MachineLoad load;
  double average = 0;
  const std::string loadavg = ReadFile(options.root + "/proc/loadavg");
  const std::string word = loadavg.substr(0, loadavg.find(' '));
  if (absl::SimpleAtod(word, &average)) load.load_average = average;

  const Reading before = Read(options.root);
  if (options.window) {
    options.window();
  } else {
    // The length of the measurement; nothing is waited for.
    std::this_thread::sleep_for(kWindow);
  }
  Compare(before, Read(options.root), &load);
  AskGpus(options.nvidia_smi, &load);
  load.warnings = Warnings(load);
  return load;
}

std::string MachineLoad::ToText() const {
  std::string text = Row(
      "CPUs", cpus == 0 ? "not known"
              : load_average
                  ? absl::StrFormat("%d, load average %.2f in the last minute",
                                    cpus, *load_average)
                  : absl::StrCat(cpus));
  text += Row(
      "others use",
      known ? absl::StrFormat("%s of a core; this program %s; the host took %s",
                              Percent(std::max(busy - own, 0.0)), Percent(own),
                              Percent(stolen))
            : "not known: /proc/stat does not say");
  for (const ProcessLoad& process : others) {
    text += Wrap(absl::StrFormat("%s (pid %d)", process.name, process.pid),
                 absl::StrFormat("%20s  ", Percent(process.cores)), kTextWidth);
  }
  text += Row("GPU processes",
              !gpu_note.empty()       ? absl::StrCat("not known. ", gpu_note)
              : gpu_processes.empty() ? "no others"
                                      : absl::StrCat(gpu_processes.size()));
  if (warnings.empty()) {
    return text + "Nothing was seen that would spoil the figures.\n";
  }
  for (const std::string& warning : warnings) {
    text += Wrap(warning, "- ", kTextWidth);
  }
  return text;
}

}  // namespace d2l
