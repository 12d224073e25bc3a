#include "common/ops/copy.h"

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "common/device/device_table.h"
#include "common/device/listener.h"
#include "common/ops/primitive/launch.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/primitives.h"
#include "common/ops/primitive/reject.h"
#include "common/ops/read.h"

namespace d2l {
namespace {

std::uint64_t CopyOn(Stream& stream, const OpLabel& label, const Tensor& x,
                     const Tensor& output) {
  const LaunchLayout layout(output, {&x});
  return Enqueue(stream, label,
                 kernels::CopyArgs{output.dtype(), x.dtype(), output.numel(),
                                   output.data(), x.data(), layout.get()});
}

// Whether a copy to `output`, made by its device, can read x, which is on
// another device.
bool CanReach(const Tensor& output, const Tensor& x) {
  if (x.device().type() != output.device().type()) return false;
  if (x.device().type() == DeviceType::kCpu) return true;
  if (GetDeviceInfo(x.device()).physical_index ==
      GetDeviceInfo(output.device()).physical_index) {
    return true;
  }
  // One GPU's kernels can use another's memory on some machines only; a plain
  // copy of bytes is possible on all.
  return x.dtype() == output.dtype() && x.shape() == output.shape() &&
         x.is_contiguous() && output.is_contiguous();
}

// Copies through pinned host memory, which both devices can use: the source's
// device writes x there, converted and without gaps, and the output's reads it.
// Overwriting x needs no further wait: the stream that reads x also orders its
// later writes.
std::uint64_t CopyByWay(Stream& from, const LaunchContext& ctx) {
  const auto& [stream, label, inputs, output] = ctx;
  const Tensor& x = *inputs[0];
  const Device gpu =
      x.device().type() == DeviceType::kCuda ? x.device() : output.device();
  const Tensor staging(
      PinnedMemory(gpu).AllocatePinned(x.numel() * DTypeSize(output.dtype())),
      gpu, output.dtype(), x.shape());
  CopyOn(from,
         OpLabel(label.name(), label.requested_at(), label.requested_by()), x,
         staging);
  x.storage()->RecordStream(from);
  staging.storage()->RecordStream(from);
  // A GPU cannot wait for a CPU stream; then the caller does, here.
  stream.Wait(from.Record(), label.requested_at());
  const std::uint64_t number = CopyOn(stream, label, staging, output);
  staging.storage()->RecordStream(stream);
  return number;
}

}  // namespace

ValueSpec CopyPrimitive::Infer(Inputs inputs) const {
  CheckInputCount(name(), inputs, 1);
  const Tensor& x = *inputs[0];
  if (x.shape() != spec.shape &&
      BroadcastShapes(name(), x.shape(), spec.shape) != spec.shape) {
    Reject("[%s] shape %s does not broadcast to the target's %s", name(),
           x.shape(), spec.shape);
  }
  CheckedNumel(name(), spec.shape, DTypeSize(spec.dtype));
  return spec;
}

std::uint64_t CopyPrimitive::Launch(const LaunchContext& ctx) const {
  const Tensor& x = *ctx.inputs[0];
  if (x.device() == ctx.output.device()) {
    return CopyOn(ctx.stream, ctx.label, x, ctx.output);
  }
  Stream& from = CurrentStream(x.device());
  const internal::PartOfRequest part;
  if (!CanReach(ctx.output, x)) return CopyByWay(from, ctx);
  // The copy runs after the source stream's earlier work and before its later
  // work, which may overwrite the source. To fresh memory it runs on a copy
  // stream (Apply), so the source does not wait for the receiver's other work.
  ctx.stream.Wait(from.Record(), ctx.label.requested_at());
  ctx.stream.Transfer({x.device().index()}, ctx.output.device().index(),
                      x.numel() * DTypeSize(x.dtype()));
  const std::uint64_t number = CopyOn(ctx.stream, ctx.label, x, ctx.output);
  from.WaitForCopy(ctx.stream.Record(), ctx.label.requested_at());
  return number;
}

namespace {

ValueSpec SpecOf(const Tensor& x) { return {x.shape(), x.dtype(), x.device()}; }

bool MustWait(const Tensor& from, const Tensor& to, bool non_blocking) {
  return !non_blocking && from.device().type() != to.device().type();
}

}  // namespace

Tensor To(const Tensor& x, Device device, DType dtype, bool non_blocking,
          SourceLocation at) {
  CheckDefined("to", x, at);
  if (x.device() == device && x.dtype() == dtype) return x;
  Tensor result =
      Apply(CopyPrimitive("to", {x.shape(), dtype, device}), {&x}, at);
  if (MustWait(x, result, non_blocking)) WaitToRead(result, at);
  return result;
}

Tensor To(const Tensor& x, Device device, bool non_blocking,
          SourceLocation at) {
  CheckDefined("to", x, at);
  return To(x, device, x.dtype(), non_blocking, at);
}

Tensor To(const Tensor& x, DType dtype, SourceLocation at) {
  CheckDefined("to", x, at);
  return To(x, x.device(), dtype, /*non_blocking=*/false, at);
}

Tensor Clone(const Tensor& x, SourceLocation at) {
  CheckDefined("clone", x, at);
  return Apply(CopyPrimitive("clone", SpecOf(x)), {&x}, at);
}

Tensor Contiguous(const Tensor& x, SourceLocation at) {
  CheckDefined("contiguous", x, at);
  if (x.is_contiguous()) return x;
  return Apply(CopyPrimitive("contiguous", SpecOf(x)), {&x}, at);
}

Tensor ApplyContiguous(const Primitive& primitive,
                       absl::Span<const Tensor* const> inputs,
                       SourceLocation at) {
  absl::InlinedVector<const Tensor*, 4> operands(inputs.begin(), inputs.end());
  absl::InlinedVector<Tensor, 4> copies;
  copies.reserve(inputs.size());  // the operands point into it
  for (const Tensor* x : inputs) CheckDefined(primitive.name(), *x, at);
  for (const Tensor*& x : operands) {
    if (x->is_contiguous()) continue;
    copies.push_back(Contiguous(*x, at));
    x = &copies.back();
  }
  return Apply(primitive, operands, at);
}

void CopyTo(const Tensor& source, const Tensor& target, bool non_blocking,
            SourceLocation at) {
  CheckDefined("copy", source, at);
  CheckDefined("copy", target, at);
  // Another view of the same elements is written, since a tape records that.
  if (source.id() == target.id()) return;
  if (OverlapOf(source, target) == Overlap::kPossible) {
    return CopyTo(Clone(source, at), target, non_blocking, at);
  }
  const CopyPrimitive primitive("copy", SpecOf(target), /*in_place=*/true);
  ApplyInPlace(primitive, {&source}, target, at);
  if (MustWait(source, target, non_blocking)) WaitToRead(target, at);
}

}  // namespace d2l
