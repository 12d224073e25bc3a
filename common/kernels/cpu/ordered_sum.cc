#include "common/kernels/cpu/ordered_sum.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "common/device/cpu/parallel_for.h"
#include "common/kernels/cpu/elementwise_loops.h"

namespace d2l::kernels::cpu {
namespace {

// The part that is worth another core, in elements.
constexpr std::int64_t kGrain = 1 << 15;
// The block that is added up before it is stored. Of four arrays of 64 MiB,
// blocks of 2 KiB take as long as one loop over all of them, and blocks of 8
// KiB or more take 1.5 to 4 times as long.
constexpr std::int64_t kBlockBytes = 1 << 11;

}  // namespace

void OrderedSum(const OrderedSumArgs& args) {
  const LoopFn add =
      BinaryLoop(BinaryOp::kAdd, args.dtype, Operands::kVectorVector);
  const auto size = static_cast<std::int64_t>(DTypeSize(args.dtype));
  const std::size_t count = args.inputs.size();
  ParallelFor(args.numel, kGrain, [&](std::int64_t begin, std::int64_t end) {
    alignas(64) char buffer[kBlockBytes];
    const std::int64_t block = kBlockBytes / size;
    for (std::int64_t i = begin; i < end; i += block) {
      const std::int64_t n = std::min(block, end - i);
      const auto at = [&](std::size_t k) {
        return static_cast<const char*>(args.inputs[k]) + i * size;
      };
      const void* sum = at(0);
      for (std::size_t k = 1; k < count; ++k) {
        void* const to =
            k + 1 < count ? buffer : static_cast<char*>(args.out) + i * size;
        add(to, sum, at(k), nullptr, n);
        sum = to;
      }
    }
  });
}

std::uint64_t EnqueueOrderedSum(CpuStream& stream, const OpLabel& label,
                                OrderedSumArgs args) {
  return stream.Enqueue(label, [args = std::move(args)] { OrderedSum(args); });
}

}  // namespace d2l::kernels::cpu
