#include "common/ops/primitive/primitive.h"

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/device/device_table.h"
#include "common/device/failure.h"
#include "common/device/listener.h"
#include "common/ops/no_grad.h"
#include "common/ops/primitive/fields.h"
#include "common/ops/primitive/record.h"
#include "common/ops/primitive/recording_tape.h"
#include "common/ops/primitive/reject.h"

namespace d2l {
namespace {

// Takes the whole record: spans that are passed on the stack and copied at once
// stall the processor.
void Tell(const internal::Listeners& listeners, const OpRecord& record) {
  listeners.ForEach([&](OpListener& listener) { listener.OnOp(record); });
}

// For operations that launch nothing.
void TellUnlaunched(const internal::Listeners& listeners,
                    const Primitive& primitive, Inputs inputs,
                    const Tensor& output, bool view, SourceLocation at,
                    std::int64_t host_begin) {
  if (!listeners.any()) return;
  Tell(listeners,
       {&primitive,
        /*number=*/0,
        /*stream=*/nullptr, inputs, output,
        /*in_place=*/false, view, at, internal::op_context.requested_by,
        host_begin, listeners.Now(),
        /*stamps=*/nullptr});
}

// Enqueues, and notes which streams read and wrote which memory. stream: that
// of the work, `current` or its copy stream. With several outputs, each is of
// as many of the inputs.
void Launch(const internal::Listeners& listeners, const Primitive& primitive,
            Stream& stream, Stream& current, Inputs inputs,
            absl::Span<const Tensor* const> outputs, bool in_place,
            SourceLocation at, std::int64_t host_begin) {
  const auto check_inputs = [&] {
    for (const Tensor* input : inputs) {
      CheckReadable(*input, current, primitive.name(), at);
    }
  };
  check_inputs();
  OpLabel label(primitive.name(), at, internal::op_context.requested_by);
  for (const Tensor* input : inputs) {
    label.AddInput({input->shape().data(), input->shape().size()});
  }
  if (listeners.any()) label.set_stamps(listeners.NewStamps(stream));
  const std::uint64_t number =
      primitive.Launch({stream, label, inputs, *outputs[0]});
  for (const Tensor* input : inputs) input->storage()->RecordStream(stream);
  for (const Tensor* output : outputs) output->storage()->RecordStream(stream);
  // The current stream waits for a copy beside it, and counts as its writer: a
  // read of the output throws the copy's failure, and that stream reports it.
  std::uint64_t written_by = number;
  if (&stream != &current) {
    const internal::PartOfRequest part;
    written_by = current.WaitForCopy(stream.Record(), at);
  }
  // Checked again: between the first check and the launch an input may have
  // failed, and another thread's Synchronize may have reported that.
  check_inputs();
  for (const Tensor* output : outputs) {
    output->storage()->MarkWritten(current, written_by);
  }
  for (const Tensor* input : primitive.WrittenInputs(inputs)) {
    input->storage()->MarkWritten(current, written_by);
  }
  // After MarkWritten: if this throws, the output is known to have failed.
  if (LaunchBlocking()) current.Finish(written_by, primitive.name(), at);
  if (!listeners.any()) return;
  const std::int64_t host_end = listeners.Now();
  const std::size_t each = inputs.size() / outputs.size();
  absl::InlinedVector<OpRecord, 1> records;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    records.push_back({&primitive, number, &stream,
                       inputs.subspan(i * each, each), *outputs[i], in_place,
                       /*view=*/false, label.requested_at(),
                       label.requested_by(), host_begin, host_end,
                       label.stamps()});
  }
  listeners.ForEach([&](OpListener& listener) { listener.OnOps(records); });
}

// The copy that a tape of this thread has made of an input, which is about to
// be overwritten; undefined if none needs its values.
Tensor CopyForTapes(const Primitive& primitive, Inputs inputs,
                    std::size_t input, SourceLocation at) {
  Tensor copy;
  ScopedListener<RecordingTape>::ForEach(
      internal::recording_tapes, ~0u, [&](RecordingTape& tape) {
        if (copy.defined()) return;
        copy = tape.CopyBeforeWrite(primitive, inputs, input, at);
      });
  return copy;
}

ValueSpec Infer(const Primitive& primitive, Inputs inputs, SourceLocation at) {
  return WithLine(at, [&] { return primitive.Infer(inputs); });
}

Stream& StreamOf(Device device, SourceLocation at) {
  return WithLine(at, [device]() -> Stream& { return CurrentStream(device); });
}

Tensor AllocateFor(const ValueSpec& spec, Stream& stream, SourceLocation at) {
  const std::size_t bytes = spec.shape.numel() * DTypeSize(spec.dtype);
  try {
    return Tensor(Memory(spec.device).Allocate(bytes, stream), spec.device,
                  spec.dtype, spec.shape);
  } catch (const OutOfMemoryError& error) {
    throw OutOfMemoryError(
        absl::StrCat(error.what(), " Requested at ", at.ToString(), "."));
  }
}

// The greatest common divisor of x's strides, in elements; 0 for one element.
std::int64_t Pitch(const Tensor& x) {
  std::int64_t pitch = 0;
  for (int i = 0; i < x.dim(); ++i) {
    if (x.size(i) > 1) pitch = std::gcd(pitch, x.strides()[i]);
  }
  return pitch;
}

// Whether writing to all of x overwrites all of its memory.
bool CoversItsMemory(const Tensor& x) {
  return x.is_contiguous() &&
         x.numel() * DTypeSize(x.dtype()) >= x.storage()->bytes();
}

void CheckTarget(const Primitive& primitive, const ValueSpec& spec,
                 Inputs inputs, const Tensor& target, SourceLocation at) {
  if (spec.shape != target.shape() || spec.dtype != target.dtype() ||
      spec.device != target.device()) {
    RejectAt(
        at,
        "[%s_] the result, %s of shape %s on %s, does not fit in place into %s",
        primitive.name(), spec.dtype, spec.shape, spec.device, target);
  }
  if (!target.is_contiguous()) {
    for (int i = 0; i < target.dim(); ++i) {
      if (target.strides()[i] == 0 && target.size(i) > 1) {
        RejectAt(
            at,
            "[%s_] the target, %s, repeats its elements in dimension %d, so "
            "several results would go to one place; write to a copy of it, "
            "Contiguous(x)",
            primitive.name(), target, i);
      }
    }
  }
  for (const Tensor* input : inputs) {
    if (OverlapOf(*input, target) == Overlap::kCertain) {
      RejectAt(at,
               "[%s_] the target, %s, overlaps an operand of shape %s without "
               "being the same: elements would be overwritten before they are "
               "read; copy the operand first, Clone(x)",
               primitive.name(), target, input->shape());
    }
  }
}

void CheckWrittenInputs(const Primitive& primitive, Inputs inputs,
                        SourceLocation at) {
  for (const Tensor* x : primitive.WrittenInputs(inputs)) {
    CheckTarget(primitive, {x->shape(), x->dtype(), x->device()}, inputs, *x,
                at);
  }
}

// All checks of an operation in place. Returns the stream that it is for.
Stream& CheckInPlace(const Primitive& primitive, Inputs inputs,
                     const Tensor& target, SourceLocation at) {
  CheckInputs(primitive.name(), inputs, at);
  CheckDefined(primitive.name(), target, at);
  const ValueSpec spec = Infer(primitive, inputs, at);
  CheckTarget(primitive, spec, inputs, target, at);
  CheckWrittenInputs(primitive, inputs, at);
  Stream& stream = CurrentStream(spec.device);
  // Memory has one last writer. If that failed, writing to a part must not
  // make the rest look computed.
  if (!CoversItsMemory(target)) {
    CheckReadable(target, stream, primitive.name(), at);
  }
  return stream;
}

}  // namespace

