// What random numbers cost, with each kind of vector that this machine has.
//
//   bazel run //common/kernels/cpu:kernels_benchmark
//
// A name ends in what Highway calls the vectors, AVX3 for AVX-512, and the
// number of elements: 2^14 stay in the first two caches, 10^7 do not. The last
// kind of vector is the one that every machine runs: with Highway 1.0 that is
// SCALAR, which is philox.h an element at a time; later it is SSE2.

#include <cstdint>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "common/kernels/cpu/random.h"
#include "common/kernels/cpu/targets.h"
#include "common/kernels/philox.h"
#include "common/tensor/dtype.h"
#include "hwy/highway.h"

namespace d2l::kernels::cpu {
namespace {

template <typename T>
void BM_Fill(benchmark::State& state, RandomOp op, std::int64_t target) {
  const ScopedTarget scope(target);
  const std::int64_t n = state.range(0);
  std::vector<T> out(static_cast<std::size_t>(n));
  RandomArgs args = {op, DTypeOf<T>::value, n, out.data(), {42, 0}, 0, 1};
  for (auto _ : state) {
    FillRandom(args, 0, n);
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
    args.state.offset += RandomBlocks<T>(n);
  }
  state.SetItemsProcessed(state.iterations() * n);
  state.SetBytesProcessed(state.iterations() * n *
                          static_cast<std::int64_t>(sizeof(T)));
}

template <typename T>
void Register(const std::string& name, RandomOp op) {
  for (const std::int64_t target : Targets()) {
    benchmark::RegisterBenchmark((name + "/" + hwy::TargetName(target)).c_str(),
                                 [op, target](benchmark::State& state) {
                                   BM_Fill<T>(state, op, target);
                                 })
        ->Arg(100)
        ->Arg(1 << 14)
        ->Arg(10'000'000);
  }
}

const int kRegistered = [] {
  Register<float>("BM_UniformFloat", RandomOp::kUniform);
  Register<float>("BM_NormalFloat", RandomOp::kNormal);
  Register<double>("BM_UniformDouble", RandomOp::kUniform);
  Register<double>("BM_NormalDouble", RandomOp::kNormal);
  return 0;
}();

}  // namespace
}  // namespace d2l::kernels::cpu
