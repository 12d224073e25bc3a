#include "tests/ptx/report.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace d2l::ptx {
namespace {

struct State {
  std::mutex mutex;  // guards all below
  std::set<std::string> known;
  std::vector<std::string> findings;
  std::map<std::string, Counts> counts;
};

void AtExit();

State& TheState() {
  static State& state = *new State;
  [[maybe_unused]] static const int once = std::atexit(AtExit);
  return state;
}

void AtExit() {
  State& state = TheState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  if (!state.counts.empty()) {
    std::ofstream out(TheSettings().counts);
    for (const auto& [kernel, of] : state.counts) {
      out << kernel << " " << of.launches << " " << of.instructions << " "
          << of.requests << " " << of.sectors << " " << of.shared_requests
          << " " << of.conflicts << " " << of.atomics << "\n";
    }
  }
  if (state.findings.empty()) return;
  std::fprintf(stderr, "PTX: %zu findings, see above.\n",
               state.findings.size());
  std::fflush(nullptr);
  std::_Exit(kExitCodeOfFindings);
}

int FromEnvironment(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? 0 : std::atoi(text);
}

Settings& MutableSettings() {
  static Settings& settings = *new Settings([] {
    Settings made;
    made.seed = FromEnvironment("D2L_PTX_SEED");
    made.slice = FromEnvironment("D2L_PTX_SLICE");
    made.diverge = FromEnvironment("D2L_PTX_DIVERGE") != 0;
    made.perturb = FromEnvironment("D2L_PTX_PERTURB");
    made.most_steps = 2'000'000'000;
    const char* const counts = std::getenv("D2L_PTX_COUNTS");
    if (counts != nullptr) made.counts = counts;
    return made;
  }());
  return settings;
}

}  // namespace

void Report(const std::string& finding, const std::string& detail) {
  State& state = TheState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  if (!state.known.insert(finding).second) return;
  state.findings.push_back(finding + detail);
  // A fault in a loop would fill the disk.
  constexpr std::size_t kMostPrinted = 100;
  if (state.known.size() > kMostPrinted) return;
  std::fprintf(stderr, "PTX: %s\n", state.findings.back().c_str());
}

void ReportAt(const std::string& finding, const Warp& warp,
              const Instruction& instruction, int lane) {
  const Module& module = *warp.block->launch->kernel->module;
  Report(finding + ", " + module.Where(instruction),
         ", " + ThreadOf(warp, lane));
}

std::vector<std::string> TakeFindings() {
  State& state = TheState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  state.known.clear();
  return std::exchange(state.findings, {});
}

const Settings& TheSettings() { return MutableSettings(); }
void SetSettings(const Settings& settings) { MutableSettings() = settings; }

void AddCounts(const std::string& kernel, const Counts& counts) {
  State& state = TheState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  Counts& sum = state.counts[kernel];
  sum.launches += 1;
  sum.instructions += counts.instructions;
  sum.requests += counts.requests;
  sum.sectors += counts.sectors;
  sum.shared_requests += counts.shared_requests;
  sum.conflicts += counts.conflicts;
  sum.atomics += counts.atomics;
}

}  // namespace d2l::ptx
