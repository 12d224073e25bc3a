#include "chapters/profiling/quiet.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "chapters/profiling/machine_files.h"
#include "chapters/profiling/quiet_command.h"

namespace d2l {
namespace {

constexpr std::chrono::milliseconds kWindow(200);
constexpr std::size_t kTop = 5;

std::vector<absl::string_view> Words(absl::string_view text) {
  return absl::StrSplit(text, absl::ByAnyChar(" \t\n"), absl::SkipEmpty());
}

// The numbers in `words` from `first` on; nothing if one of them is none.
std::optional<std::vector<std::int64_t>> Ints(
    const std::vector<absl::string_view>& words, std::size_t first) {
  std::vector<std::int64_t> ints;
  for (std::size_t i = first; i < words.size(); ++i) {
    std::int64_t value = 0;
    if (!absl::SimpleAtoi(words[i], &value)) return std::nullopt;
    ints.push_back(value);
  }
  return ints;
}

// What /proc says at one moment.
struct Reading {
  std::optional<CpuTicks> cpu;
  std::map<int, ProcessStat> processes;
  std::optional<std::int64_t> swapped_pages;
};

Reading Read(const std::string& root) {
  Reading reading;
  const std::string proc = root + "/proc";
  reading.cpu = ParseCpuTicks(ReadTextFile(proc + "/stat").value_or(""));
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(proc.c_str()),
                                                      &closedir);
  while (directory != nullptr) {
    const dirent* const entry = readdir(directory.get());
    if (entry == nullptr) break;
    const std::string name = entry->d_name;
    if (!absl::ascii_isdigit(static_cast<unsigned char>(name[0]))) continue;
    // It may have ended since.
    const std::optional<ProcessStat> process = ParseProcessStat(
        ReadTextFile(absl::StrCat(proc, "/", name, "/stat")).value_or(""));
    if (process) reading.processes[process->pid] = *process;
  }
  const std::string vmstat = ReadTextFile(proc + "/vmstat").value_or("");
  const std::optional<std::int64_t> in = FieldOf(vmstat, "pswpin");
  const std::optional<std::int64_t> out = FieldOf(vmstat, "pswpout");
  if (in && out) reading.swapped_pages = *in + *out;
  return reading;
}

// What was used from one reading to the other.
void Compare(const Reading& before, const Reading& after, int own_pid,
             MachineLoad* load) {
  if (before.swapped_pages && after.swapped_pages) {
    load->swapped_pages = *after.swapped_pages - *before.swapped_pages;
  }
  if (!after.cpu) return;
  load->cpus = after.cpu->cpus;
  if (!before.cpu) return;
  const std::int64_t busy = after.cpu->busy - before.cpu->busy;
  const std::int64_t steal = after.cpu->steal - before.cpu->steal;
  const std::int64_t all = busy + steal + after.cpu->idle - before.cpu->idle;
  if (all <= 0) return;  // a sandbox where the kernel's counters stand still
  // The ticks of one CPU. The counters of a moment fit together better than
  // any clock read beside them.
  const double window = static_cast<double>(all) / after.cpu->cpus;
  const auto cores = [&](std::int64_t ticks) {
    // A counter may go back by a tick when a CPU wakes up.
    return static_cast<double>(std::max<std::int64_t>(ticks, 0)) / window;
  };
  load->window_seconds = window / static_cast<double>(sysconf(_SC_CLK_TCK));
  load->busy = cores(busy);
  load->stolen = cores(steal);
  for (const auto& [pid, process] : after.processes) {
    // One that was not there before has used all its time since.
    const auto old = before.processes.find(pid);
    const std::int64_t ticks =
        process.ticks - (old == before.processes.end() ? 0 : old->second.ticks);
    if (pid == own_pid) {
      load->own = cores(ticks);
    } else if (ticks > 0) {
      load->visible += cores(ticks);
      load->top.push_back({pid, process.name, cores(ticks)});
    }
  }
  std::stable_sort(load->top.begin(), load->top.end(),
                   [](const ProcessUse& a, const ProcessUse& b) {
                     return a.cores > b.cores;
                   });
  if (load->top.size() > kTop) load->top.resize(kTop);
}

void ReadFrequencies(const std::string& root, MachineLoad* load) {
  // CPUs that are off have gaps in their numbers.
  for (int cpu = 0; cpu < std::max(load->cpus, 1); ++cpu) {
    const std::string folder =
        absl::StrCat(root, "/sys/devices/system/cpu/cpu", cpu, "/cpufreq/");
    if (load->governor.empty()) {
      load->governor = ReadWord(folder + "scaling_governor").value_or("");
    }
    const std::optional<std::int64_t> khz =
        ReadInt(folder + "scaling_cur_freq");
    if (!khz) continue;
    const double mhz = 1e-3 * static_cast<double>(*khz);
    load->min_mhz = std::min(load->min_mhz.value_or(mhz), mhz);
    load->max_mhz = std::max(load->max_mhz.value_or(mhz), mhz);
  }
}

void ReadMemory(const std::string& root, MachineLoad* load) {
  const std::string meminfo = ReadTextFile(root + "/proc/meminfo").value_or("");
  const auto bytes = [&](const char* name) {
    std::optional<std::int64_t> value = FieldOf(meminfo, name);
    if (value) *value *= 1024;
    return value;
  };
  load->memory_total = bytes("MemTotal");
  load->memory_available = AvailableMemoryBytes(root);
  load->swap_total = bytes("SwapTotal");
  load->swap_free = bytes("SwapFree");
}

std::optional<std::array<double, 3>> ReadLoadAverage(const std::string& root) {
  const std::string text = ReadTextFile(root + "/proc/loadavg").value_or("");
  const std::vector<absl::string_view> words = Words(text);
  std::array<double, 3> average = {};
  if (words.size() < average.size()) return std::nullopt;
  for (std::size_t i = 0; i < average.size(); ++i) {
    if (!absl::SimpleAtod(words[i], &average[i])) return std::nullopt;
  }
  return average;
}

std::optional<double> ReadCpuLimit(const std::string& root) {
  const std::string cgroup = root + "/sys/fs/cgroup/";
  if (const std::optional<std::string> text = ReadWord(cgroup + "cpu.max")) {
    return ParseCpuMax(*text);
  }
  // Version 1; a quota of -1 is none.
  const std::optional<std::int64_t> quota =
      ReadInt(cgroup + "cpu/cpu.cfs_quota_us");
  const std::optional<std::int64_t> period =
      ReadInt(cgroup + "cpu/cpu.cfs_period_us");
  if (!quota || !period) return std::nullopt;
  return ParseCpuMax(absl::StrCat(*quota, " ", *period));
}

void AskGpus(const LookOptions& options, int own_pid, MachineLoad* load) {
  const CommandOutput smi = RunCommand(
      {options.nvidia_smi, "--query-compute-apps=pid,process_name,used_memory",
       "--format=csv,noheader"},
      options.nvidia_smi_seconds);
  load->gpu_note = smi.failure;
  if (!smi.failure.empty()) return;
  for (GpuProcess& process : ParseGpuProcesses(smi.output)) {
    if (process.pid != own_pid) load->gpu_processes.push_back(process);
  }
}

}  // namespace

