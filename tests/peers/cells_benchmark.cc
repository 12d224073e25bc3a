// The cells that compare.py also runs in PyTorch and NumPy. A benchmark bears
// its cell's name in cells.py, and its items are the cell's units; one that
// begins with "bound" is the same work by the barest means.
//
//   bazel run //tests/peers:cells_benchmark -- --benchmark_filter=003
//
// Each iteration waits until its work is done. All runs on cpu:0, unless the
// name says otherwise.

#include <benchmark/benchmark.h>
#include <cblas.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/source_location.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/ops/ops.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"
#include "common/tensor/tensor.h"
#include "hwy/aligned_allocator.h"
#include "tests/peers/bandwidth.h"

namespace d2l {
namespace {

constexpr Device kDevice(DeviceType::kCpu, 0);
constexpr Device kOtherDevice(DeviceType::kCpu, 1);

// `work` is `units` units of what the cell counts. It is called once before
// the clock starts: the caches fill, and memory is taken from the system.
template <typename F>
void Measure(benchmark::State& state, std::int64_t units, const F& work) {
  work();
  Synchronize(kDevice);
  for (auto _ : state) {
    work();
    Synchronize(kDevice);
  }
  state.SetItemsProcessed(state.iterations() * units);
}

template <typename F>
void MeasureLoop(benchmark::State& state, int count, const F& body) {
  Measure(state, count, [&] {
    for (int i = 0; i < count; ++i) body();
  });
}

// The course's cells.

void TinyProducts(benchmark::State& state) {
  const Tensor x = Rand({3, 3}, kDevice);
  MeasureLoop(state, 10'000, [&] { MatMul(x, T(x)); });
}
BENCHMARK(TinyProducts)->Name("003_c5")->UseRealTime();

void DrawAndMultiply(benchmark::State& state) {
  MeasureLoop(state, 20'000, [] {
    const Tensor x = Rand({10, 10}, kDevice);
    const Tensor y = x * x;
  });
}
BENCHMARK(DrawAndMultiply)->Name("003_c18")->UseRealTime();

void AssignRows(benchmark::State& state) {
  constexpr int kRepeats = 20;
  constexpr int kRows = 1000;
  Measure(state, kRepeats * kRows, [] {
    for (int i = 0; i < kRepeats; ++i) {
      const Tensor v = Zeros({kRows, 10, 10}, kDevice);
      for (int j = 0; j < kRows; ++j) v[j] = Rand({10, 10}, kDevice);
      const Tensor squares = v * v;
    }
  });
}
BENCHMARK(AssignRows)->Name("003_c20")->UseRealTime();

// Products of the matrices a[j] with b[i][j], for all i and j, at [i, :, :, j]
// of the result.
struct Matrices {
  static constexpr int kLists = 200;
  static constexpr int kLength = 100;

  Matrices() : a(List()) {
    for (int i = 0; i < kLists; ++i) b.push_back(List());
  }
  static std::vector<Tensor> List() {
    std::vector<Tensor> list;
    for (int j = 0; j < kLength; ++j) list.push_back(Rand({10, 10}, kDevice));
    return list;
  }

  Tensor Vectorised() const {
    const Tensor res = Zeros({kLists, 10, 10, kLength}, kDevice);
    const Tensor a_tensor = DStack(a);
    for (int i = 0; i < kLists; ++i) res[i] = a_tensor * DStack(b[i]);
    return res;
  }
  Tensor OneByOne() const {
    const Tensor res = Zeros({kLists, 10, 10, kLength}, kDevice);
    for (int i = 0; i < kLists; ++i) {
      for (int j = 0; j < kLength; ++j) {
        res[{i, kAll, kAll, j}] = a[j] * b[i][j];
      }
    }
    return res;
  }

