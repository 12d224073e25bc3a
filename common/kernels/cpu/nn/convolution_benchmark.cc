// What the convolutions of LeNet (batch 256) and of ResNet-18 (batch 32, images
// of 28 x 28) cost on one core, and for comparison a matrix product.
//
//   bazel run //common/kernels/cpu:kernels_benchmark -- --benchmark_filter=Conv
//
// A name has the input channels, the output channels, the image's side, the
// kernel's, the stride. items_per_second counts the floating-point operations
// of the definition, also where Winograd's algorithm needs fewer.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "common/kernels/cpu/matmul/gemm.h"
#include "common/kernels/cpu/nn/convolution.h"
#include "common/kernels/nn_kernels.h"
#include "common/tensor/dtype.h"

namespace d2l::kernels::cpu {
namespace {

struct Layer {
  std::int64_t batch, in, out, side, kernel, stride, padding;
};

constexpr Layer kLayers[] = {
    {256, 1, 20, 28, 3, 1, 0},   {256, 20, 50, 13, 5, 1, 0},
    {32, 1, 64, 28, 3, 1, 1},    {32, 64, 64, 28, 3, 1, 1},
    {32, 64, 128, 28, 3, 2, 1},  {32, 64, 128, 28, 1, 2, 0},
    {32, 128, 128, 14, 3, 1, 1}, {32, 128, 256, 14, 3, 2, 1},
    {32, 256, 256, 7, 3, 1, 1},  {32, 256, 512, 7, 3, 2, 1},
    {32, 512, 512, 4, 3, 1, 1}};

std::vector<float> Normal(std::int64_t count) {
  std::mt19937 random(42);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count));
  std::generate(values.begin(), values.end(), [&] { return normal(random); });
  return values;
}

void BM_Convolution(benchmark::State& state, const Layer& layer,
                    Conv2dPass pass) {
  const std::int64_t side =
      (layer.side + 2 * layer.padding - layer.kernel) / layer.stride + 1;
  std::vector<float> x =
      Normal(layer.batch * layer.in * layer.side * layer.side);
  std::vector<float> weight =
      Normal(layer.out * layer.in * layer.kernel * layer.kernel);
  std::vector<float> y = Normal(layer.batch * layer.out * side * side);
  const bool forward = pass == Conv2dPass::kForward;
  const bool of_weight = pass == Conv2dPass::kWeightGradient;
  std::vector<float> out((forward ? y : of_weight ? weight : x).size());
  Conv2dArgs args = {};
  args.pass = pass;
  args.dtype = DType::kFloat32;
  args.batch = layer.batch;
  args.in_channels = layer.in;
  args.out_channels = layer.out;
  args.window = {layer.side,    layer.side,   side,         side,
                 layer.kernel,  layer.kernel, layer.stride, layer.stride,
                 layer.padding, layer.padding};
  args.out = out.data();
  args.first = forward ? x.data() : y.data();
  args.second = of_weight ? x.data() : weight.data();
  for (auto _ : state) {
    Conv2d<float>(args);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * 2 *
                          static_cast<std::int64_t>(y.size()) * layer.in *
                          layer.kernel * layer.kernel);
}

void BM_Product1000(benchmark::State& state) {
  constexpr std::int64_t kSide = 1000;
  const std::vector<float> a = Normal(kSide * kSide);
  std::vector<float> c(a.size());
  for (auto _ : state) {
    Gemm<float>({false, false, kSide, kSide, kSide, a.data(), kSide, a.data(),
                 kSide, c.data(), kSide});
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * 2 * kSide * kSide * kSide);
}
BENCHMARK(BM_Product1000)->Unit(benchmark::kMillisecond);

const int kRegistered = [] {
  constexpr const char* kPasses[] = {"forward", "input_gradient",
                                     "weight_gradient"};
  for (const Layer& layer : kLayers) {
    std::string name = "BM_Convolution";
    for (const std::int64_t size :
         {layer.in, layer.out, layer.side, layer.kernel, layer.stride}) {
      name += "/" + std::to_string(size);
    }
    for (int pass = 0; pass < 3; ++pass) {
      benchmark::RegisterBenchmark(
          (name + "/" + kPasses[pass]).c_str(),
          [layer, pass](benchmark::State& state) {
            BM_Convolution(state, layer, static_cast<Conv2dPass>(pass));
          })
          ->Unit(benchmark::kMillisecond);
    }
  }
  return 0;
}();

}  // namespace
}  // namespace d2l::kernels::cpu
