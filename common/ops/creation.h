// Tensors from nothing: filled, or random.
//
//   Tensor x = Ones({2, 3}, device);
//   Tensor a = Randn({1000, 1000}, device);
//
// All are asynchronous: they return when the work is enqueued on the device's
// current stream. They throw std::invalid_argument for sizes that are
// negative or overflow, or a device that is not in the table, and
// OutOfMemoryError.

#ifndef D2L_COMMON_OPS_CREATION_H_
#define D2L_COMMON_OPS_CREATION_H_

#include <cstdint>

#include "common/base/source_location.h"
#include "common/device/device.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"
#include "common/tensor/tensor.h"

namespace d2l {

// All elements 1 (torch.ones).
Tensor Ones(const Shape& shape, Device device = Device(),
            DType dtype = DType::kFloat32,
            SourceLocation at = SourceLocation::Current());

// Standard normal numbers (torch.randn), float32 or float64. The numbers
// depend on the device's seed and on how many it has drawn since, and on
// nothing else: not on the device, not on the number of threads.
Tensor Randn(const Shape& shape, Device device = Device(),
             DType dtype = DType::kFloat32,
             SourceLocation at = SourceLocation::Current());

// Sets the seed of every device, and starts their sequences anew
// (torch.manual_seed). Not while another thread draws numbers.
void ManualSeed(std::uint64_t seed);

}  // namespace d2l

#endif  // D2L_COMMON_OPS_CREATION_H_
