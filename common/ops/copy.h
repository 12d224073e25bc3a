// Copies: within a device, to another one, to another dtype.
//
//   Tensor there = To(x, Device::Parse("cpu:1").value());
//   Tensor floats = To(labels, DType::kFloat32);
//   CopyTo(y, Select(batch, 0, 3));  // into part of a tensor
//
// Asynchronous, on the current stream of the device that is copied to. Between
// devices that stream waits for what the source's current stream has been asked
// so far, and the source's waits for the copy: nobody else need. So a failure
// on one of the two devices reaches the other (stream.h).
//
// Between devices of one kind no copy makes the caller wait. Between a GPU and
// a CPU device, which is host memory that is not pinned, it does, unless
// non_blocking.

#ifndef D2L_COMMON_OPS_COPY_H_
#define D2L_COMMON_OPS_COPY_H_

#include "common/base/source_location.h"
#include "common/device/device.h"
#include "common/tensor/dtype.h"
#include "common/tensor/tensor.h"

namespace d2l {

// x itself if it is there already, and of that dtype (torch.Tensor.to).
// Floating-point numbers become integers by dropping the fraction; beyond the
// integers' range they become the nearest, and NaN becomes 0.
Tensor To(const Tensor& x, Device device, bool non_blocking = false,
          SourceLocation at = SourceLocation::Current());
Tensor To(const Tensor& x, DType dtype,
          SourceLocation at = SourceLocation::Current());
Tensor To(const Tensor& x, Device device, DType dtype,
          bool non_blocking = false,
          SourceLocation at = SourceLocation::Current());

// A contiguous copy (torch.clone).
Tensor Clone(const Tensor& x, SourceLocation at = SourceLocation::Current());
// x itself if it is contiguous, else a copy that is.
Tensor Contiguous(const Tensor& x,
                  SourceLocation at = SourceLocation::Current());

// target.copy_(source): writes source, broadcast and converted, to the memory
// of `target`, on whatever devices the two are. Throws std::invalid_argument
// if the shapes do not broadcast, or if the two surely overlap in memory.
void CopyTo(const Tensor& source, const Tensor& target,
            bool non_blocking = false,
            SourceLocation at = SourceLocation::Current());

}  // namespace d2l

#endif  // D2L_COMMON_OPS_COPY_H_
