// What reductions and softmax cost on one core.
//
//   bazel run //common/kernels/cpu:kernels_benchmark
//
// Small operations are enqueued many at a time before the end is awaited: the
// time of one is what the stream's worker needs, or what enqueueing costs if
// that is more. "full" reduces n elements to one; "rows" the last dimension of
// a matrix, "columns" the first. Data of 1e7 floats, 40 MB, comes from memory.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "common/device/backend.h"
#include "common/device/cpu/cpu_stream.h"
#include "common/device/device.h"
#include "common/device/op_label.h"
#include "common/kernels/enqueue.h"
#include "common/kernels/kernels.h"
#include "common/kernels/layout.h"
#include "common/tensor/dtype.h"

namespace d2l::kernels::cpu {
namespace {

std::vector<float> Numbers(std::int64_t n) {
  std::vector<float> numbers(static_cast<std::size_t>(n));
  std::uint32_t state = 1;
  for (float& x : numbers) {
    state = state * 1664525 + 1013904223;
    x = static_cast<float>(state >> 8) * 0x1p-23f - 1;
  }
  return numbers;
}

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

// 0 columns: the full reduction.
void BM_Reduce(benchmark::State& state, ReduceOp op, std::int64_t rows,
               std::int64_t columns, bool along_rows) {
  const std::int64_t n = columns == 0 ? rows : rows * columns;
  const std::vector<float> in = Numbers(n);
  std::vector<std::int64_t> out(static_cast<std::size_t>(n));
  ReduceLayout layout = {{}, {}, {n}, {1}};
  if (columns != 0) {
    layout = along_rows ? ReduceLayout{{rows}, {columns}, {columns}, {1}}
                        : ReduceLayout{{columns}, {1}, {rows}, {columns}};
  }
  Measure(state, n, [&](CpuStream& stream) {
    Enqueue(stream, OpLabel("reduce"),
            ReduceArgs{op, DType::kFloat32, out.data(), in.data(), &layout});
  });
}

void BM_Softmax(benchmark::State& state, bool log, std::int64_t outer,
                std::int64_t size, std::int64_t inner) {
  const std::int64_t n = outer * size * inner;
  const std::vector<float> in = Numbers(n);
  std::vector<float> out(static_cast<std::size_t>(n));
  Measure(state, n, [&](CpuStream& stream) {
    Enqueue(stream, OpLabel("softmax"),
            SoftmaxArgs{log, DType::kFloat32, out.data(), in.data(), outer,
                        size, inner});
  });
}

const int kRegistered = [] {
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
  return 0;
}();

}  // namespace
}  // namespace d2l::kernels::cpu
