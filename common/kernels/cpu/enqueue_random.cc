#include <cstdint>

#include "common/device/cpu/cpu_stream.h"
#include "common/device/cpu/parallel_for.h"
#include "common/kernels/cpu/random.h"
#include "common/kernels/enqueue.h"
#include "common/tensor/dtype.h"

namespace d2l::kernels::cpu {
namespace {

// What is worth a thread of its own; whole blocks, of which none is made
// twice.
constexpr std::int64_t kGrain = 16 << 10;

// What a task needs of RandomArgs.
template <typename T>
struct Draw {
  T* out;
  std::int64_t n;
  RandomState state;
};

template <typename T>
Draw<T> DrawOf(const RandomArgs& args) {
  return {static_cast<T*>(args.out), args.numel, args.state};
}

template <typename T>
using FillFunction = void (*)(T*, std::int64_t, std::int64_t, std::uint64_t,
                              std::uint64_t);

template <typename T, FillFunction<T> kFill>
std::uint64_t EnqueueNumbers(CpuStream& stream, const OpLabel& label,
                             const RandomArgs& args) {
  return stream.Enqueue(label, [draw = DrawOf<T>(args)] {
    ParallelFor(draw.n, kGrain, [&](std::int64_t begin, std::int64_t end) {
      kFill(draw.out, begin, end, draw.state.seed, draw.state.offset);
    });
  });
}

template <typename T>
std::uint64_t EnqueueInteger(CpuStream& stream, const OpLabel& label,
                             const RandomArgs& args) {
  return stream.Enqueue(
      label, [draw = DrawOf<T>(args), low = args.low, range = args.range] {
        ParallelFor(draw.n, kGrain, [&](std::int64_t begin, std::int64_t end) {
          IntegerFill(draw.out, begin, end, low, range, draw.state.seed,
                      draw.state.offset);
        });
      });
}

}  // namespace

std::uint64_t Enqueue(CpuStream& stream, const OpLabel& label,
                      const RandomArgs& args) {
  if (!OpTakes(args.op, args.dtype)) ThrowNoLoop(OpName(args.op), args.dtype);
  const bool is_double = args.dtype == DType::kFloat64;
  switch (args.op) {
    case RandomOp::kUniform:
      return is_double
                 ? EnqueueNumbers<double, UniformFill>(stream, label, args)
                 : EnqueueNumbers<float, UniformFill>(stream, label, args);
    case RandomOp::kNormal:
      return is_double ? EnqueueNumbers<double, NormalFill>(stream, label, args)
                       : EnqueueNumbers<float, NormalFill>(stream, label, args);
    case RandomOp::kInteger:
      break;
  }
  return VisitDType(args.dtype, [&](auto zero) {
    return EnqueueInteger<decltype(zero)>(stream, label, args);
  });
}

}  // namespace d2l::kernels::cpu
