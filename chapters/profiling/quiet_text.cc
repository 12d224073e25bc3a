#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "chapters/profiling/quiet.h"
#include "common/base/format.h"
#include "common/base/text.h"

namespace d2l {
namespace {

// From here on, in cores, something is worth a warning.
constexpr double kBusy = 0.1;
constexpr double kStolen = 0.02;
// /proc/stat and the processes' own counters do not agree to the tick.
constexpr double kHidden = 0.2;
constexpr double kLittleMemory = 0.1;  // of all

// A process may give itself any name, control characters included.
std::string Printable(std::string name) {
  for (char& c : name) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) c = '?';
  }
  return name;
}

std::string Percent(double cores) {
  return absl::StrFormat("%.0f %%", 100 * cores);
}

std::string Describe(const ProcessUse& process) {
  return absl::StrFormat("%s (pid %d)", Printable(process.name), process.pid);
}

std::string Cores(double count) {
  return absl::StrFormat("%g %s", count, count == 1 ? "core" : "cores");
}

void WarnOfProcesses(const MachineLoad& load,
                     std::vector<std::string>* warnings) {
  if (!load.window_seconds) {
    warnings->push_back(
        "What other processes use is not known: /proc/stat does not say it. "
        "Figures may be too large.");
    return;
  }
  std::vector<std::string> busy;
  for (const ProcessUse& process : load.top) {
    if (process.cores < kBusy) continue;
    busy.push_back(absl::StrFormat("%s of a core: %s", Percent(process.cores),
                                   Describe(process)));
  }
  if (!busy.empty()) {
    warnings->push_back(absl::StrCat(
        busy.size() == 1 ? "Another process uses " : "Other processes use ",
        absl::StrJoin(busy, ", "), ". Figures will be too large."));
  } else if (load.visible >= kBusy) {
    warnings->push_back(absl::StrFormat(
        "Other processes together use %s of a core. Figures may be too large.",
        Percent(load.visible)));
  }
  const double hidden = load.busy - load.own - load.visible;
  if (hidden >= kHidden) {
    warnings->push_back(absl::StrFormat(
        "%s of a core went to what is not visible here: other containers, "
        "interrupts, or processes that have ended. Figures may be too large.",
        Percent(hidden)));
  }
  if (load.stolen >= kStolen) {
    warnings->push_back(absl::StrFormat(
        "The host gave %s of a core of this virtual machine to others (steal "
        "time). Figures will be too large.",
        Percent(load.stolen)));
  }
}

std::string FrequencyText(const MachineLoad& load) {
  if (!load.min_mhz && load.governor.empty()) {
    return "not known: /sys has no cpufreq here, as in most virtual machines";
  }
  std::string text = "not known";
  if (load.min_mhz) {
    text =
        *load.min_mhz == *load.max_mhz
            ? absl::StrFormat("%.0f MHz", *load.min_mhz)
            : absl::StrFormat("%.0f to %.0f MHz", *load.min_mhz, *load.max_mhz);
  }
  return absl::StrCat(text, ", governor ",
                      load.governor.empty() ? "not known" : load.governor);
}

std::string MemoryText(const MachineLoad& load) {
  std::string text = "not known";
  if (load.memory_available) {
    text = absl::StrCat(FormatBytes(*load.memory_available), " available");
    if (load.memory_total) {
      absl::StrAppend(&text, " of ", FormatBytes(*load.memory_total));
    }
  }
  if (load.swap_total && load.swap_free) {
    absl::StrAppend(
        &text,
        *load.swap_total == 0
            ? "; no swap"
            : absl::StrCat(
                  "; swap: ", FormatBytes(*load.swap_total - *load.swap_free),
                  " of ", FormatBytes(*load.swap_total)));
  }
  if (load.swapped_pages) {
    absl::StrAppend(&text, ", ", *load.swapped_pages, " pages moved just now");
  }
  return text;
}