std::optional<ProcessStat> ParseProcessStat(const std::string& text) {
  // "12 (a) b (c) S 1 …": the name goes to the last parenthesis, and utime and
  // stime are the 12th and the 13th word after it.
  const std::size_t open = text.find('(');
  const std::size_t close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) {
    return std::nullopt;
  }
  ProcessStat process;
  const std::vector<absl::string_view> words =
      Words(absl::string_view(text).substr(close + 1));
  std::int64_t user = 0;
  std::int64_t kernel = 0;
  if (words.size() < 13 ||
      !absl::SimpleAtoi(text.substr(0, open), &process.pid) ||
      !absl::SimpleAtoi(words[11], &user) ||
      !absl::SimpleAtoi(words[12], &kernel)) {
    return std::nullopt;
  }
  process.name = text.substr(open + 1, close - open - 1);
  process.ticks = user + kernel;
  return process;
}

std::optional<CpuTicks> ParseCpuTicks(const std::string& stat) {
  CpuTicks ticks;
  bool found = false;
  for (const absl::string_view line : absl::StrSplit(stat, '\n')) {
    if (!absl::StartsWith(line, "cpu")) continue;
    const std::vector<absl::string_view> words = Words(line);
    if (words[0] != "cpu") {
      ++ticks.cpus;
      continue;
    }
    // user nice system idle iowait irq softirq steal guest guest_nice; what
    // guests used is in user and nice already.
    const std::optional<std::vector<std::int64_t>> t = Ints(words, 1);
    if (!t || t->size() < 8) return std::nullopt;
    ticks.busy = t->at(0) + t->at(1) + t->at(2) + t->at(5) + t->at(6);
    ticks.idle = t->at(3) + t->at(4);
    ticks.steal = t->at(7);
    found = true;
  }
  if (!found || ticks.cpus == 0) return std::nullopt;
  return ticks;
}

std::optional<double> ParseCpuMax(const std::string& text) {
  const std::optional<std::vector<std::int64_t>> numbers =
      Ints(Words(text), 0);  // "max 100000" is none
  if (!numbers || numbers->size() != 2 || numbers->at(0) <= 0 ||
      numbers->at(1) <= 0) {
    return std::nullopt;
  }
  return static_cast<double>(numbers->at(0)) /
         static_cast<double>(numbers->at(1));
}

std::vector<GpuProcess> ParseGpuProcesses(const std::string& csv) {
  std::vector<GpuProcess> processes;
  for (const absl::string_view line : absl::StrSplit(csv, '\n')) {
    // The name may have commas in it.
    const std::size_t first = line.find(',');
    const std::size_t last = line.rfind(',');
    GpuProcess process;
    if (first == last ||
        !absl::SimpleAtoi(line.substr(0, first), &process.pid)) {
      continue;
    }
    process.name = std::string(
        absl::StripAsciiWhitespace(line.substr(first + 1, last - first - 1)));
    process.memory =
        std::string(absl::StripAsciiWhitespace(line.substr(last + 1)));
    processes.push_back(process);
  }
  return processes;
}

MachineLoad LookAtMachine(const LookOptions& options) {
  const std::string& root = options.root;
  const int own_pid = static_cast<int>(getpid());
  MachineLoad load;
  load.load_average = ReadLoadAverage(root);

  const Reading before = Read(root);
  if (options.window) {
    options.window();
  } else {
    // Not to wait for anything: the length of the measurement itself.
    std::this_thread::sleep_for(kWindow);
  }
  Compare(before, Read(root), own_pid, &load);

  load.cpu_limit = ReadCpuLimit(root);
  ReadFrequencies(root, &load);
  ReadMemory(root, &load);
  AskGpus(options, own_pid, &load);
  load.warnings = Warnings(load);
  return load;
}

}  // namespace d2l
