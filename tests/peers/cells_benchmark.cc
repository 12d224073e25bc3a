// The cells that compare.py also runs in PyTorch and NumPy. A benchmark has the
// name that its cell has in cells.py, and its items are the cell's units. The
// counter "bound_ns" is the time of a unit at the device's peaks (measure.h).
//
//   bazel run //tests/peers:cells_benchmark -- --benchmark_filter=003
//
// Each iteration waits until its work is done. Benchmarks run on the first of
// --devices, or on the first and the second if they need two; the default is
// cpu:0 and cpu:1.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/autograd/tape.h"
#include "common/base/source_location.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/graph/captured.h"
#include "common/graph/ir.h"
#include "common/graph/passes/passes.h"
#include "common/graph/trace.h"
#include "common/nn/layers.h"
#include "common/nn/models.h"
#include "common/nn/module.h"
#include "common/nn/sgd.h"
#include "common/ops/ops.h"
#include "common/profiler/profiler.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"
#include "common/tensor/tensor.h"
#include "tests/peers/measure.h"

namespace d2l {
namespace {

// The course's cells.

void TinyProducts(benchmark::State& state) {
  const Tensor x = Rand({3, 3}, FirstDevice());
  MeasureLoop(state, 10'000, [&] { MatMul(x, T(x)); });
}
BENCHMARK(TinyProducts)->Name("003_c5")->UseRealTime();

// TinyProducts under the profiler, which is started and stopped each time.
void TinyProductsProfiled(benchmark::State& state) {
  const Tensor x = Rand({3, 3}, FirstDevice());
  Measure(state, 10'000, [&] {
    Profiler profiler;
    const ProfileScope scope(profiler);
    for (int i = 0; i < 10'000; ++i) MatMul(x, T(x));
    Synchronize(x.device());
  });
}
BENCHMARK(TinyProductsProfiled)->Name("003_c5_profiled")->UseRealTime();

void DrawAndMultiply(benchmark::State& state) {
  const Device device = FirstDevice();
  MeasureLoop(state, 20'000, [&] {
    const Tensor x = Rand({10, 10}, device);
    const Tensor y = x * x;
  });
}
BENCHMARK(DrawAndMultiply)->Name("003_c18")->UseRealTime();

void AssignRows(benchmark::State& state) {
  constexpr int kRepeats = 20;
  constexpr int kRows = 1000;
  const Device device = FirstDevice();
  Measure(state, kRepeats * kRows, [&] {
    for (int i = 0; i < kRepeats; ++i) {
      const Tensor v = Zeros({kRows, 10, 10}, device);
      for (int j = 0; j < kRows; ++j) v[j] = Rand({10, 10}, device);
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

  explicit Matrices(Device d) : device(d), a(List(d)) {
    for (int i = 0; i < kLists; ++i) b.push_back(List(d));
  }
  static std::vector<Tensor> List(Device device) {
    std::vector<Tensor> list;
    for (int j = 0; j < kLength; ++j) list.push_back(Rand({10, 10}, device));
    return list;
  }

  Tensor Vectorised() const {
    const Tensor res = Zeros({kLists, 10, 10, kLength}, device);
    const Tensor a_tensor = DStack(a);
    for (int i = 0; i < kLists; ++i) res[i] = a_tensor * DStack(b[i]);
    return res;
  }
  Tensor OneByOne() const {
    const Tensor res = Zeros({kLists, 10, 10, kLength}, device);
    for (int i = 0; i < kLists; ++i) {
      for (int j = 0; j < kLength; ++j) {
        res[{i, kAll, kAll, j}] = a[j] * b[i][j];
      }
    }
    return res;
  }

  Device device;
  std::vector<Tensor> a;
  std::vector<std::vector<Tensor>> b;
};

void StackedMatrices(benchmark::State& state, bool vectorised) {
  const Matrices matrices(FirstDevice());
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
  const Tensor x = Rand({kProductSize, kProductSize}, FirstDevice());
  MeasureLoop(state, kProducts, [&] { MatMul(x, x); });
}
BENCHMARK(Products)->Name("000_In6")->UseRealTime();

// False if --devices names only one device.
bool HasTwoDevices(benchmark::State& state) {
  if (Devices().size() > 1) return true;
  Skip(state, absl::StrCat("there is no second device beside ",
                           FirstDevice().ToString(),
                           "; --devices=cpu:0,cpu:1 or --devices=cuda:0,cuda:0 "
                           "makes two"));
  return false;
}

void ProductsOnTwoDevices(benchmark::State& state) {
  if (!HasTwoDevices(state)) return;
  const Device first = FirstDevice();
  const Device second = Devices()[1].device;
  const Tensor x = Rand({kProductSize, kProductSize}, first);
  const Tensor y = Rand({kProductSize, kProductSize}, second);
  Measure(state, kProducts, [&] {
    for (int i = 0; i < kProducts; ++i) {
      MatMul(x, x);
      MatMul(y, y);
    }
    Synchronize(second);
  });
}
BENCHMARK(ProductsOnTwoDevices)->Name("000_In6_two_devices")->UseRealTime();

void ProductsInTurn(benchmark::State& state) {
  if (!HasTwoDevices(state)) return;
  const Device first = FirstDevice();
  const Device second = Devices()[1].device;
  const Tensor x = Rand({kProductSize, kProductSize}, first);
  const Tensor y = Rand({kProductSize, kProductSize}, second);
  Measure(state, kProducts, [&] {
    for (int i = 0; i < kProducts; ++i) MatMul(x, x);
    Synchronize(first);
    for (int i = 0; i < kProducts; ++i) MatMul(y, y);
    Synchronize(second);
  });
}
BENCHMARK(ProductsInTurn)->Name("000_In6_in_turn")->UseRealTime();

void RandnMatMul(benchmark::State& state) {
  const Device device = FirstDevice();
  Measure(state, 1, [&] {
    for (int i = 0; i < 10; ++i) {
      const Tensor a = Randn({1000, 1000}, device);
      const Tensor b = MatMul(a, a);
    }
  });
}
BENCHMARK(RandnMatMul)->Name("004_In4")->UseRealTime();

void AddWaitingEachTime(benchmark::State& state) {
  const Device device = FirstDevice();
  const Tensor x = Ones({1, 2}, device);
  MeasureLoop(state, 10'000, [&] {
    const Tensor y = x + 1;
    Synchronize(device);
  });
}
BENCHMARK(AddWaitingEachTime)->Name("d2l_t1t2t3_each")->UseRealTime();

void AddWaitingOnce(benchmark::State& state) {
  const Tensor x = Ones({1, 2}, FirstDevice());
  MeasureLoop(state, 10'000, [&] { const Tensor y = x + 1; });
}
BENCHMARK(AddWaitingOnce)->Name("d2l_t1t2t3_once")->UseRealTime();

// Single operations.

void AddOneElement(benchmark::State& state) {
  const Tensor x = Ones({1}, FirstDevice());
  const Tensor y = Ones({1}, FirstDevice());
  MeasureLoop(state, 10'000, [&] { const Tensor z = x + y; });
}
BENCHMARK(AddOneElement)->Name("add_1")->UseRealTime();

void Product(benchmark::State& state, std::int64_t m, std::int64_t k,
             std::int64_t n, int count) {
  const Tensor a = Rand({m, k}, FirstDevice());
  const Tensor b = Rand({k, n}, FirstDevice());
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
  const Device device = FirstDevice();
  Measure(state, n, [&] {
    draw({n}, device, DType::kFloat32, SourceLocation::Current());
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
  const Tensor x = Rand({10'000'000}, FirstDevice());
  const Tensor y = Rand({10'000'000}, FirstDevice());
  Measure(state, 1, [&] { const Tensor z = x * y + 2; });
}
BENCHMARK(MultiplyAndAdd)->Name("mul_add_1e7")->UseRealTime();

void SumOfAll(benchmark::State& state) {
  const Tensor x = Rand({10'000'000}, FirstDevice());
  Measure(state, 1, [&] { Sum(x); });
}
BENCHMARK(SumOfAll)->Name("sum_1e7")->UseRealTime();

using Function = Tensor (*)(const Tensor&, SourceLocation);

void Elementwise(benchmark::State& state, Function function) {
  const Tensor x = Randn({1'000'000}, FirstDevice());
  MeasureLoop(state, 10, [&] { function(x, SourceLocation::Current()); });
}
BENCHMARK_CAPTURE(Elementwise, exp, Exp)->Name("exp_1e6")->UseRealTime();
BENCHMARK_CAPTURE(Elementwise, tanh, Tanh)->Name("tanh_1e6")->UseRealTime();
BENCHMARK_CAPTURE(Elementwise, relu, Relu)->Name("relu_1e6")->UseRealTime();

void SoftmaxOfRows(benchmark::State& state) {
  const Tensor x = Randn({128, 1000}, FirstDevice());
  MeasureLoop(state, 100, [&] { Softmax(x, 1); });
}
BENCHMARK(SoftmaxOfRows)->Name("softmax_128x1000")->UseRealTime();

void AddBias(benchmark::State& state) {
  const Tensor x = Randn({256, 128}, FirstDevice());
  const Tensor bias = Randn({128}, FirstDevice());
  MeasureLoop(state, 100, [&] { const Tensor y = x + bias; });
}
BENCHMARK(AddBias)->Name("bias_256x128")->UseRealTime();

void CopyTransposed(benchmark::State& state) {
  const Tensor x = Randn({1000, 1000}, FirstDevice());
  MeasureLoop(state, 10, [&] { Contiguous(T(x)); });
}
BENCHMARK(CopyTransposed)->Name("transpose_1000")->UseRealTime();

void Multiply(benchmark::State& state) {
  const Tensor x = Rand({10'000'000}, FirstDevice());
  const Tensor y = Rand({10'000'000}, FirstDevice());
  Measure(state, 1, [&] { const Tensor z = x * y; });
}
BENCHMARK(Multiply)->Name("mul_1e7")->UseRealTime();

// Compiled programs.

enum class How { kEager, kCaptured, kGenerated };

// Measures `count` calls of fn; `how` says how to run them.
void MeasureProgram(benchmark::State& state, How how, int count,
                    const ir::TensorFunction& fn,
                    const std::vector<Tensor>& inputs) {
  if (how == How::kEager) {
    MeasureLoop(state, count, [&] { fn(inputs); });
    return;
  }
  ir::Graph graph = ir::Trace(fn, inputs);
  ir::Optimize(graph);
  ir::CapturedOptions options;
  options.generate_cpp = how == How::kGenerated;
  ir::Captured captured(graph, options);
  if (options.generate_cpp && !captured.not_generated().empty()) {
    Skip(state, captured.not_generated());
    return;
  }
  MeasureLoop(state, count, [&] { captured.Run(inputs); });
  // The program does not do the operations one by one.
  state.counters.erase("bound_ns");
}

// Layers of n, n/2, n/4 and 2, for one sample.
void Mlp(benchmark::State& state, int n, How how) {
  const Device device = FirstDevice();
  const std::int64_t sizes[] = {n, n / 2, n / 4, 2};
  std::vector<Tensor> weights, biases;
  for (int i = 0; i < 3; ++i) {
    weights.push_back(Randn({sizes[i + 1], sizes[i]}, device));
    biases.push_back(Randn({sizes[i + 1]}, device));
  }
  const auto net = [&](const std::vector<Tensor>& in) -> std::vector<Tensor> {
    Tensor x = in[0];
    for (int i = 0; i < 3; ++i) {
      x = MatMul(x, T(weights[i])) + biases[i];
      if (i < 2) x = Relu(x);
    }
    return {x};
  };
  MeasureProgram(state, how, 1000, net, {Randn({1, n}, device)});
}
BENCHMARK_CAPTURE(Mlp, eager, 8, How::kEager)
    ->Name("mlp_8_eager")
    ->UseRealTime();
BENCHMARK_CAPTURE(Mlp, captured, 8, How::kCaptured)
    ->Name("mlp_8_captured")
    ->UseRealTime();
BENCHMARK_CAPTURE(Mlp, generated, 8, How::kGenerated)
    ->Name("mlp_8_generated")
    ->UseRealTime();
BENCHMARK_CAPTURE(Mlp, eager, 128, How::kEager)
    ->Name("mlp_128_eager")
    ->UseRealTime();
BENCHMARK_CAPTURE(Mlp, captured, 128, How::kCaptured)
    ->Name("mlp_128_captured")
    ->UseRealTime();
BENCHMARK_CAPTURE(Mlp, generated, 128, How::kGenerated)
    ->Name("mlp_128_generated")
    ->UseRealTime();
BENCHMARK_CAPTURE(Mlp, eager, 512, How::kEager)
    ->Name("mlp_512_eager")
    ->UseRealTime();
BENCHMARK_CAPTURE(Mlp, captured, 512, How::kCaptured)
    ->Name("mlp_512_captured")
    ->UseRealTime();
BENCHMARK_CAPTURE(Mlp, generated, 512, How::kGenerated)
    ->Name("mlp_512_generated")
    ->UseRealTime();

nn::Sequential MlpOf512(Device device) {
  return nn::Sequential(nn::Linear(512, 256, device), nn::ReLU(),
                        nn::Linear(256, 128, device), nn::ReLU(),
                        nn::Linear(128, 2, device));
}

// `count` steps of training.
void TrainingSteps(benchmark::State& state, nn::Sequential (*make_net)(Device),
                   const Shape& batch, int count) {
  const Device device = FirstDevice();
  nn::Sequential net = make_net(device);
  const std::vector<Tensor> parameters = nn::Parameters(net);
  nn::SGD sgd(parameters, {/*lr=*/0.001});
  const Tensor x = Randn(batch, device);
  const Tensor labels = Ones({batch[0]}, device, DType::kInt64);
  MeasureLoop(state, count, [&] {
    GradientTape tape(parameters);
    sgd.Step(tape.Backward(nn::CrossEntropyLoss(net(x), labels)));
  });
}
BENCHMARK_CAPTURE(TrainingSteps, mlp, MlpOf512, Shape({1, 512}), 100)
    ->Name("mlp_step")
    ->UseRealTime();
BENCHMARK_CAPTURE(TrainingSteps, lenet, nn::LeNet, Shape({256, 1, 28, 28}), 1)
    ->Name("lenet_step")
    ->UseRealTime();
BENCHMARK_CAPTURE(
    TrainingSteps, resnet18,
    [](Device device) { return nn::ResNet18(10, 1, device); },
    Shape({32, 1, 28, 28}), 1)
    ->Name("resnet18_step")
    ->UseRealTime();

void Chain(benchmark::State& state, How how) {
  const auto fn = [](const std::vector<Tensor>& in) -> std::vector<Tensor> {
    Tensor x = in[0];
    for (int i = 0; i < 5; ++i) x = (x + in[1]) * 0.5;
    return {x};
  };
  const Device device = FirstDevice();
  const Tensor x = Randn({10'000'000}, device), y = Randn(x.shape(), device);
  MeasureProgram(state, how, 1, fn, {x, y});
  if (how == How::kEager) return;
  // In one pass, too, x and y are read, and as many numbers are written.
  const CostCounter pass = CountCost([&] { const Tensor z = x * y; });
  state.counters["bound_ns"] = 1e9 * pass.bound_seconds();
}
BENCHMARK_CAPTURE(Chain, eager, How::kEager)
    ->Name("chain_1e7_eager")
    ->UseRealTime();
BENCHMARK_CAPTURE(Chain, captured, How::kCaptured)
    ->Name("chain_1e7_captured")
    ->UseRealTime();
BENCHMARK_CAPTURE(Chain, generated, How::kGenerated)
    ->Name("chain_1e7_generated")
    ->UseRealTime();

}  // namespace
}  // namespace d2l
