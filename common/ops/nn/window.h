// How a window slides over images, for convolution and pooling.
//
//   const kernels::Window2d window = MakeWindow("avg_pool2d", x.shape(), 2, 2,
//                                               Size2d(0, 1));
//   window.out_height;  // (height - 2) / 2 + 1
//
// Pure functions. For this package; users need Size2d only.

#ifndef D2L_COMMON_OPS_NN_WINDOW_H_
#define D2L_COMMON_OPS_NN_WINDOW_H_

#include <cstdint>

#include "common/kernels/kernels.h"
#include "common/ops/primitive/fields.h"
#include "common/tensor/shape.h"

namespace d2l {

// Of a kernel, a stride or a padding: one number for both directions, or two.
struct Size2d {
  Size2d(std::int64_t both)  // NOLINT(google-explicit-constructor)
      : height(both), width(both) {}
  Size2d(std::int64_t height, std::int64_t width)
      : height(height), width(width) {}

  std::int64_t height;
  std::int64_t width;
};

inline Shape ToShape(Size2d size) { return {size.height, size.width}; }
// As text it is a shape: "(2, 3)".
void VisitSize(Fields& field, const char* name, Size2d& size);

// Of images whose last two dimensions are height and width. Throws
// std::invalid_argument, naming the operation, if the window is empty or larger
// than the padded image.
kernels::Window2d MakeWindow(const char* operation, const Shape& images,
                             Size2d kernel, Size2d stride, Size2d padding);

}  // namespace d2l

#endif  // D2L_COMMON_OPS_NN_WINDOW_H_
