// Copies: within a device, to another one, to another dtype.
//
//   Tensor there = To(x, Device::Parse("cpu:1"));
//   Tensor floats = To(labels, DType::kFloat32);
//   CopyTo(y, Select(batch, 0, 3));  // into part of a tensor
//
// Asynchronous, on the current stream of the target's device. Between devices
// the copy runs after the earlier work of the source's current stream and
// before its later work. A failure of the earlier work reaches the copy
// (stream.h). CopyTo, which writes memory that is there, also runs after the
// target stream's earlier work. To makes a new tensor, and runs on that
// stream's copy stream: beside its work, as soon as the source is computed and
// the events are reached that the stream has been told to wait for.
//
// Between devices of one kind no copy makes the caller wait. Between a GPU and
// a CPU device, whose memory is not pinned, bytes go through pinned memory:
// both devices' streams do a part of the work, and the caller waits until all
// of it is done, unless non_blocking. From a CPU device to a GPU the caller
// always waits for the CPU device's part and its earlier work: a GPU cannot
// wait for a CPU stream.

#ifndef D2L_COMMON_OPS_COPY_H_
#define D2L_COMMON_OPS_COPY_H_

#include "absl/types/span.h"
#include "common/base/source_location.h"
#include "common/device/device.h"
#include "common/tensor/dtype.h"
#include "common/tensor/tensor.h"

namespace d2l {

class Primitive;

// x itself if it has this device and dtype already (torch.Tensor.to).
// Floating-point numbers become integers by dropping the fraction; beyond the
// integers' range they become the nearest, and NaN becomes 0. Integers beyond
// the range of uint8 wrap around: 300 becomes 44.
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
// of `target`, on whatever devices the two are. Throws std::invalid_argument if
// the shapes do not broadcast, or if the two are known to overlap in memory.
void CopyTo(const Tensor& source, const Tensor& target,
            bool non_blocking = false,
            SourceLocation at = SourceLocation::Current());

// For operations whose kernels take contiguous inputs only: calls Apply with
// Contiguous of each input.
Tensor ApplyContiguous(const Primitive& primitive,
                       absl::Span<const Tensor* const> inputs,
                       SourceLocation at);

}  // namespace d2l

#endif  // D2L_COMMON_OPS_COPY_H_
