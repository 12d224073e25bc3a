// What the element-wise kernels cost on one core, with each kind of vector
// that this machine has, beside what the memory allows.
//
//   bazel run //common/kernels/cpu:kernels_benchmark
//
// A name ends in what Highway calls the vectors, AVX3 for AVX-512, and the
// number of elements: 10^3 floats stay in the first cache, 10^5 in the second,
// 10^7 in none. "Plain" is a loop over the functor without vectors. With
// Highway 1.0 "SCALAR" is what the compiler makes for any x86-64, vectors of
// four floats.
//
// Bytes count each operand and the result once; what the memory moves is more
// when a line is read before it is overwritten. The bounds, BM_MemCopy and
// BM_StreamCopy, are counted in the same way.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "common/kernels/cpu/elementwise_loops.h"
#include "common/kernels/cpu/elementwise_run.h"
#include "common/kernels/cpu/strided_copy.h"
#include "common/kernels/cpu/targets.h"
#include "common/kernels/functors.h"
#include "common/kernels/kernels.h"
#include "common/tensor/dtype.h"
#include "hwy/highway.h"

namespace d2l::kernels::cpu {
namespace {

// Three arrays of n floats, on lines of their own.
class Arrays {
 public:
  explicit Arrays(std::int64_t n) : n_((n + 15) / 16 * 16) {
    memory_.resize(static_cast<std::size_t>(3 * n_ + 16));
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      memory_[i] = static_cast<float>(i % 1000) * 0.01f - 5;
    }
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    first_ = memory_.data() + (64 - address % 64) % 64 / sizeof(float);
  }
  float* operator[](int k) { return first_ + k * n_; }

 private:
  std::int64_t n_;
  std::vector<float> memory_;
  float* first_;
};

void Count(benchmark::State& state, int arrays) {
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.SetBytesProcessed(state.iterations() * state.range(0) * arrays *
                          static_cast<std::int64_t>(sizeof(float)));
}

// find: chooses the loop, once the kind of vector is set. The last operand
// is one number if `number`.
struct Kernel {
  const char* name;
  int inputs;
  bool number;
  LoopFn (*find)();
};

const Kernel kKernels[] = {
    {"BM_Fill", 1, true, [] { return FillLoop(DType::kFloat32); }},
    {"BM_Add", 2, false,
     [] {
       return BinaryLoop(BinaryOp::kAdd, DType::kFloat32,
                         Operands::kVectorVector);
     }},
    {"BM_MultiplyNumber", 2, true,
     [] {
       return BinaryLoop(BinaryOp::kMultiply, DType::kFloat32,
                         Operands::kVectorScalar);
     }},
    {"BM_Exp", 1, false,
     [] { return UnaryLoop(UnaryOp::kExp, DType::kFloat32); }},
    {"BM_Tanh", 1, false,
     [] { return UnaryLoop(UnaryOp::kTanh, DType::kFloat32); }},
    {"BM_Sigmoid", 1, false,
     [] { return UnaryLoop(UnaryOp::kSigmoid, DType::kFloat32); }},
};

void BM_Kernel(benchmark::State& state, const Kernel& kernel,
               std::int64_t target) {
  const ScopedTarget scope(target);
  const std::int64_t n = state.range(0);
  Arrays arrays(n);
  ContiguousLoop loop = {};
  loop.loop = kernel.find();
  loop.out = arrays[0];
  loop.out_size = sizeof(float);
  for (int k = 0; k < kernel.inputs; ++k) {
    loop.in[k] = arrays[1 + k];
    loop.in_size[k] =
        kernel.number && k == kernel.inputs - 1 ? 0 : sizeof(float);
  }
  loop.numel = n;
  for (auto _ : state) {
    RunContiguous(loop);
    benchmark::ClobberMemory();
  }
  Count(state, 1 + kernel.inputs - (kernel.number ? 1 : 0));
}

void BM_Copy(benchmark::State& state, std::int64_t target) {
  const ScopedTarget scope(target);
  const std::int64_t n = state.range(0);
  Arrays arrays(n);
  for (auto _ : state) {
    CopyContiguous(arrays[0], arrays[1],
                   n * static_cast<std::int64_t>(sizeof(float)));
    benchmark::ClobberMemory();
  }
  Count(state, 2);
}

// As square a matrix as there is of about n elements.
void BM_Transpose(benchmark::State& state, std::int64_t target) {
  const ScopedTarget scope(target);
  std::int64_t side = 1;
  while ((side + 1) * (side + 1) <= state.range(0)) ++side;
  Arrays arrays(side * side);
  StridedLoop loop = {};
  loop.inputs = 1;
  loop.rank = 2;
  loop.shape[0] = loop.shape[1] = side;
  loop.walk = Walk::kCopy;
  for (const int k : {0, 1}) {
    loop.source[k].data = arrays[k];
    loop.size[k] = sizeof(float);
    loop.strides[k][k] = side;
    loop.strides[k][1 - k] = 1;
  }
  for (auto _ : state) {
    RunStrided(loop);
    benchmark::ClobberMemory();
  }
  Count(state, 2);
}

template <typename F>
__attribute__((noinline, optimize("no-tree-vectorize"))) void PlainLoop(
    float* out, const float* a, const float* b, std::int64_t n, F f) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = f(a[i], b[i]);
}