std::string CpuText(const MachineLoad& load) {
  std::string text = load.cpus == 0 ? "number not known" : Cores(load.cpus);
  if (load.cpu_limit) {
    absl::StrAppend(&text, ", of which this container may use ",
                    absl::StrFormat("%.3g", *load.cpu_limit));
  }
  return text;
}

std::string UseText(const MachineLoad& load) {
  if (!load.window_seconds) return "not known: /proc/stat does not say";
  return absl::StrFormat(
      "in %.2f s, of a core: %s; this program %s; the host took %s",
      *load.window_seconds, Percent(std::max(load.busy - load.own, 0.0)),
      Percent(load.own), Percent(load.stolen));
}

std::string Row(const char* name, const std::string& text) {
  return Wrap(text, absl::StrFormat("%-14s", name), kTextWidth);
}

}  // namespace

std::vector<std::string> Warnings(const MachineLoad& load) {
  std::vector<std::string> warnings;
  WarnOfProcesses(load, &warnings);
  if (load.load_average && load.cpus > 0 &&
      load.load_average->front() > load.cpus) {
    warnings.push_back(absl::StrFormat(
        "The load average of the last minute, %.2f, is above the %s. It may be "
        "what you built or ran yourself: wait a minute and look again.",
        load.load_average->front(), Cores(load.cpus)));
  }
  if (load.cpu_limit && *load.cpu_limit < load.cpus) {
    warnings.push_back(absl::StrFormat(
        "This container may use %.3g of %s (cpu.max), and is stopped when it "
        "has used them up. Figures jump.",
        *load.cpu_limit, Cores(load.cpus)));
  }
  if (!load.governor.empty() && load.governor != "performance") {
    warnings.push_back(absl::StrFormat(
        "The clock follows the load (governor %s). The first repeats may be "
        "slower than the others.",
        load.governor));
  }
  if (load.memory_available && load.memory_total &&
      static_cast<double>(*load.memory_available) <
          kLittleMemory * static_cast<double>(*load.memory_total)) {
    warnings.push_back(absl::StrFormat(
        "Only %s of memory are available. The machine may begin to swap.",
        FormatBytes(*load.memory_available)));
  }
  if (load.swapped_pages.value_or(0) > 0) {
    warnings.push_back(absl::StrFormat(
        "The machine swaps: %d pages moved just now. Figures will be too "
        "large.",
        *load.swapped_pages));
  }
  for (const GpuProcess& process : load.gpu_processes) {
    warnings.push_back(absl::StrFormat(
        "Another process uses a GPU: %s (pid %d), %s of its memory.",
        Printable(process.name), process.pid, Printable(process.memory)));
  }
  return warnings;
}

std::string MachineLoad::ToText() const {
  std::string text = Row("CPU", CpuText(*this));
  text += Row("clock", FrequencyText(*this));
  text +=
      Row("load average",
          load_average ? absl::StrFormat("%.2f, %.2f, %.2f in 1, 5, 15 minutes",
                                         (*load_average)[0], (*load_average)[1],
                                         (*load_average)[2])
                       : std::string("not known"));
  text += Row("others use", UseText(*this));
  for (const ProcessUse& process : top) {
    text += Wrap(Describe(process),
                 absl::StrFormat("%20s  ", Percent(process.cores)), kTextWidth);
  }
  text += Row("memory", MemoryText(*this));
  if (!gpu_note.empty()) {
    text += Row("GPU processes", absl::StrCat("not known. ", gpu_note));
  } else if (gpu_processes.empty()) {
    text += Row("GPU processes", "no others");
  }
  for (const GpuProcess& process : gpu_processes) {
    text += Row("GPU process",
                absl::StrFormat("%s (pid %d): %s", Printable(process.name),
                                process.pid, Printable(process.memory)));
  }
  if (warnings.empty()) {
    return text + "Nothing was seen that would spoil the figures.\n";
  }
  for (const std::string& warning : warnings) {
    text += Wrap(warning, "- ", kTextWidth);
  }
  return text;
}

}  // namespace d2l
