// Helpers of the primitives' kernel launches. For this package.
//
//   const LaunchLayout layout(ctx.output, {&a, &b});
//   return Enqueue(ctx, kernels::WhereArgs{…, layout.get()});

#ifndef D2L_COMMON_OPS_PRIMITIVE_LAUNCH_H_
#define D2L_COMMON_OPS_PRIMITIVE_LAUNCH_H_

#include <cstdint>
#include <initializer_list>
#include <optional>

#include "common/kernels/enqueue.h"
#include "common/kernels/layout.h"
#include "common/ops/primitive/primitive.h"
#include "common/tensor/shape.h"
#include "common/tensor/tensor.h"

namespace d2l {

// The strides with which a tensor of these sizes and strides is seen as one of
// shape `out`, to which it broadcasts.
Shape BroadcastStrides(const Shape& sizes, const Shape& strides,
                       const Shape& out);

// A shape as (outer, size, inner) around one dimension.
struct Split3 {
  std::int64_t outer = 1, size = 1, inner = 1;
};
Split3 SplitAround(const Shape& shape, int dim);

// Enqueues the kernel of these arguments under the operation's label.
template <typename Args>
std::uint64_t Enqueue(const LaunchContext& ctx, const Args& args) {
  return Enqueue(ctx.stream, ctx.label, args);
}

// For kernels that add to their output: copies the first input, which is
// contiguous, to the output unless both are the same memory.
void CopyUnlessSame(const LaunchContext& ctx);

// How the operands of an element-wise operation lie in memory.
class LaunchLayout {
 public:
  // The inputs broadcast to the output's shape; null stands for a scalar.
  LaunchLayout(const Tensor& output,
               std::initializer_list<const Tensor*> inputs) {
    if (output.numel() == 0) return;
    bool plain = output.is_contiguous();
    for (const Tensor* input : inputs) {
      plain = plain && (input == nullptr || (input->is_contiguous() &&
                                             input->shape() == output.shape()));
    }
    if (!plain) Make(output, inputs);
  }

  // Null if all are contiguous.
  const kernels::StridedLayout* get() const {
    return layout_.has_value() ? &*layout_ : nullptr;
  }

 private:
  void Make(const Tensor& output, std::initializer_list<const Tensor*> inputs);

  std::optional<kernels::StridedLayout> layout_;
};

}  // namespace d2l

#endif  // D2L_COMMON_OPS_PRIMITIVE_LAUNCH_H_
