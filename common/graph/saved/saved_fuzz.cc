// For any JSON, the result is a program that can be written and read back, or
// an error with a message. A small program is run as well.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/captured.h"
#include "common/graph/ir.h"
#include "common/graph/passes/passes.h"
#include "common/graph/saved/saved.h"
#include "common/ops/ops.h"
#include "common/safetensors/safetensors.h"

namespace {

void Check(bool right) {
  if (!right) std::abort();
}

// Views count, too, because a reduction would step through them.
bool IsSmall(const d2l::ir::Function& function) {
  std::int64_t left = 100'000;
  for (const d2l::ir::Value& value : function.values) {
    if (value.type.numel() > left) return false;
    left -= value.type.numel();
  }
  return true;
}

d2l::Tensor Zeros(const d2l::Tensor& type) {
  const d2l::Tensor memory =
      d2l::Zeros({type.numel()}, type.device(), type.dtype());
  return d2l::View(memory, type.shape());
}

// The program may fail, late or at once.
void Run(d2l::ir::Graph graph) {
  try {
    std::vector<d2l::Tensor> arguments;
    for (const d2l::ir::ValueId argument : graph.main().arguments) {
      arguments.push_back(Zeros(graph.main().type(argument)));
    }
    for (d2l::ir::Weight& weight : graph.weights) {
      weight.tensor = Zeros(weight.type);
    }
    for (const d2l::Tensor& result : d2l::ir::Run(graph, arguments)) {
      d2l::WaitToRead(result);
    }
    d2l::ir::Captured captured(std::move(graph));
    for (const d2l::Tensor& result : captured.Run(arguments)) {
      d2l::WaitToRead(result);
    }
  } catch (const std::exception& error) {
    Check(error.what()[0] != '\0');
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const d2l::safetensors::NamedTensors tensors = {
      {"w", d2l::Ones({2, 3})},
      {"c", d2l::Ones({3}, d2l::Device(), d2l::DType::kInt64)}};
  absl::StatusOr<d2l::ir::Graph> graph =
      d2l::ir::ProgramFromJson(text, tensors);
  if (!graph.ok()) {
    Check(!graph.status().message().empty());
    return 0;
  }
  d2l::safetensors::NamedTensors written;
  const std::string json = d2l::ir::ProgramToJson(*graph, written);
  const absl::StatusOr<d2l::ir::Graph> again =
      d2l::ir::ProgramFromJson(json, written);
  Check(again.ok() && d2l::ir::ToText(*again) == d2l::ir::ToText(*graph));
  const bool small = IsSmall(graph->main());
  if (small) d2l::ir::Fold(*graph);
  d2l::ir::Simplify(*graph);
  d2l::ir::MergeCommonSubexpressions(*graph);
  d2l::ir::RemoveDeadCode(*graph);
  d2l::ir::Fuse(*graph);
  d2l::ir::Verify(*graph);
  d2l::ir::PeakBytes(*graph);
  d2l::ir::PlanMemory(graph->main());
  if (small) Run(std::move(*graph));
  return 0;
}