struct FirstTimesTwo {
  float operator()(float a, float) const { return Multiply()(a, 2.f); }
};
template <typename F>
struct OfFirst {
  float operator()(float a, float) const { return F()(a); }
};

template <typename F>
void BM_Plain(benchmark::State& state, F f, int arrays_used) {
  const std::int64_t n = state.range(0);
  Arrays arrays(n);
  for (auto _ : state) {
    PlainLoop(arrays[0], arrays[1], arrays[2], n, f);
    benchmark::ClobberMemory();
  }
  Count(state, arrays_used);
}

void BM_MemCopy(benchmark::State& state) {
  const std::int64_t n = state.range(0);
  Arrays arrays(n);
  for (auto _ : state) {
    std::memcpy(arrays[0], arrays[1],
                static_cast<std::size_t>(n) * sizeof(float));
    benchmark::ClobberMemory();
  }
  Count(state, 2);
}

void BM_StreamCopy(benchmark::State& state) {
  const std::int64_t n = state.range(0) / 16 * 16;
  Arrays arrays(n);
  for (auto _ : state) {
    StreamBytes(arrays[0], arrays[1],
                static_cast<std::size_t>(n) * sizeof(float));
    FinishStream();
    benchmark::ClobberMemory();
  }
  Count(state, 2);
}

template <typename F>
void Register(const std::string& name, F f) {
  benchmark::RegisterBenchmark(name.c_str(), f)
      ->Arg(1000)
      ->Arg(100'000)
      ->Arg(10'000'000);
}

template <typename F>
void RegisterPlain(const std::string& name, F f, int arrays_used) {
  Register(name + "/Plain", [f, arrays_used](benchmark::State& state) {
    BM_Plain(state, f, arrays_used);
  });
}

const int kRegistered = [] {
  Register("BM_MemCopy", BM_MemCopy);
  Register("BM_StreamCopy", BM_StreamCopy);
  const std::vector<std::int64_t> targets = Targets();
  for (const Kernel& kernel : kKernels) {
    for (const std::int64_t target : targets) {
      Register(std::string(kernel.name) + "/" + hwy::TargetName(target),
               [&kernel, target](benchmark::State& state) {
                 BM_Kernel(state, kernel, target);
               });
    }
  }
  for (const std::int64_t target : targets) {
    const std::string suffix = hwy::TargetName(target);
    Register("BM_Copy/" + suffix,
             [target](benchmark::State& state) { BM_Copy(state, target); });
    Register("BM_Transpose/" + suffix, [target](benchmark::State& state) {
      BM_Transpose(state, target);
    });
  }
  RegisterPlain("BM_Add", Add(), 3);
  RegisterPlain("BM_MultiplyNumber", FirstTimesTwo(), 2);
  RegisterPlain("BM_Exp", OfFirst<Exp>(), 2);
  RegisterPlain("BM_Tanh", OfFirst<Tanh>(), 2);
  RegisterPlain("BM_Sigmoid", OfFirst<Sigmoid>(), 2);
  return 0;
}();

}  // namespace
}  // namespace d2l::kernels::cpu
