// The programs of the lesson's cells as benchmarks, at the course's size. What
// a pair of devices does is to be set against what one does: BM_000_In7_...
// against twice BM_000_In6_....

#include <benchmark/benchmark.h>

#include <cstddef>
#include <map>
#include <vector>

#include "chapters/auto_parallelism/programs.h"
#include "common/d2l.h"
#include "common/lesson/benchmark_devices.h"

namespace d2l::auto_parallelism {
namespace {

constexpr int kSmall = 100;
constexpr int kSmallProducts = 20000;
constexpr int kLarge = 1000;
constexpr int kLargeProducts = 10;

// Streams live as long as the process, and a benchmark is called several times:
// so they are made once. The first `count` of the device's, with room for all
// operations here.
std::vector<Stream*> Streams(Device device, std::size_t count) {
  static auto& streams = *new std::map<Device, std::vector<Stream*>>;
  std::vector<Stream*>& made = streams[device];
  while (made.size() < count) made.push_back(&NewStream(device, 1 << 16));
  return {made.begin(), made.begin() + count};
}

// Times `work` until the devices are done, once it has run without the clock.
template <typename Work>
void UntilDone(benchmark::State& state, const std::vector<Device>& devices,
               const Work& work) {
  const auto work_and_wait = [&] {
    work();
    for (const Device device : devices) Synchronize(device);
  };
  work_and_wait();
  for (auto _ : state) work_and_wait();
}

void SetProducts(benchmark::State& state, double n, int products) {
  SetRate(state, "FLOP", products * 2 * n * n * n);
  state.SetItemsProcessed(state.iterations() * products);
}

void Enqueue1000(benchmark::State& state, Device device) {
  const Tensor x = Rand({kSmall, kSmall}, device);
  Run(x, 1000);
  Synchronize(device);
  for (auto _ : state) {
    const Timer timer;
    Run(x, 1000);
    state.SetIterationTime(timer.Seconds());
    Synchronize(device);
  }
  state.SetItemsProcessed(state.iterations() * 1000);
}

template <int n, int products>
void OneDevice(benchmark::State& state, Device device) {
  const Tensor x = Rand({n, n}, device);
  UntilDone(state, {device}, [&] { Run(x, products); });
  SetProducts(state, n, products);
}

// work(x1, x2, products): so many on each device.
template <int n, int products, auto work>
void TwoDevices(benchmark::State& state, Device first, Device second) {
  const Tensor x1 = Rand({n, n}, first), x2 = Rand({n, n}, second);
  UntilDone(state, {first, second}, [&] { work(x1, x2, products); });
  SetProducts(state, n, 2 * products);
}

void KeepOnOne(benchmark::State& state, Device device) {
  const Tensor x = Rand({kLarge, kLarge}, device);
  std::vector<Tensor> y;
  UntilDone(state, {device}, [&] { RunAndKeep(x, kLargeProducts, &y); });
  SetProducts(state, kLarge, kLargeProducts);
}

void KeepOnTwo(benchmark::State& state, Device first, Device second) {
  const Tensor x1 = Rand({kLarge, kLarge}, first);
  const Tensor x2 = Rand({kLarge, kLarge}, second);
  std::vector<Tensor> y1, y2;
  UntilDone(state, {first, second}, [&] {
    RunAndKeep(x1, kLargeProducts, &y1);
    RunAndKeep(x2, kLargeProducts, &y2);
  });
  SetProducts(state, kLarge, 2 * kLargeProducts);
}

enum class Copies { kNone, kOnly, kSameStream, kOwnStream };

// 20 products (1000, 32) @ (32, 1000), and their copies to the host.
template <Copies copies, bool pinned>
void Overlap(benchmark::State& state, Device device) {
  constexpr int kSteps = 20;
  ThinProducts p(device, kSteps, kLarge, 32);
  float* const host = pinned ? p.pinned : p.pageable;
  Stream& stream = copies == Copies::kOwnStream ? *Streams(device, 1)[0]
                                                : CurrentStream(device);
  MultiplyAndCopy(p, stream, host);
  UntilDone(state, {device}, [&] {
    if (copies != Copies::kNone && copies != Copies::kOnly) {
      return MultiplyAndCopy(p, stream, host);
    }
    for (int i = 0; i < kSteps; ++i) {
      if (copies == Copies::kNone) p.y[i] = MatMul(p.a[i], p.b);
      if (copies == Copies::kOnly) CopyToHost(p, i, stream, host);
    }
  });
  state.SetItemsProcessed(state.iterations() * kSteps);
}

void GradientOnTwo(benchmark::State& state, Device first, Device second) {
  const Mlp mlp = {Randn({4096, 784}, first), Randn({4096, 10}, first),
                   Randn({784, 512}, first), Randn({512, 10}, first)};
  UntilDone(state, {}, [&] { WaitToRead(Gradient(mlp, {first, second})); });
}

void GradientOnOne(benchmark::State& state, Device device) {
  GradientOnTwo(state, device, device);
}

template <int n, int products, int streams>
void OnStreams(benchmark::State& state, Device device) {
  const Tensor x = Rand({n, n}, device);
  Synchronize(device);  // these streams do not wait for the default one
  UntilDone(state, {device},
            [&] { RunOn(Streams(device, streams), x, products); });
  SetProducts(state, n, products);
}

[[maybe_unused]] const bool registered[] = {
    BenchmarkOnDevices("BM_000_In3_Products_Enqueue", Enqueue1000,
                       BenchmarkTime::kManual, /*iterations=*/50),
    BenchmarkOnDevices("BM_000_In3_Products_Synchronized",
                       OneDevice<kSmall, 1000>),
    BenchmarkOnDevices("BM_000_In6_MatMul", OneDevice<kSmall, kSmallProducts>),
    BenchmarkOnDevicePairs("BM_000_In7_MatMul_CourseOrder",
                           TwoDevices<kSmall, kSmallProducts, RunInOrder>),
    BenchmarkOnDevicePairs("BM_000_In7_MatMul_InTurn",
                           TwoDevices<kSmall, kSmallProducts, RunInTurn>),
    BenchmarkOnDevices("BM_d2l_mm_4000_OneDevice", KeepOnOne),
    BenchmarkOnDevicePairs("BM_d2l_mm_4000_TwoDevices", KeepOnTwo),
    BenchmarkOnDevices("BM_d2l_overlap_Products", Overlap<Copies::kNone, true>),
    BenchmarkOnDevices("BM_d2l_overlap_Copies", Overlap<Copies::kOnly, true>),
    BenchmarkOnDevices("BM_d2l_overlap_OneStream",
                       Overlap<Copies::kSameStream, true>),
    BenchmarkOnDevices("BM_d2l_overlap_TwoStreams",
                       Overlap<Copies::kOwnStream, true>),
    BenchmarkOnDevices("BM_d2l_overlap_TwoStreamsPageable",
                       Overlap<Copies::kOwnStream, false>),
    BenchmarkOnDevices("BM_002_two_device_graph_OneDevice", GradientOnOne),
    BenchmarkOnDevicePairs("BM_002_two_device_graph_TwoDevices", GradientOnTwo),
    BenchmarkOnDevices("BM_d2l_streams_SmallOneStream", OnStreams<64, 1000, 1>),
    BenchmarkOnDevices("BM_d2l_streams_SmallFour", OnStreams<64, 1000, 4>),
    BenchmarkOnDevices("BM_d2l_streams_LargeOneStream",
                       OnStreams<kLarge, 8, 1>),
    BenchmarkOnDevices("BM_d2l_streams_LargeFour", OnStreams<kLarge, 8, 4>),
    BenchmarkOnDevices("BM_d2l_size_sweep_8_OneDevice", OneDevice<8, 4000>),
    BenchmarkOnDevicePairs("BM_d2l_size_sweep_8_TwoDevices",
                           TwoDevices<8, 2000, RunInTurn>),
    BenchmarkOnDevices("BM_d2l_size_sweep_64_OneDevice", OneDevice<64, 760>),
    BenchmarkOnDevicePairs("BM_d2l_size_sweep_64_TwoDevices",
                           TwoDevices<64, 380, RunInTurn>),
    BenchmarkOnDevices("BM_d2l_size_sweep_512_OneDevice", OneDevice<512, 4>),
    BenchmarkOnDevicePairs("BM_d2l_size_sweep_512_TwoDevices",
                           TwoDevices<512, 2, RunInTurn>),
};

}  // namespace
}  // namespace d2l::auto_parallelism
