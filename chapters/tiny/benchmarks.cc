#include <benchmark/benchmark.h>

#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/lesson/benchmark_devices.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

void Add(benchmark::State& state, Device device) {
  const Tensor x = Ones({1'000'000}, device);
  for (auto _ : state) {
    const Tensor y = x + 1;
    Synchronize(device);
  }
}
[[maybe_unused]] const bool registered =
    BenchmarkOnDevices("BM_tiny_add_PlusOne", Add);

}  // namespace
}  // namespace d2l
