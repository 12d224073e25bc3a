#include "common/autograd/checkpoint.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/container/inlined_vector.h"
#include "common/autograd/rule_helpers.h"
#include "common/autograd/tape.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/primitives.h"
#include "common/ops/primitive/recording_tape.h"

namespace d2l {
namespace {

// Its inputs: y, x and the parameters, of which it reads y only. Its output is
// a copy of y.
class CheckpointPrimitive final : public Cloneable<CheckpointPrimitive> {
 public:
  CheckpointPrimitive(CheckpointFunction function, std::vector<Tensor> inputs,
                      const GeneratorState& generator)
      : function(std::move(function)),
        inputs(std::move(inputs)),
        generator(generator) {}

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
  const std::vector<Tensor> inputs;  // x, and the parameters
  const GeneratorState generator;
};

Tensors CheckpointGradients(const ForwardOp& op, Reads wanted,
                            const Tensor& dy) {
  const auto& primitive = As<CheckpointPrimitive>(op.primitive);
  const Tensor& x = primitive.inputs[0];
  // x needs no gradient if it is data, as in the first layer.
  const bool of_x = (wanted & ReadsInput(1)) != 0;
  const GeneratorState now = GetGeneratorState(x.device());
  // Backward may be called under a guard; the second forward pass is not.
  const int guards = std::exchange(internal::no_grad_guards, 0);
  std::vector<Tensor> found;
  {
    const absl::Cleanup as_before = [&] {
      internal::no_grad_guards = guards;
      SetGeneratorState(now, x.device());
    };
    SetGeneratorState(primitive.generator, x.device());
    GradientTape tape(
        {primitive.inputs.begin() + (of_x ? 0 : 1), primitive.inputs.end()},
        op.at);
    const Tensor y = primitive.function(x, /*again=*/true);
    found = tape.Backward(y, Contiguous(dy, op.at), op.at);
  }
  Tensors gradients(of_x ? 1 : 2);
  for (const Tensor& gradient : found) {
    gradients.push_back(guards > 0 ? Detach(gradient, op.at) : gradient);
  }
  return gradients;
}

}  // namespace

void AddCheckpointRule(GradientRules& rules) {
  rules.insert({{&typeid(CheckpointPrimitive),
                 {Always<ReadsInput(1)>, nullptr, CheckpointGradients}}});
}

Tensor Checkpoint(const CheckpointFunction& function, const Tensor& x,
                  const std::vector<Tensor>& parameters, SourceLocation at) {
  CheckDefined("checkpoint", x, at);
  if (!IsRecording() || internal::no_grad_guards > 0) return function(x, false);
  const GeneratorState generator = GetGeneratorState(x.device());
  Tensor y;
  {
    const NoGradGuard guard;
    y = function(x, /*again=*/false);
  }
  std::vector<Tensor> inputs = {x};
  inputs.insert(inputs.end(), parameters.begin(), parameters.end());
  std::vector<const Tensor*> all = {&y};
  for (const Tensor& input : inputs) all.push_back(&input);
  return Apply(CheckpointPrimitive(function, inputs, generator), all, at);
}

}  // namespace d2l
