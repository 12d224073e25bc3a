// The cells of the lesson as benchmarks, at the course's size. What a pair of
// devices does is to be set against what one does: BM_000_In7_... against twice
// BM_000_In6_....

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "common/base/timer.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/memory/memory.h"
#include "common/device/stream.h"
#include "common/lesson/benchmark_devices.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
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

void SetProducts(benchmark::State& state, double n, int products) {
  SetRate(state, "FLOP", products * 2 * n * n * n);
  state.SetItemsProcessed(state.iterations() * products);
}

void Run(const Tensor& x, int products) {
  Tensor y;
  for (int i = 0; i < products; ++i) y = MatMul(x, x);
}

void RunInTurn(const Tensor& x1, const Tensor& x2, int products) {
  Tensor y1, y2;
  for (int i = 0; i < products; ++i) {
    y1 = MatMul(x1, x1);
    y2 = MatMul(x2, x2);
  }
}

void RunOn(const std::vector<Stream*>& streams, const Tensor& x, int products) {
  Tensor y;
  for (int i = 0; i < products; ++i) {
    const StreamGuard guard(*streams[i % streams.size()]);
    y = MatMul(x, x);
  }
}

// --- 000/In3, 000/In6: one device -----------------------------------------

void AskFor1000(benchmark::State& state, Device device) {
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
void RunAndWait(benchmark::State& state, Device device) {
  const Tensor x = Rand({n, n}, device);
  Run(x, products);
  Synchronize(device);
  for (auto _ : state) {
    Run(x, products);
    Synchronize(device);
  }
  SetProducts(state, n, products);
}

// --- 000/In7, d2l/mm-4000, d2l/size-sweep: two devices ----------------------

// Times `work(x1, x2)`, each device's share of which is `products`.
template <typename F>
void RunBoth(benchmark::State& state, Device first, Device second, int n,
             int products, const F& work) {
  const Tensor x1 = Rand({n, n}, first);
  const Tensor x2 = Rand({n, n}, second);
  const auto work_and_wait = [&] {
    work(x1, x2);
    Synchronize(first);
    Synchronize(second);
  };
  work_and_wait();
  for (auto _ : state) work_and_wait();
  SetProducts(state, n, 2 * products);
}

void CourseOrder(benchmark::State& state, Device first, Device second) {
  RunBoth(state, first, second, kSmall, kSmallProducts,
          [](const Tensor& x1, const Tensor& x2) {
            Run(x1, kSmallProducts);
            Run(x2, kSmallProducts);
          });
}

template <int n, int products>
void InTurn(benchmark::State& state, Device first, Device second) {
  RunBoth(
      state, first, second, n, products,
      [](const Tensor& x1, const Tensor& x2) { RunInTurn(x1, x2, products); });
}

// --- d2l/overlap ------------------------------------------------------------

enum class Copies { kNone, kOnly, kSameStream, kOwnStream };

// 20 products (1000, 32) @ (32, 1000), and their copies to the host.
template <Copies copies, bool pinned>
void Overlap(benchmark::State& state, Device device) {
  constexpr int kSteps = 20;
  constexpr std::size_t kBytes = sizeof(float) * kLarge * kLarge;
  const Tensor a = Rand({kLarge, 32}, device);
  const Tensor b = Rand({32, kLarge}, device);
  std::vector<Tensor> y(kSteps, MatMul(a, b));
  const StorageRef memory =
      PinnedMemory(device).AllocatePinned(kSteps * kBytes);
  std::vector<char> pageable(pinned ? 0 : kSteps * kBytes);
  char* const host =
      pinned ? static_cast<char*>(memory->data()) : pageable.data();

  Stream& products = CurrentStream(device);
  Stream& other = *Streams(device, 1)[0];
  Stream& stream = copies == Copies::kOwnStream ? other : products;
  const auto all = [&] {
    for (int i = 0; i < kSteps; ++i) {
      if (copies != Copies::kOnly) y[i] = MatMul(a, b);
      if (copies == Copies::kNone) continue;
      if (copies == Copies::kOwnStream) stream.Wait(products.Record());
      stream.CopyAsync(host + i * kBytes, y[i].data(), kBytes,
                       CopyKind::kDeviceToHost);
    }
    Synchronize(device);
  };
  all();
  for (auto _ : state) all();
  state.SetItemsProcessed(state.iterations() * kSteps);
}

// --- 002/two-device-graph ---------------------------------------------------

struct Mlp {
  Tensor x, y, w1, w2;
};

// As in the lesson: half of the batch on each of two devices.
Tensor Gradient(const Mlp& mlp, const std::vector<Device>& devices) {
  std::vector<Mlp> halves;
  const std::int64_t rows = mlp.x.size(0) / 2;
  for (int i = 0; i < 2; ++i) {
    const Range half{i * rows, (i + 1) * rows};
    halves.push_back({To(mlp.x[half], devices[i]), To(mlp.y[half], devices[i]),
                      To(mlp.w1, devices[i]), To(mlp.w2, devices[i])});
  }
  std::vector<Tensor> gradients;
  for (const auto& [x, y, w1, w2] : halves) {
    const Tensor h = Relu(MatMul(x, w1));
    gradients.push_back(MatMul(T(h), MatMul(h, w2) - y));
  }
  const Device home = mlp.x.device();
  return To(gradients[0], home) + To(gradients[1], home);
}

void GradientOnTwo(benchmark::State& state, Device first, Device second) {
  const Mlp mlp = {Randn({4096, 784}, first), Randn({4096, 10}, first),
                   Randn({784, 512}, first), Randn({512, 10}, first)};
  WaitToRead(Gradient(mlp, {first, second}));
  for (auto _ : state) WaitToRead(Gradient(mlp, {first, second}));
}

void GradientOnOne(benchmark::State& state, Device device) {
  GradientOnTwo(state, device, device);
}

// --- d2l/streams ------------------------------------------------------------

template <int n, int products, int streams>
void OnStreams(benchmark::State& state, Device device) {
  const Tensor x = Rand({n, n}, device);
  Synchronize(device);  // these streams do not wait for the default one
  RunOn(Streams(device, streams), x, products);
  Synchronize(device);
  for (auto _ : state) {
    RunOn(Streams(device, streams), x, products);
    Synchronize(device);
  }
  SetProducts(state, n, products);
}

[[maybe_unused]] const bool registered[] = {
    BenchmarkOnDevices("BM_000_In3_Products_Enqueue", AskFor1000,
                       BenchmarkTime::kManual, /*iterations=*/50),
    BenchmarkOnDevices("BM_000_In3_Products_Synchronized",
                       RunAndWait<kSmall, 1000>),
    BenchmarkOnDevices("BM_000_In6_MatMul", RunAndWait<kSmall, kSmallProducts>),
    BenchmarkOnDevicePairs("BM_000_In7_MatMul_CourseOrder", CourseOrder),
    BenchmarkOnDevicePairs("BM_000_In7_MatMul_InTurn",
                           InTurn<kSmall, kSmallProducts>),
    BenchmarkOnDevices("BM_d2l_mm_4000_OneDevice",
                       RunAndWait<kLarge, kLargeProducts>),
    BenchmarkOnDevicePairs("BM_d2l_mm_4000_TwoDevices",
                           InTurn<kLarge, kLargeProducts>),
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
    BenchmarkOnDevices("BM_d2l_size_sweep_8_OneDevice", RunAndWait<8, 4000>),
    BenchmarkOnDevicePairs("BM_d2l_size_sweep_8_TwoDevices", InTurn<8, 2000>),
    BenchmarkOnDevices("BM_d2l_size_sweep_64_OneDevice", RunAndWait<64, 760>),
    BenchmarkOnDevicePairs("BM_d2l_size_sweep_64_TwoDevices", InTurn<64, 380>),
    BenchmarkOnDevices("BM_d2l_size_sweep_512_OneDevice", RunAndWait<512, 4>),
    BenchmarkOnDevicePairs("BM_d2l_size_sweep_512_TwoDevices", InTurn<512, 2>),
};

}  // namespace
}  // namespace d2l
