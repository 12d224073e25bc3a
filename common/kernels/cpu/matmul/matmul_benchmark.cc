// What a matrix product costs, with each kind of vector that this machine has,
// and with OpenBLAS.
//
//   bazel run //common/kernels/cpu:kernels_benchmark -- --benchmark_filter=Gemm
//
// A name ends in the sides m/k/n. AVX3 is what Highway calls AVX-512.
// items_per_second counts floating-point operations: 2 m n k per product.

#include <cblas.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "common/kernels/cpu/matmul/gemm.h"
#include "common/kernels/cpu/targets.h"
#include "hwy/highway.h"

namespace d2l::kernels::cpu {
namespace {

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
  std::mt19937 random(42);
  std::uniform_real_distribution<T> uniform(-1, 1);
  std::vector<T> a(static_cast<std::size_t>(m * k));
  std::vector<T> b(static_cast<std::size_t>(k * n));
  std::vector<T> c(static_cast<std::size_t>(m * n));
  std::generate(a.begin(), a.end(), [&] { return uniform(random); });
  std::generate(b.begin(), b.end(), [&] { return uniform(random); });
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

const int kRegistered = [] {
  RegisterAll<float>("Float");
  RegisterAll<double>("Double");
  return 0;
}();

}  // namespace
}  // namespace d2l::kernels::cpu
