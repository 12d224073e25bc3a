// The time of element-wise kernels, random numbers, reductions and softmax on
// one core, beside the memory's bounds: the first two with each kind of vector
// that this machine has.
//
//   bazel run //common/kernels/cpu:kernels_benchmark
//
// A name ends in Highway's name of the vectors, AVX3 for AVX-512, and the
// number of elements: 10^3 floats stay in the first cache, 10^5 in the second,
// 10^7 in none. "Plain" is a loop over the functor without vectors. With
// Highway 1.0 "SCALAR" is the compiler's code for any x86-64, vectors of four
// floats.
//
// Random numbers are made 100 or 2^14 at a time, which stay in the first two
// caches, or 10^7. The last kind of vector runs on every machine: with Highway
// 1.0 that is SCALAR, philox.h for one element at a time; later it is SSE2.
//
// Many small reductions are enqueued before one wait: the time of one is the
// time of the stream's worker, or of enqueueing if that is longer. "full"
// reduces n elements to one; "rows" the last dimension of a matrix, "columns"
// the first.
//
// Bytes count each operand and the result once; the memory moves more if a line
// is read before it is overwritten. The bounds, BM_MemCopy and BM_StreamCopy,
// are counted in the same way.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "common/device/backend.h"
#include "common/device/cpu/cpu_stream.h"
#include "common/device/device.h"
#include "common/device/op_label.h"
#include "common/kernels/cpu/elementwise_loops.h"
#include "common/kernels/cpu/elementwise_run.h"
#include "common/kernels/cpu/random.h"
#include "common/kernels/cpu/strided_copy.h"
#include "common/kernels/cpu/targets.h"
#include "common/kernels/enqueue.h"
#include "common/kernels/functors.h"
#include "common/kernels/kernels.h"
#include "common/kernels/layout.h"
#include "common/kernels/philox.h"
#include "common/tensor/dtype.h"
#include "hwy/highway.h"

namespace d2l::kernels::cpu {
namespace {

// Three arrays of n floats, which share no cache line.
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

// `find` chooses the loop, after the kind of vector is set. The last operand is
// one number if `number`.
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

// The largest square matrix of at most n elements.
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

// ---- Random numbers.

template <typename T>
void BM_Random(benchmark::State& state, RandomOp op, std::int64_t target) {
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
void RegisterRandom(const std::string& name, RandomOp op) {
  for (const std::int64_t target : Targets()) {
    benchmark::RegisterBenchmark((name + "/" + hwy::TargetName(target)).c_str(),
                                 [op, target](benchmark::State& state) {
                                   BM_Random<T>(state, op, target);
                                 })
        ->Arg(100)
        ->Arg(1 << 14)
        ->Arg(10'000'000);
  }
}

// ---- Reductions and softmax.

template <typename Enqueue>
void Measure(benchmark::State& state, std::int64_t elements,
             const Enqueue& enqueue) {
  CpuStream stream(Device(DeviceType::kCpu, 0), 1, StreamOptions());
  const std::int64_t batch =
      std::clamp<std::int64_t>(1'000'000 / elements, 1, 1000);
  enqueue(stream);  // brings the data into the caches, as far as they hold it
  stream.Synchronize();
  while (state.KeepRunningBatch(batch)) {
    for (std::int64_t i = 0; i < batch; ++i) enqueue(stream);
    stream.Synchronize();
  }
  state.SetItemsProcessed(state.iterations() * elements);
}

// 0 columns select the full reduction.
void BM_Reduce(benchmark::State& state, ReduceOp op, std::int64_t rows,
               std::int64_t columns, bool along_rows) {
  const std::int64_t n = columns == 0 ? rows : rows * columns;
  Arrays arrays(n);
  std::vector<std::int64_t> out(static_cast<std::size_t>(n));
  ReduceLayout layout = {{}, {}, {n}, {1}};
  if (columns != 0) {
    layout = along_rows ? ReduceLayout{{rows}, {columns}, {columns}, {1}}
                        : ReduceLayout{{columns}, {1}, {rows}, {columns}};
  }
  Measure(state, n, [&](CpuStream& stream) {
    Enqueue(stream, OpLabel("reduce"),
            ReduceArgs{op, DType::kFloat32, out.data(), arrays[1], &layout});
  });
}

void BM_Softmax(benchmark::State& state, bool log, std::int64_t outer,
                std::int64_t size, std::int64_t inner) {
  const std::int64_t n = outer * size * inner;
  Arrays arrays(n);
  std::vector<float> out(static_cast<std::size_t>(n));
  Measure(state, n, [&](CpuStream& stream) {
    Enqueue(stream, OpLabel("softmax"),
            SoftmaxArgs{log, DType::kFloat32, out.data(), arrays[1], outer,
                        size, inner});
  });
}

void RegisterReductions() {
  const std::pair<const char*, ReduceOp> ops[] = {
      {"sum", ReduceOp::kSum},
      {"mean", ReduceOp::kMean},
      {"max", ReduceOp::kMax},
      {"argmax", ReduceOp::kArgMax},
  };
  for (const auto& [name, op] : ops) {
    for (const std::int64_t n : {10, 1'000, 100'000, 10'000'000}) {
      benchmark::RegisterBenchmark(
          (std::string(name) + "/full/" + std::to_string(n)).c_str(),
          [op = op, n](benchmark::State& state) {
            BM_Reduce(state, op, n, 0, true);
          })
          ->UseRealTime();
    }
    const std::pair<std::int64_t, std::int64_t> shapes[] = {{1000, 1000},
                                                            {256, 10}};
    for (const auto& [rows, columns] : shapes) {
      for (const bool along_rows : {true, false}) {
        benchmark::RegisterBenchmark(
            (std::string(name) + (along_rows ? "/rows/" : "/columns/") +
             std::to_string(rows) + "x" + std::to_string(columns))
                .c_str(),
            [op = op, rows = rows, columns = columns,
             along_rows](benchmark::State& state) {
              BM_Reduce(state, op, rows, columns, along_rows);
            })
            ->UseRealTime();
      }
    }
  }
  static constexpr std::int64_t shapes[][3] = {
      {256, 10, 1}, {128, 1000, 1}, {1, 1'000'000, 1}, {1, 1000, 100}};
  for (const bool log : {false, true}) {
    for (const auto& shape : shapes) {
      benchmark::RegisterBenchmark(
          (std::string(log ? "log_softmax/" : "softmax/") +
           std::to_string(shape[0]) + "x" + std::to_string(shape[1]) + "x" +
           std::to_string(shape[2]))
              .c_str(),
          [log, &shape](benchmark::State& state) {
            BM_Softmax(state, log, shape[0], shape[1], shape[2]);
          })
          ->UseRealTime();
    }
  }
}

// ---- All of them.

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
  RegisterRandom<float>("BM_UniformFloat", RandomOp::kUniform);
  RegisterRandom<float>("BM_NormalFloat", RandomOp::kNormal);
  RegisterRandom<double>("BM_UniformDouble", RandomOp::kUniform);
  RegisterRandom<double>("BM_NormalDouble", RandomOp::kNormal);
  RegisterReductions();
  return 0;
}();

}  // namespace
}  // namespace d2l::kernels::cpu