  std::vector<Tensor> a;
  std::vector<std::vector<Tensor>> b;
};

void StackedMatrices(benchmark::State& state, bool vectorised) {
  const Matrices matrices;
  if (!Equal(matrices.Vectorised(), matrices.OneByOne())) {
    state.SkipWithError("the loop's result differs from the vectorised one");
    return;
  }
  Measure(state, 1,
          [&] { vectorised ? matrices.Vectorised() : matrices.OneByOne(); });
}
BENCHMARK_CAPTURE(StackedMatrices, vectorised, true)
    ->Name("003_c21_vectorised")
    ->UseRealTime();
BENCHMARK_CAPTURE(StackedMatrices, loop, false)
    ->Name("003_c21_loop")
    ->UseRealTime();

constexpr int kProducts = 20'000;
constexpr int kProductSize = 100;

void Products(benchmark::State& state) {
  const Tensor x = Rand({kProductSize, kProductSize}, kDevice);
  MeasureLoop(state, kProducts, [&] { MatMul(x, x); });
}
BENCHMARK(Products)->Name("000_In6")->UseRealTime();

// False if --devices names only one.
bool HasTwoDevices(benchmark::State& state) {
  if (HasDevice(kOtherDevice)) return true;
  state.SkipWithError("skipped: there is no second device");
  return false;
}

void ProductsOnTwoDevices(benchmark::State& state) {
  if (!HasTwoDevices(state)) return;
  const Tensor x = Rand({kProductSize, kProductSize}, kDevice);
  const Tensor y = Rand({kProductSize, kProductSize}, kOtherDevice);
  Measure(state, kProducts, [&] {
    for (int i = 0; i < kProducts; ++i) {
      MatMul(x, x);
      MatMul(y, y);
    }
    Synchronize(kOtherDevice);
  });
}
BENCHMARK(ProductsOnTwoDevices)->Name("000_In6_two_devices")->UseRealTime();

void ProductsInTurn(benchmark::State& state) {
  if (!HasTwoDevices(state)) return;
  const Tensor x = Rand({kProductSize, kProductSize}, kDevice);
  const Tensor y = Rand({kProductSize, kProductSize}, kOtherDevice);
  Measure(state, kProducts, [&] {
    for (int i = 0; i < kProducts; ++i) MatMul(x, x);
    Synchronize(kDevice);
    for (int i = 0; i < kProducts; ++i) MatMul(y, y);
    Synchronize(kOtherDevice);
  });
}
BENCHMARK(ProductsInTurn)->Name("000_In6_in_turn")->UseRealTime();

void RandnMatMul(benchmark::State& state) {
  Measure(state, 1, [] {
    for (int i = 0; i < 10; ++i) {
      const Tensor a = Randn({1000, 1000}, kDevice);
      const Tensor b = MatMul(a, a);
    }
  });
}
BENCHMARK(RandnMatMul)->Name("004_In4")->UseRealTime();

void AddWaitingEachTime(benchmark::State& state) {
  const Tensor x = Ones({1, 2}, kDevice);
  MeasureLoop(state, 10'000, [&] {
    const Tensor y = x + 1;
    Synchronize(kDevice);
  });
}
BENCHMARK(AddWaitingEachTime)->Name("d2l_t1t2t3_each")->UseRealTime();

void AddWaitingOnce(benchmark::State& state) {
  const Tensor x = Ones({1, 2}, kDevice);
  MeasureLoop(state, 10'000, [&] { const Tensor y = x + 1; });
}
BENCHMARK(AddWaitingOnce)->Name("d2l_t1t2t3_once")->UseRealTime();

// Single operations.

void AddOneElement(benchmark::State& state) {
  const Tensor x = Ones({1}, kDevice);
  const Tensor y = Ones({1}, kDevice);
  MeasureLoop(state, 10'000, [&] { const Tensor z = x + y; });
}
BENCHMARK(AddOneElement)->Name("add_1")->UseRealTime();

void Product(benchmark::State& state, std::int64_t m, std::int64_t k,
             std::int64_t n, int count) {
  const Tensor a = Rand({m, k}, kDevice);
  const Tensor b = Rand({k, n}, kDevice);
  MeasureLoop(state, count, [&] { MatMul(a, b); });
}
BENCHMARK_CAPTURE(Product, large, 1000, 1000, 1000, 1)
    ->Name("mm_1000")
    ->UseRealTime();
BENCHMARK_CAPTURE(Product, middling, 256, 256, 256, 100)
    ->Name("mm_256")
    ->UseRealTime();
BENCHMARK_CAPTURE(Product, row, 1, 512, 256, 1000)
    ->Name("mm_1x512_512x256")
    ->UseRealTime();

using Draw = Tensor (*)(const Shape&, Device, DType, SourceLocation);

void DrawNumbers(benchmark::State& state, Draw draw, std::int64_t n) {
  Measure(state, n, [&] {
    draw({n}, kDevice, DType::kFloat32, SourceLocation::Current());
  });
}
BENCHMARK_CAPTURE(DrawNumbers, randn_1e6, Randn, 1'000'000)
    ->Name("randn_1e6")
    ->UseRealTime();
BENCHMARK_CAPTURE(DrawNumbers, randn_1e7, Randn, 10'000'000)
    ->Name("randn_1e7")
    ->UseRealTime();
BENCHMARK_CAPTURE(DrawNumbers, rand_1e6, Rand, 1'000'000)
    ->Name("rand_1e6")
    ->UseRealTime();
BENCHMARK_CAPTURE(DrawNumbers, rand_1e7, Rand, 10'000'000)
    ->Name("rand_1e7")
    ->UseRealTime();

void MultiplyAndAdd(benchmark::State& state) {
  const Tensor x = Rand({10'000'000}, kDevice);
  const Tensor y = Rand({10'000'000}, kDevice);
  Measure(state, 1, [&] { const Tensor z = x * y + 2; });
}
BENCHMARK(MultiplyAndAdd)->Name("mul_add_1e7")->UseRealTime();

void SumOfAll(benchmark::State& state) {
  const Tensor x = Rand({10'000'000}, kDevice);
  Measure(state, 1, [&] { Sum(x); });
}
BENCHMARK(SumOfAll)->Name("sum_1e7")->UseRealTime();

using Function = Tensor (*)(const Tensor&, SourceLocation);

void Elementwise(benchmark::State& state, Function function) {
  const Tensor x = Randn({1'000'000}, kDevice);
  MeasureLoop(state, 10, [&] { function(x, SourceLocation::Current()); });
}
BENCHMARK_CAPTURE(Elementwise, exp, Exp)->Name("exp_1e6")->UseRealTime();
BENCHMARK_CAPTURE(Elementwise, tanh, Tanh)->Name("tanh_1e6")->UseRealTime();
BENCHMARK_CAPTURE(Elementwise, relu, Relu)->Name("relu_1e6")->UseRealTime();

void SoftmaxOfRows(benchmark::State& state) {
  const Tensor x = Randn({128, 1000}, kDevice);
  MeasureLoop(state, 100, [&] { Softmax(x, 1); });
}
BENCHMARK(SoftmaxOfRows)->Name("softmax_128x1000")->UseRealTime();

void AddBias(benchmark::State& state) {
  const Tensor x = Randn({256, 128}, kDevice);
  const Tensor bias = Randn({128}, kDevice);
  MeasureLoop(state, 100, [&] { const Tensor y = x + bias; });
}
BENCHMARK(AddBias)->Name("bias_256x128")->UseRealTime();

void CopyTransposed(benchmark::State& state) {
  const Tensor x = Randn({1000, 1000}, kDevice);
  MeasureLoop(state, 10, [&] { Contiguous(T(x)); });
}
BENCHMARK(CopyTransposed)->Name("transpose_1000")->UseRealTime();

// The bounds, on this thread.

void BareProducts(benchmark::State& state, int n, int count) {
  openblas_set_num_threads(1);
  const std::vector<float> x(static_cast<std::size_t>(n) * n, 0.5f);
  std::vector<float> y(x.size());
  MeasureLoop(state, count, [&] {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1.0f,
                x.data(), n, x.data(), n, 0.0f, y.data(), n);
    benchmark::ClobberMemory();
  });
}
BENCHMARK_CAPTURE(BareProducts, 3, 3, 10'000)
    ->Name("bound_sgemm_3")
    ->UseRealTime();
BENCHMARK_CAPTURE(BareProducts, 100, kProductSize, kProducts)
    ->Name("bound_sgemm_100")
    ->UseRealTime();

// 40 MB, as the cells with 10'000'000 numbers.
constexpr std::size_t kLarge = 10'000'000;

// Its items are bytes, read and written.
void BareCopy(benchmark::State& state) {
  const auto from = hwy::AllocateAligned<float>(kLarge);
  const auto to = hwy::AllocateAligned<float>(kLarge);
  std::fill_n(from.get(), kLarge, 0.5f);
  Measure(state, 2 * kLarge * sizeof(float), [&] {
    CopyPastCaches(from.get(), to.get(), kLarge);
    benchmark::ClobberMemory();
  });
}
BENCHMARK(BareCopy)->Name("bound_copy")->UseRealTime();

void BareRead(benchmark::State& state) {
  const auto from = hwy::AllocateAligned<float>(kLarge);
  std::fill_n(from.get(), kLarge, 0.5f);
  Measure(state, kLarge * sizeof(float),
          [&] { benchmark::DoNotOptimize(ReadAll(from.get(), kLarge)); });
}
BENCHMARK(BareRead)->Name("bound_read")->UseRealTime();

}  // namespace
}  // namespace d2l
