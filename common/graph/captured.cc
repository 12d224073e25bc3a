#include "common/graph/captured.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/source_location.h"
#include "common/base/timer.h"
#include "common/device/device_table.h"
#include "common/graph/fused_args.h"
#include "common/graph/generated/cpp_code.h"
#include "common/graph/generated/load_cpp.h"
#include "common/graph/ir.h"
#include "common/graph/passes/passes.h"
#include "common/graph/stream_executor.h"
#include "common/kernels/tf32.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/record.h"

namespace d2l::ir {
namespace {

// Why the interpreter must run the program; empty if it need not.
std::string WhyInterpreted(const Graph& graph, Device device) {
  const Function& main = graph.main();
  for (const Value& value : main.values) {
    if (value.type.device() != device) return "it runs on several devices";
  }
  const Storages storages(main);
  for (const Node& node : main.nodes) {
    for (const ValueId value : WrittenBy(node)) {
      if (std::count(main.arguments.begin(), main.arguments.end(),
                     storages.root[value]) > 0) {
        return "it writes to an argument";
      }
    }
  }
  if (!storages.writes_external) return "";
  std::set<const Storage*> memory;
  for (const Weight& weight : graph.weights) {
    if (!memory.insert(weight.tensor.storage().get()).second) {
      return "it writes to a weight, and two of them share memory";
    }
  }
  return "";
}

}  // namespace

Captured::Captured(Graph graph, const CapturedOptions& options)
    : graph_(std::move(graph)) {
  Verify(graph_);
  Inline(graph_);
  name_ = Intern(graph_.main().name);
  if (!graph_.main().values.empty()) {
    device_ = graph_.main().values[0].type.device();
  }
  const bool on_gpu = device_.type() == DeviceType::kCuda;
  if (on_gpu) {
    Unfuse(graph_, [](const Function& body) { return !FusedArgsOf(body); });
  }
  not_captured_ = WhyInterpreted(graph_, device_);
  if (not_captured_.empty()) {
    plan_ = std::make_unique<const CapturedPlan>(
        graph_.main(), Generate(options),
        on_gpu ? kMaxCopiedBytesOnGpu : kMaxCopiedBytes);
  }
  if (!not_captured_.empty()) not_generated_ = not_captured_;
}

Captured::~Captured() = default;

std::int64_t Captured::arena_bytes() const {
  return plan_ == nullptr ? 0 : plan_->memory.arena_bytes;
}

std::vector<CompiledRegion> Captured::Generate(const CapturedOptions& options) {
  std::vector<CompiledRegion> compiled;
  if (!options.generate_cpp) {
    not_generated_ = "it was not requested";
    return compiled;
  }
  if (device_.type() == DeviceType::kCuda) {
    not_generated_ = "it runs on a GPU";
    return compiled;
  }
  const Timer timer;
  GeneratedCpp code = GenerateCpp(graph_);
  generated_source_ = std::move(code.source);
  if (std::all_of(code.regions.begin(), code.regions.end(),
                  [](const GeneratedRegion& r) { return r.name.empty(); })) {
    not_generated_ = code.regions.empty() ? "no operations are fused"
                                          : "there is no C++ for its regions";
    return compiled;
  }
  const absl::StatusOr<CompiledCpp> library =
      LoadCpp(generated_source_, CppFlags(),
              {options.cache_directory, options.compile_seconds_limit});
  compile_seconds_ = timer.Seconds();
  if (!library.ok()) {
    not_generated_ = std::string(library.status().message());
    return compiled;
  }
  for (GeneratedRegion& region : code.regions) {
    void* const function =
        region.name.empty() ? nullptr : library->Function(region.name);
    compiled.push_back(
        {reinterpret_cast<RegionFn>(function), std::move(region.loops)});
  }
  return compiled;
}

std::string Captured::not_captured() const {
  MutexLock lock(mutex_);
  return not_captured_;
}

StreamExecutor* Captured::On(Stream& stream) {
  const bool on_gpu = device_.type() == DeviceType::kCuda;
  MutexLock lock(mutex_);
  if (!not_captured_.empty()) return nullptr;
  const auto [it, first] =
      streams_.try_emplace({&stream, on_gpu && AllowTf32()});
  if (on_gpu && first) return nullptr;
  if (it->second != nullptr) return it->second.get();
  try {
    if (on_gpu) {
      it->second = MakeCudaExecutor(graph_, *plan_, stream, name_);
    } else {
      it->second = MakeCpuExecutor(graph_, *plan_, stream, name_);
    }
  } catch (const OutOfMemoryError&) {
    if (!on_gpu) throw;  // the next call tries again
  } catch (const std::exception& error) {
    if (!on_gpu) throw;
    not_captured_ = error.what();
  }
  return it->second.get();
}

std::vector<Tensor> Captured::Run(absl::Span<const Tensor> inputs,
                                  SourceLocation at) {
  if (plan_ == nullptr || internal::Listeners().any() ||
      internal::enqueue_mode != internal::kMayEnqueue) {
    return ir::Run(graph_, inputs);
  }
  CheckArguments(graph_, inputs);
  Stream& stream = CurrentStream(device_);
  for (const Tensor& x : inputs) CheckReadable(x, stream, name_, at);
  for (const Weight& weight : graph_.weights) {
    CheckReadable(weight.tensor, stream, name_, at);
  }
  for (const int weight : plan_->written) {
    for (const Tensor& x : inputs) {
      // The weight was copied, or read, before it is written.
      if (x.storage().get() == graph_.weights[weight].tensor.storage().get()) {
        return ir::Run(graph_, inputs);
      }
    }
  }
  StreamExecutor* const executor = On(stream);
  return executor == nullptr ? ir::Run(graph_, inputs)
                             : executor->Run(inputs, at);
}

}  // namespace d2l::ir
