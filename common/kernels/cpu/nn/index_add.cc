#include <algorithm>
#include <cstdint>

#include "common/device/cpu/cpu_stream.h"
#include "common/device/cpu/parallel_for.h"
#include "common/kernels/cpu/indices.h"
#include "common/kernels/enqueue.h"
#include "common/tensor/dtype.h"

namespace d2l::kernels::cpu {
namespace {

// Blocks [o_begin, o_end), columns [begin, end) of them: threads never share an
// element of out, so the order of the additions is that of the indices.
template <typename T>
void Add(const IndexAddArgs& args, std::int64_t o_begin, std::int64_t o_end,
         std::int64_t begin, std::int64_t end) {
  const std::int64_t inner = args.inner;
  for (std::int64_t o = o_begin; o < o_end; ++o) {
    T* const out = static_cast<T*>(args.out) + o * args.size * inner;
    for (std::int64_t i = 0; i < args.count; ++i) {
      const std::int64_t row = (o * args.count + i) * inner;
      const T* const source = static_cast<const T*>(args.source) + row;
      if (args.op == IndexOp::kGather) {
        for (std::int64_t j = begin; j < end; ++j) {
          out[args.index[row + j] * inner + j] += source[j];
        }
      } else {
        T* const to = out + args.index[i] * inner;
        for (std::int64_t j = begin; j < end; ++j) to[j] += source[j];
      }
    }
  }
}

template <typename T>
void RunIndexAdd(const IndexAddArgs& args) {
  constexpr std::int64_t kGrain = 16384;
  const std::int64_t work = args.outer * args.count * args.inner;
  const std::int64_t indices = args.op == IndexOp::kGather ? work : args.count;
  ParallelFor(indices, kGrain, [&](std::int64_t begin, std::int64_t end) {
    CheckIndices(args.index, args.size, begin, end);
  });
  if (work == 0) return;
  if (args.outer > 1) {
    ParallelFor(args.outer, kGrain / (args.count * args.inner) + 1,
                [&](std::int64_t begin, std::int64_t end) {
                  Add<T>(args, begin, end, 0, args.inner);
                });
  } else {
    ParallelFor(args.inner, kGrain / args.count + 16,
                [&](std::int64_t begin, std::int64_t end) {
                  Add<T>(args, 0, 1, begin, end);
                });
  }
}

}  // namespace

std::uint64_t Enqueue(CpuStream& stream, const OpLabel& label,
                      const IndexAddArgs& args) {
  return stream.Enqueue(label, [args] {
    args.dtype == DType::kFloat64 ? RunIndexAdd<double>(args)
                                  : RunIndexAdd<float>(args);
  });
}

}  // namespace d2l::kernels::cpu
