#include <benchmark/benchmark.h>

#include "chapters/tiny/programs.h"
#include "common/d2l.h"
#include "common/lesson/testing/benchmark_devices.h"

namespace d2l::tiny {
namespace {

void Add(benchmark::State& state, Device device) {
  const Tensor x = Ones({1'000'000}, device);
  for (auto _ : state) {
    const Tensor y = PlusOne(x);
    Synchronize(device);
  }
}
[[maybe_unused]] const bool registered =
    BenchmarkOnDevices("BM_tiny_add_PlusOne", Add);

}  // namespace
}  // namespace d2l::tiny
