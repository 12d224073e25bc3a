// The time of a matrix product, with each kind of vector that this machine has,
// and with OpenBLAS; and of the convolutions of LeNet (batch 256) and of
// ResNet-18 (batch 32, images of 28 x 28), on one core.
//
//   bazel run //common/kernels/cpu:kernels_benchmark -- --benchmark_filter=Gemm
//
// A product's name ends in the sides m/k/n; a convolution's ends in the input
// channels, the output channels, the image's side, the kernel's, the stride.
// items_per_second counts the floating-point operations of the definition, even
// where Winograd's algorithm needs fewer. AVX3 is Highway's name of AVX-512.

#include <cblas.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "common/kernels/cpu/matmul/gemm.h"
#include "common/kernels/cpu/nn/convolution.h"
#include "common/kernels/cpu/targets.h"
#include "common/kernels/kernels.h"
#include "common/tensor/dtype.h"
#include "hwy/highway.h"

namespace d2l::kernels::cpu {
namespace {

template <typename T>
std::vector<T> Normal(std::int64_t count) {
  std::mt19937 random(42);
  std::normal_distribution<T> normal;
  std::vector<T> values(static_cast<std::size_t>(count));
  std::generate(values.begin(), values.end(), [&] { return normal(random); });
  return values;
}

template <typename T>
void OpenBlas(const GemmArgs<T>& args) {
  const auto a_order = args.transpose_a ? CblasTrans : CblasNoTrans;
  const auto b_order = args.transpose_b ? CblasTrans : CblasNoTrans;
  const auto as_int = [](std::int64_t n) { return static_cast<int>(n); };
  if constexpr (sizeof(T) == sizeof(double)) {
    cblas_dgemm(CblasRowMajor, a_order, b_order, as_int(args.m), as_int(args.n),
                as_int(args.k), 1.0, args.a, as_int(args.lda), args.b,
                as_int(args.ldb), 0.0, args.c, as_int(args.ldc));
  } else {
    cblas_sgemm(CblasRowMajor, a_order, b_order, as_int(args.m), as_int(args.n),
                as_int(args.k), 1.0f, args.a, as_int(args.lda), args.b,
                as_int(args.ldb), 0.0f, args.c, as_int(args.ldc));
  }
}

template <typename T>
void BM_Product(benchmark::State& state, void (*product)(const GemmArgs<T>&),
                bool transpose_a, bool transpose_b, std::int64_t target) {
  const ScopedTarget scope(target);
  const std::int64_t m = state.range(0), k = state.range(1), n = state.range(2);
  const std::vector<T> a = Normal<T>(m * k), b = Normal<T>(k * n);
  std::vector<T> c(static_cast<std::size_t>(m * n));
  const GemmArgs<T> args = {transpose_a,
                            transpose_b,
                            m,
                            n,
                            k,
                            a.data(),
                            transpose_a ? m : k,
                            b.data(),
                            transpose_b ? k : n,
                            c.data(),
                            n};
  for (auto _ : state) {
    product(args);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * 2 * m * n * k);
}

template <typename T>
void Register(const std::string& name, void (*product)(const GemmArgs<T>&),
              std::int64_t target) {
  for (const char* form : {"NN", "NT", "TN", "TT"}) {
    const bool transpose_a = form[0] == 'T';
    const bool transpose_b = form[1] == 'T';
    auto* benchmark = benchmark::RegisterBenchmark(
        (name + "/" + form).c_str(), [=](benchmark::State& state) {
          BM_Product<T>(state, product, transpose_a, transpose_b, target);
        });
    for (const std::int64_t n : {3, 10, 32, 100, 256, 1000}) {
      benchmark->Args({n, n, n});
    }
    benchmark->Args({256, 784, 256})->Args({1, 512, 256});
  }
}

template <typename T>
void RegisterAll(const std::string& type) {
  openblas_set_num_threads(1);
  Register<T>("BM_OpenBlas" + type, OpenBlas<T>, 0);
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    Register<T>("BM_Gemm" + type + "/" + hwy::TargetName(target), Gemm<T>,
                target);
  }
}

// ---- Convolutions.

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

void BM_Convolution(benchmark::State& state, const Layer& layer,
                    Conv2dPass pass) {
  const std::int64_t side =
      (layer.side + 2 * layer.padding - layer.kernel) / layer.stride + 1;
  std::vector<float> x =
      Normal<float>(layer.batch * layer.in * layer.side * layer.side);
  std::vector<float> weight =
      Normal<float>(layer.out * layer.in * layer.kernel * layer.kernel);
  std::vector<float> y = Normal<float>(layer.batch * layer.out * side * side);
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

void RegisterConvolutions() {
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
}

const int kRegistered = [] {
  RegisterAll<float>("Float");
  RegisterAll<double>("Double");
  RegisterConvolutions();
  return 0;
}();

}  // namespace
}  // namespace d2l::kernels::cpu
