#include <cstdint>
#include <limits>

#include "common/ops/nn/primitives.h"
#include "common/ops/primitive/reject.h"

namespace d2l {
namespace {

// The output's size in one direction; 0 if the window does not fit.
std::int64_t OutSize(std::int64_t size, std::int64_t kernel,
                     std::int64_t stride, std::int64_t padding) {
  const std::int64_t room = size + 2 * padding - kernel;
  return size == 0 || room < 0 ? 0 : room / stride + 1;
}

}  // namespace

void VisitSize(Fields& field, const char* name, Size2d& size) {
  Shape shape = ToShape(size);
  field(name, shape);
  if (shape.rank() != 2) {
    Reject("[%s] two sizes, (height, width), wanted; got %s", field.operation(),
           shape);
  }
  size = {shape[0], shape[1]};
}

kernels::Window2d MakeWindow(const char* operation, const Shape& images,
                             Size2d kernel, Size2d stride, Size2d padding) {
  // Kernels count positions with 32 bits.
  constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max() / 4;
  const std::int64_t height = images[images.rank() - 2];
  const std::int64_t width = images[images.rank() - 1];
  for (const Size2d size : {kernel, stride}) {
    if (size.height >= 1 && size.width >= 1) continue;
    Reject(
        "[%s] a kernel and a stride of at least 1 wanted; got kernel %s, "
        "stride %s",
        operation, ToShape(kernel), ToShape(stride));
  }
  for (const Size2d size : {kernel, stride, padding, Size2d(height, width)}) {
    if (size.height >= 0 && size.height <= kMax && size.width >= 0 &&
        size.width <= kMax) {
      continue;
    }
    Reject("[%s] sizes from 0 to %d wanted; got %s", operation, kMax,
           ToShape(size));
  }
  // Kernels keep parts of such an image.
  constexpr std::int64_t kMaxPadded = std::int64_t{1} << 28;
  const std::int64_t rows = height + 2 * padding.height;
  const std::int64_t columns = width + 2 * padding.width;
  if (columns > 0 && rows > kMaxPadded / columns) {
    Reject(
        "[%s] a padded image of at most %d elements wanted; got images of %s "
        "with padding %s",
        operation, kMaxPadded, Shape({height, width}), ToShape(padding));
  }
  const kernels::Window2d window = {
      height,
      width,
      OutSize(height, kernel.height, stride.height, padding.height),
      OutSize(width, kernel.width, stride.width, padding.width),
      kernel.height,
      kernel.width,
      stride.height,
      stride.width,
      padding.height,
      padding.width};
  if (window.out_height < 1 || window.out_width < 1) {
    Reject(
        "[%s] a kernel of %s does not fit into images of %s with padding %s; "
        "take a smaller kernel, or more padding",
        operation, ToShape(kernel), Shape({height, width}), ToShape(padding));
  }
  return window;
}

}  // namespace d2l