void CheckDefined(const char* operation, const Tensor& x, SourceLocation at) {
  if (x.defined()) return;
  RejectAt(at,
           "[%s] an operand is an undefined tensor (a Tensor that was declared "
           "and never assigned)",
           operation);
}

void CheckInputs(const char* operation, Inputs inputs, SourceLocation at) {
  const Tensor* first = nullptr;
  for (const Tensor* input : inputs) {
    CheckDefined(operation, *input, at);
    if (first == nullptr) first = input;
    if (input->device() != first->device()) {
      RejectAt(
          at,
          "[%s] operands on two devices, %s and %s; copy one to the other's "
          "device first",
          operation, first->device(), input->device());
    }
  }
}

void CheckInputCount(const char* operation, Inputs inputs, std::size_t count) {
  if (inputs.size() == count) return;
  Reject("[%s] %d inputs wanted; got %d", operation, count, inputs.size());
}

void CheckContiguous(const char* operation, const Tensor& x) {
  if (x.is_contiguous()) return;
  Reject(
      "[%s] a contiguous input wanted; got %s with strides %s; copy it first: "
      "Contiguous(x)",
      operation, x, x.strides());
}

void CheckFloatingPoint(const char* operation, const Tensor& x) {
  if (IsFloatingPoint(x.dtype())) return;
  Reject(
      "[%s] float32 or float64 wanted; got %s; convert it: To(x, "
      "DType::kFloat32)",
      operation, x);
}

std::vector<Attribute> Primitive::attributes() const {
  std::vector<Attribute> attributes;
  Fields writer(name(), &attributes);
  Clone()->Visit(writer);
  return attributes;
}

ValueSpec ViewPrimitive::Infer(Inputs inputs) const {
  CheckInputCount(name(), inputs, 1);
  return {View(*inputs[0]).shape, inputs[0]->dtype(), inputs[0]->device()};
}

std::uint64_t ViewPrimitive::Launch(const LaunchContext&) const {
  throw std::logic_error(
      absl::StrFormat("[%s] a view launches nothing: use ApplyView", name()));
}

