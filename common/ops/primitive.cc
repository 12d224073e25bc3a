#include "common/ops/primitive.h"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_format.h"
#include "common/base/timer.h"
#include "common/device/device_table.h"
#include "common/ops/record.h"

namespace d2l {
namespace {

void Tell(const internal::Listeners& listeners, const Primitive& primitive,
          std::uint64_t number, const Stream& stream, Inputs inputs,
          const Tensor& output, bool in_place, const OpLabel& label,
          std::int64_t host_begin) {
  absl::InlinedVector<ValueRecord, 4> values;
  for (const Tensor* input : inputs) {
    values.push_back(internal::ToRecord(*input));
  }
  const OpRecord record{&primitive,
                        number,
                        &stream,
                        values,
                        internal::ToRecord(output),
                        in_place,
                        label.requested_at(),
                        label.requested_by(),
                        host_begin,
                        NowNanos(),
                        label.stamps()};
  listeners.ForEach([&](OpListener& listener) { listener.OnOp(record); });
}

// Garbage never looks like a result: what a failed operation should have
// written cannot be computed with.
void CheckReadable(const Primitive& primitive, const Tensor& input,
                   SourceLocation at) {
  const Storage& storage = *input.storage();
  Stream* const writer = storage.writer();
  if (writer == nullptr || !writer->ever_failed()) return;
  ThrowIfFailed(*writer, storage.written_by(), primitive.name(), at);
}

void CheckInputs(const Primitive& primitive, Inputs inputs, SourceLocation at) {
  const Tensor* first = nullptr;
  for (const Tensor* input : inputs) {
    if (!input->defined()) {
      throw std::invalid_argument(absl::StrFormat(
          "[%s] an operand is an undefined tensor (a Tensor that was declared "
          "and never assigned); requested at %s",
          primitive.name(), at.ToString()));
    }
    if (first == nullptr) first = input;
    if (input->device() != first->device()) {
      throw std::invalid_argument(absl::StrFormat(
          "[%s] operands on two devices, %s and %s; copy one to the other's "
          "device first; requested at %s",
          primitive.name(), first->device().ToString(),
          input->device().ToString(), at.ToString()));
    }
    CheckReadable(primitive, *input, at);
  }
}

// Enqueues, and notes who wrote and who read which memory.
void Launch(const Primitive& primitive, Stream& stream, Inputs inputs,
            const Tensor& output, bool in_place, SourceLocation at) {
  const internal::Listeners listeners;
  const std::int64_t host_begin = listeners.any() ? NowNanos() : 0;
  OpLabel label(primitive.name(), at, internal::op_context.requested_by);
  for (const Tensor* input : inputs) {
    label.AddInput({input->shape().data(), input->shape().size()});
  }
  if (listeners.any()) label.set_stamps(listeners.NewStamps());
  const std::uint64_t number = primitive.Launch(stream, label, inputs, output);
  for (const Tensor* input : inputs) input->storage()->MarkUsedBy(stream);
  // Once more: an input may have failed, and another thread's Synchronize may
  // have reported that, between the first look and the launch.
  for (const Tensor* input : inputs) CheckReadable(primitive, *input, at);
  output.storage()->MarkWritten(stream, number);
  // After the marks: what failed to be written must not look written.
  if (LaunchBlocking()) stream.Finish(number, primitive.name(), at);
  if (listeners.any()) {
    Tell(listeners, primitive, number, stream, inputs, output, in_place, label,
         host_begin);
  }
}

// Runs the checks of a request, and adds its line to what they throw.
ValueSpec Infer(const Primitive& primitive, Inputs inputs, SourceLocation at) {
  try {
    return primitive.Infer(inputs);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(
        absl::StrFormat("%s; requested at %s", error.what(), at.ToString()));
  }
}

}  // namespace

Tensor Apply(const Primitive& primitive,
             std::initializer_list<const Tensor*> inputs, SourceLocation at) {
  const Inputs span(inputs.begin(), inputs.size());
  CheckInputs(primitive, span, at);
  const ValueSpec spec = Infer(primitive, span, at);
  Stream& stream = CurrentStream(spec.device);
  const std::size_t bytes = spec.shape.numel() * DTypeSize(spec.dtype);
  Tensor output(Memory(spec.device).Allocate(bytes, stream), spec.device,
                spec.dtype, spec.shape);
  Launch(primitive, stream, span, output, /*in_place=*/false, at);
  return output;
}

void ApplyInPlace(const Primitive& primitive,
                  std::initializer_list<const Tensor*> inputs, Tensor& target,
                  SourceLocation at) {
  const Inputs span(inputs.begin(), inputs.size());
  CheckInputs(primitive, span, at);
  const ValueSpec spec = Infer(primitive, span, at);
  if (spec.shape != target.shape() || spec.dtype != target.dtype() ||
      spec.device != target.device()) {
    throw std::invalid_argument(absl::StrFormat(
        "[%s_] the result, of shape %s, does not fit in place into a %s; "
        "requested at %s",
        primitive.name(), spec.shape.ToString(), target.Describe(),
        at.ToString()));
  }
  Launch(primitive, CurrentStream(spec.device), span, target,
         /*in_place=*/true, at);
}

}  // namespace d2l
