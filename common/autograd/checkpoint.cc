#include "common/autograd/checkpoint.h"

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_format.h"
#include "common/autograd/rule_helpers.h"
#include "common/autograd/tape.h"
#include "common/device/device_table.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/primitives.h"
#include "common/ops/primitive/record.h"
#include "common/ops/primitive/recording_tape.h"

namespace d2l {
namespace {

// A tensor that the function reads and does not make.
struct OuterTensor {
  Tensor value;
  std::uint64_t version;  // of its memory when it was read
};

// The states of the generators of all devices, in the order of the table.
std::vector<GeneratorState> GeneratorStates() {
  std::vector<GeneratorState> states;
  for (const DeviceInfo& info : Devices()) {
    states.push_back(GetGeneratorState(info.device));
  }
  return states;
}
void SetGeneratorStates(const std::vector<GeneratorState>& states) {
  for (std::size_t i = 0; i < states.size(); ++i) {
    SetGeneratorState(states[i], Devices()[i].device);
  }
}

// Listens while the function runs for the first time.
class OuterTensors final : public OpListener {
 public:
  void OnOp(const OpRecord& record) override {
    for (const Tensor* input : record.inputs) {
      if (known_.insert(input->id()).second) {
        found_.push_back({*input, input->version()});
      }
    }
    known_.insert(record.output.id());
    if (record.in_place) written_.insert(record.output.storage()->id());
    for (const Tensor* x : record.primitive->WrittenInputs(record.inputs)) {
      written_.insert(x->storage()->id());
    }
  }

  bool IsWritten(const Tensor& x) const {
    return written_.count(x.storage()->id()) > 0;
  }
  // Those that the function does not write to, each once.
  std::vector<OuterTensor> Unwritten() const {
    std::vector<OuterTensor> unwritten;
    for (const OuterTensor& outer : found_) {
      if (!IsWritten(outer.value)) unwritten.push_back(outer);
    }
    return unwritten;
  }
  // Those whose gradients a tape of this thread computes, each once.
  std::vector<Tensor> Differentiable() const {
    std::vector<Tensor> differentiable;
    for (const OuterTensor& outer : found_) {
      if (NeedsGradient(outer.value)) differentiable.push_back(outer.value);
    }
    return differentiable;
  }

 private:
  // Ids of tensors that were read or made, and of memory that was written to.
  absl::flat_hash_set<std::uint64_t> known_, written_;
  std::vector<OuterTensor> found_;
};

// The inputs are y and then the watched tensors; only y is read. The output is
// a copy of y.
class CheckpointPrimitive final : public Cloneable<CheckpointPrimitive> {
 public:
  CheckpointPrimitive(CheckpointFunction function, Tensor x,
                      std::vector<Tensor> watched,
                      std::vector<OuterTensor> read,
                      std::vector<GeneratorState> generators)
      : function(std::move(function)),
        x(std::move(x)),
        watched(std::move(watched)),
        read(std::move(read)),
        generators(std::move(generators)) {}

  const char* name() const override { return "checkpoint"; }
  bool ReadsInput(int input) const override { return input == 0; }
  ValueSpec Infer(Inputs all) const override {
    const Tensor& y = *all[0];
    return {y.shape(), y.dtype(), y.device()};
  }
  std::uint64_t Launch(const LaunchContext& ctx) const override {
    const Tensor& y = ctx.output;
    return CopyPrimitive("checkpoint", {y.shape(), y.dtype(), y.device()})
        .Launch({ctx.stream, ctx.label, ctx.inputs.subspan(0, 1), y});
  }

  const CheckpointFunction function;
  const Tensor x;
  const std::vector<Tensor> watched;
  const std::vector<OuterTensor> read;
  const std::vector<GeneratorState> generators;
};

void CheckUnchanged(const CheckpointPrimitive& primitive, SourceLocation at) {
  for (const OuterTensor& outer : primitive.read) {
    if (outer.value.version() == outer.version) continue;
    throw std::logic_error(absl::StrFormat(
        "[backward] the gradient of checkpoint, requested at %s, computes its "
        "function again, which reads %s; that was overwritten in place since "
        "then: call Backward before parameters are updated, or copy it before, "
        "Clone(x)",
        at.ToString(), outer.value.Describe()));
  }
}

Tensors CheckpointGradients(const ForwardOp& op, Reads /*wanted*/,
                            const Tensor& dy) {
  const auto& primitive = As<CheckpointPrimitive>(op.primitive);
  CheckUnchanged(primitive, op.at);
  const std::vector<GeneratorState> now = GeneratorStates();
  // Backward may be called under a guard; the second forward pass is not.
  const int guards = std::exchange(internal::no_grad_guards, 0);
  std::vector<Tensor> found(primitive.watched.size());
  {
    const absl::Cleanup as_before = [&] {
      internal::no_grad_guards = guards;
      SetGeneratorStates(now);
    };
    SetGeneratorStates(primitive.generators);
    GradientTape tape(primitive.watched, op.at);
    const Tensor y = primitive.function(primitive.x, /*again=*/true);
    if (tape.NeedsGradient(y)) {
      found = tape.Backward(y, Contiguous(dy, op.at), op.at);
    }
  }
  Tensors gradients(1);  // y's is not defined
  for (const Tensor& gradient : found) {
    const bool constant = guards > 0 && gradient.defined();
    gradients.push_back(constant ? Detach(gradient, op.at) : gradient);
  }
  return gradients;
}

}  // namespace

void AddCheckpointRule(GradientRules& rules) {
  rules.insert({{&typeid(CheckpointPrimitive),
                 {Always<0>, nullptr, CheckpointGradients}}});
}

Tensor Checkpoint(const CheckpointFunction& function, const Tensor& x,
                  SourceLocation at) {
  CheckDefined("checkpoint", x, at);
  if (!IsRecording() || internal::no_grad_guards > 0) return function(x, false);
  std::vector<GeneratorState> generators = GeneratorStates();
  OuterTensors outer;
  Tensor y;
  {
    const ScopedOpListener listen(&outer);
    const NoGradGuard guard;
    y = function(x, /*again=*/false);
  }
  CheckDefined("checkpoint", y, at);
  if (outer.IsWritten(x)) {
    throw std::invalid_argument(absl::StrFormat(
        "[checkpoint] the function writes to its input, %s, and would write to "
        "it again in the backward pass; work on a copy, Clone(x), or make a "
        "new tensor (x = x + y); requested at %s",
        x.Describe(), at.ToString()));
  }
  std::vector<Tensor> watched = outer.Differentiable();
  if (watched.empty()) return y;
  std::vector<const Tensor*> inputs = {&y};
  for (const Tensor& input : watched) inputs.push_back(&input);
  return Apply(CheckpointPrimitive(function, x, watched, outer.Unwritten(),
                                   std::move(generators)),
               inputs, at);
}

}  // namespace d2l