Tensor Apply(const Primitive& primitive, Inputs inputs, SourceLocation at) {
  const internal::Listeners listeners;
  const std::int64_t host_begin = listeners.Now();
  CheckInputs(primitive.name(), inputs, at);
  const ValueSpec spec = Infer(primitive, inputs, at);
  CheckWrittenInputs(primitive, inputs, at);
  Stream& current = StreamOf(spec.device, at);
  const bool from_another =
      !inputs.empty() && inputs[0]->device() != spec.device;
  Stream& stream = from_another ? CopyStream(current) : current;
  Tensor output = AllocateFor(spec, stream, at);
  Launch(listeners, primitive, stream, current, inputs, {&output},
         /*in_place=*/false, at, host_begin);
  return output;
}

void ApplyInPlace(const Primitive& primitive, Inputs inputs,
                  const Tensor& target, SourceLocation at) {
  const internal::Listeners listeners;
  const std::int64_t host_begin = listeners.Now();
  Stream& stream = CheckInPlace(primitive, inputs, target, at);
  absl::InlinedVector<const Tensor*, 2> operands(inputs.begin(), inputs.end());
  absl::InlinedVector<Tensor, 2> copies;
  copies.reserve(inputs.size());  // the operands point into it
  for (std::size_t i = 0;
       i < inputs.size() && internal::recording_tapes != nullptr; ++i) {
    if (!IsSameView(*inputs[i], target)) continue;
    Tensor copy = CopyForTapes(primitive, inputs, i, at);
    if (!copy.defined()) continue;
    operands[i] = &copies.emplace_back(std::move(copy));
  }
  Launch(listeners, primitive, stream, stream, operands, {&target},
         /*in_place=*/true, at, host_begin);
}

void ApplyEachInPlace(const Primitive& primitive, Inputs inputs,
                      std::size_t count, SourceLocation at) {
  const internal::Listeners listeners;
  const std::int64_t host_begin = listeners.Now();
  const std::size_t each = inputs.size() / count;
  // Copies that a tape makes are of single operations.
  const bool taped =
      internal::recording_tapes != nullptr && internal::no_grad_guards == 0;
  Stream* stream = nullptr;
  absl::InlinedVector<const Tensor*, 2> targets;
  for (std::size_t i = 0; i < inputs.size(); i += each) {
    const Inputs own = inputs.subspan(i, each);
    if (taped) {
      ApplyInPlace(primitive, own, *own[0], at);
    } else {
      stream = &CheckInPlace(primitive, own, *own[0], at);
      targets.push_back(own[0]);
    }
  }
  if (stream == nullptr) return;
  Launch(listeners, primitive, *stream, *stream, inputs, targets,
         /*in_place=*/true, at, host_begin);
}

Tensor ApplyView(const ViewPrimitive& primitive, const Tensor& x,
                 SourceLocation at) {
  const internal::Listeners listeners;
  const std::int64_t host_begin = listeners.Now();
  CheckDefined(primitive.name(), x, at);
  const ViewPrimitive::Spec spec =
      WithLine(at, [&] { return primitive.View(x); });
  Tensor view = Tensor::View(x, spec.offset, spec.shape, spec.strides);
  TellUnlaunched(listeners, primitive, {&x}, view, /*view=*/true, at,
                 host_begin);
  return view;
}

Tensor ApplyEmpty(const Primitive& primitive, SourceLocation at) {
  const internal::Listeners listeners;
  const std::int64_t host_begin = listeners.Now();
  if (primitive.effect() != Effect::kUninitialized) {
    throw std::logic_error(absl::StrFormat(
        "[%s] computes its output: use Apply", primitive.name()));
  }
  const ValueSpec spec = Infer(primitive, {}, at);
  Tensor output = AllocateFor(spec, StreamOf(spec.device, at), at);
  TellUnlaunched(listeners, primitive, {}, output, /*view=*/false, at,
                 host_begin);
  return output;
}

namespace internal {

void RethrowWithLine(const std::invalid_argument& error, SourceLocation at) {
  RejectAt(at, "%s", error.what());
}

}  // namespace internal

bool IsSameView(const Tensor& a, const Tensor& b) {
  return a.storage().get() == b.storage().get() && a.offset() == b.offset() &&
         a.shape() == b.shape() && a.strides() == b.strides();
}

Overlap OverlapOf(const Tensor& a, const Tensor& b) {
  if (a.storage().get() != b.storage().get()) return Overlap::kNone;
  if (a.numel() == 0 || b.numel() == 0) return Overlap::kNone;
  if (IsSameView(a, b)) return Overlap::kNone;
  // Views of one memory have one dtype, so elements can be counted.
  if (a.offset() + a.span() <= b.offset() ||
      b.offset() + b.span() <= a.offset()) {
    return Overlap::kNone;
  }
  if (a.is_contiguous() && b.is_contiguous()) return Overlap::kCertain;
  // Columns of one matrix, for example, never meet.
  const std::int64_t pitch = std::gcd(Pitch(a), Pitch(b));
  if (pitch > 1 && (a.offset() - b.offset()) % pitch != 0) {
    return Overlap::kNone;
  }
  return Overlap::kPossible;
}

}  // namespace d2l
