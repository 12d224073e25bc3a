// main() of a chapter's benchmarks, which registers those of benchmark.h with
// Google Benchmark. --devices is as in the lessons, but the
// default is two virtual devices and every GPU. All other flags are Google
// Benchmark's: --benchmark_list_tests, --help, and --benchmark_filter=In4,
// which may begin with a cell's id, 000/In7: the benchmark's name is
// BM_000_In7_….

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <functional>
#include <iostream>
#include <regex>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/console/command_line.h"
#include "common/device/backend.h"
#include "common/device/device_table.h"
#include "common/lesson/cell/benchmark.h"

ABSL_FLAG(std::string, devices, "",
          "What to run on, such as cpu:0,cpu:1 or cuda:0. Default: two virtual "
          "devices and every GPU that can be used.");

namespace {

std::string EveryDevice() {
  std::string spec = "cpu:0,cpu:1";
  const d2l::DeviceInventory& cuda = d2l::CudaBackend().Inventory();
  if (cuda.modelled) return spec;
  for (std::size_t i = 0; i < cuda.devices.size(); ++i) {
    absl::StrAppend(&spec, ",cuda:", i);
  }
  return spec;
}

// "--benchmark_filter=d2l/t1-t2-t3" in the form of benchmark names.
std::string WithBenchmarkName(const std::string& argument) {
  static const std::regex& id =
      *new std::regex("(--benchmark_filter=)(\\d{3}|d2l)/([A-Za-z0-9-]+)(.*)");
  std::smatch match;
  if (!std::regex_match(argument, match, id)) return argument;
  std::string cell = match[3];
  std::replace(cell.begin(), cell.end(), '-', '_');
  return absl::StrCat(match[1].str(), "^BM_", match[2].str(), "_", cell,
                      match[4].str());
}

using benchmark::State;

// SkipWithMessage came with Google Benchmark 1.8. Older versions have only
// SkipWithError, which prints "ERROR OCCURRED" although there is no error.
template <typename S>
auto Skip(S& state, const std::string& why, int)
    -> decltype(state.SkipWithMessage(why)) {
  state.SkipWithMessage(why);
}
template <typename S>
void Skip(S& state, const std::string& why, long) {
  state.SkipWithError(why.c_str());
}

void Wait(const std::vector<d2l::Device>& devices) {
  for (const d2l::Device device : devices) d2l::Synchronize(device);
}

void Run(const d2l::Benchmark& registered, State& state) {
  for (const d2l::Device device : registered.devices) {
    if (d2l::HasDevice(device)) continue;
    return Skip(state, absl::StrCat("skipped: there is no ", device.ToString()),
                0);
  }
  Wait(registered.devices);
  std::function<double()> work;
  try {
    work = registered.make();
  } catch (const std::exception& error) {
    return state.SkipWithError(absl::StrCat("skipped: ", error.what()).c_str());
  }
  work();
  Wait(registered.devices);
  for (auto _ : state) {
    const double seconds = work();
    if (registered.reports_seconds) state.SetIterationTime(seconds);
    Wait(registered.devices);
  }
  state.SetItemsProcessed(state.iterations() * registered.items);
  for (const auto& [rate, of_each] : registered.rates) {
    state.counters[rate] = benchmark::Counter(
        of_each, benchmark::Counter::kIsIterationInvariantRate);
  }
  if (!registered.counters) return;
  for (const auto& [name, value] : registered.counters()) {
    state.counters[name] = value;
  }
}

void RegisterAll() {
  for (const d2l::Benchmark& one : d2l::Benchmarks()) {
    auto* registered = benchmark::RegisterBenchmark(
        one.name.c_str(), [&one](State& state) { Run(one, state); });
    // CPU time would be that of the enqueueing thread only.
    if (one.reports_seconds) {
      registered->UseManualTime();
    } else {
      registered->UseRealTime();
    }
    if (one.iterations > 0) registered->Iterations(one.iterations);
  }
}

}  // namespace

int main(int argc, char** argv) {
  d2l::CheckStdoutAtExit();
  std::vector<std::string> arguments(argv, argv + argc);
  for (int i = 0; i < argc; ++i) {
    arguments[i] = WithBenchmarkName(arguments[i]);
    argv[i] = arguments[i].data();
  }
  benchmark::Initialize(&argc, argv);
  absl::ParseCommandLine(argc, argv);
  const std::string asked = absl::GetFlag(FLAGS_devices);
  const absl::Status made =
      d2l::InitializeDevices(asked.empty() ? EveryDevice() : asked);
  if (!made.ok()) {
    std::cerr << "Error: " << std::string(made.message()) << "\n";
    return 1;
  }
  for (const d2l::DeviceInfo& info : d2l::Devices()) {
    benchmark::AddCustomContext(info.device.ToString(), info.Describe());
  }
  RegisterAll();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
