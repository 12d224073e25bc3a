// The steps of the ladder and the product that tensors use, on one core.
//
//   bazel run //common/kernels/ladder:matmul_ladder_benchmark
//
// A name ends in the side of the square matrices; items_per_second counts
// floating-point operations, 2 n^3 per product.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "benchmark/benchmark.h"
#include "common/kernels/cpu/matmul/gemm.h"
#include "common/kernels/ladder/matmul_ladder.h"

namespace d2l::kernels::ladder {
namespace {

void MatMulGemm(std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                const float* b, float* c) {
  cpu::Gemm<float>({false, false, m, n, k, a, k, b, n, c, n});
}

template <auto kMatMul>
void BM(benchmark::State& state) {
  const std::int64_t n = state.range(0);
  const std::vector<float> a(static_cast<std::size_t>(n * n), 0.5f), b = a;
  std::vector<float> c(a.size());
  for (auto _ : state) {
    kMatMul(n, n, n, a.data(), b.data(), c.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * 2 * n * n * n);
}

BENCHMARK_TEMPLATE(BM, MatMulNaive)->Arg(100)->Arg(256)->Arg(1000);
BENCHMARK_TEMPLATE(BM, MatMulTiled)->Arg(100)->Arg(256)->Arg(1000);
BENCHMARK_TEMPLATE(BM, MatMulPacked)->Arg(100)->Arg(256)->Arg(1000);
BENCHMARK_TEMPLATE(BM, MatMulVectorised)->Arg(100)->Arg(256)->Arg(1000);
BENCHMARK_TEMPLATE(BM, MatMulGemm)->Arg(100)->Arg(256)->Arg(1000);

}  // namespace
}  // namespace d2l::kernels::ladder
