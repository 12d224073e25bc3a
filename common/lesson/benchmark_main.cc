// main() of a chapter's benchmarks. --devices is as in the lessons, but the
// default is two virtual devices and every GPU. Everything else is Google
// Benchmark's: --benchmark_filter=In4, --benchmark_list_tests, --help.

#include <benchmark/benchmark.h>

#include <cstddef>
#include <iostream>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/stdout.h"
#include "common/device/backend.h"
#include "common/device/device_table.h"

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

}  // namespace

int main(int argc, char** argv) {
  d2l::CheckStdoutAtExit();
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
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
