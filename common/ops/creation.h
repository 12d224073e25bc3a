// Creates tensors: filled, ranges, random, or from the host's numbers.
//
//   Tensor x = Ones({2, 3}, device);
//   Tensor a = Randn({1000, 1000}, device);
//   Tensor labels = FromVector<std::int64_t>({3, 1, 2}, {3}, device);
//
// All are asynchronous: they return when the work is enqueued on the device's
// current stream. Names are PyTorch's. They throw std::invalid_argument for
// sizes that are negative or overflow, a value that the dtype does not have, or
// a device that is not in the table, and OutOfMemoryError.
//
// Random numbers depend only on the device's seed and on how many it has drawn
// since, not on the kind of device or the number of threads. With one seed
// every device draws the same sequence.
//
//   const GeneratorState before = GetGeneratorState(device);
//   Tensor x = Rand({3}, device);
//   SetGeneratorState(before, device);
//   Tensor same = Rand({3}, device);  // the numbers of x

#ifndef D2L_COMMON_OPS_CREATION_H_
#define D2L_COMMON_OPS_CREATION_H_

#include <cstdint>
#include <vector>

#include "common/base/source_location.h"
#include "common/device/device.h"
#include "common/tensor/dtype.h"
#include "common/tensor/scalar.h"
#include "common/tensor/shape.h"
#include "common/tensor/tensor.h"

namespace d2l {

// Uninitialized: write before you read.
Tensor Empty(const Shape& shape, Device device = Device(),
             DType dtype = DType::kFloat32,
             SourceLocation at = SourceLocation::Current());
Tensor Zeros(const Shape& shape, Device device = Device(),
             DType dtype = DType::kFloat32,
             SourceLocation at = SourceLocation::Current());
Tensor Ones(const Shape& shape, Device device = Device(),
            DType dtype = DType::kFloat32,
            SourceLocation at = SourceLocation::Current());
Tensor Full(const Shape& shape, Scalar value, Device device = Device(),
            DType dtype = DType::kFloat32,
            SourceLocation at = SourceLocation::Current());

// start, start + step, ... up to, not including, end. step is not 0 and leads
// towards end. (Unlike PyTorch's, the dtype does not follow the scalars.)
Tensor Arange(Scalar start, Scalar end, Scalar step, Device device = Device(),
              DType dtype = DType::kFloat32,
              SourceLocation at = SourceLocation::Current());
// 0, 1, ... n - 1 for an integer n.
Tensor Arange(Scalar end, Device device = Device(),
              DType dtype = DType::kFloat32,
              SourceLocation at = SourceLocation::Current());

// 1 on the diagonal of a matrix (n, n) or (n, m), else 0.
Tensor Eye(std::int64_t n, Device device = Device(),
           DType dtype = DType::kFloat32,
           SourceLocation at = SourceLocation::Current());
Tensor Eye(std::int64_t n, std::int64_t m, Device device = Device(),
           DType dtype = DType::kFloat32,
           SourceLocation at = SourceLocation::Current());

// The host's numbers, row by row; T, float, double, int64 or uint8, is the
// dtype. They are copied before this returns, without a wait for the device.
// Throws std::invalid_argument if there are more or fewer than the shape has.
template <typename T>
Tensor FromVector(const std::vector<T>& values, const Shape& shape,
                  Device device = Device(),
                  SourceLocation at = SourceLocation::Current());

// Uniform numbers in [0, 1); float32 or float64.
Tensor Rand(const Shape& shape, Device device = Device(),
            DType dtype = DType::kFloat32,
            SourceLocation at = SourceLocation::Current());
// Standard normal numbers; float32 or float64.
Tensor Randn(const Shape& shape, Device device = Device(),
             DType dtype = DType::kFloat32,
             SourceLocation at = SourceLocation::Current());
// Integers from low to high - 1, of any dtype that has all of them: float32 has
// those up to 2^24, float64 up to 2^53.
Tensor RandInt(std::int64_t low, std::int64_t high, const Shape& shape,
               Device device = Device(), DType dtype = DType::kInt64,
               SourceLocation at = SourceLocation::Current());

// With the shape, the dtype and the device of x.
Tensor EmptyLike(const Tensor& x,
                 SourceLocation at = SourceLocation::Current());
Tensor ZerosLike(const Tensor& x,
                 SourceLocation at = SourceLocation::Current());
Tensor OnesLike(const Tensor& x, SourceLocation at = SourceLocation::Current());
Tensor FullLike(const Tensor& x, Scalar value,
                SourceLocation at = SourceLocation::Current());
Tensor RandLike(const Tensor& x, SourceLocation at = SourceLocation::Current());
Tensor RandnLike(const Tensor& x,
                 SourceLocation at = SourceLocation::Current());

// Sets the seed of every device, or of one, and starts its sequence anew
// (torch.manual_seed, torch.cuda.manual_seed). Do not call it while another
// thread draws numbers there.
void ManualSeed(std::uint64_t seed);
void ManualSeed(std::uint64_t seed, Device device);

// The state of a device's generator (torch.get_rng_state). Both functions throw
// std::invalid_argument if the device is not in the table. Do not call them
// while another thread draws numbers there.
struct GeneratorState {
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;  // grows with the numbers drawn
};
GeneratorState GetGeneratorState(Device device);
void SetGeneratorState(const GeneratorState& state, Device device);

// Random numbers that must differ between devices, as in dropout, also depend
// on the device's index. If each of several processes has some of the devices,
// `first` is how many come before this process's: device i then draws what
// device first + i of a single process would.
void SetFirstDeviceIndex(int first);

}  // namespace d2l

#endif  // D2L_COMMON_OPS_CREATION_H_
