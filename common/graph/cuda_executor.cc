// A program on a GPU's stream: the kernels' launches are captured as CUDA
// graphs, between which each call launches the nodes that differ.

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/mutex.h"
#include "common/device/cuda/stream/cuda_graph.h"
#include "common/device/cuda/stream/cuda_stream.h"
#include "common/device/failure.h"
#include "common/graph/fused_args.h"
#include "common/graph/stream_executor.h"
#include "common/kernels/enqueue.h"
#include "common/kernels/kernels.h"

namespace d2l::ir {
namespace {

class CudaExecutor final : public StreamExecutor {
 public:
  CudaExecutor(const Graph& graph, const CapturedPlan& plan, Stream& stream,
               const char* name)
      : StreamExecutor(graph, plan, stream, name),
        cuda_(static_cast<CudaStream&>(stream)) {
    std::vector<Nodes> recorded;
    bool may_report = false;
    const auto record = [&] {
      if (recorded.empty()) return;
      Step& step = steps_.emplace_back();
      step.graph = std::make_unique<const CudaGraph>(
          cuda_,
          [&] {
            for (const Nodes& nodes : recorded) {
              LaunchNodes(nodes, FusedArgsFor(*nodes[0]), {});
            }
          },
          may_report);
      recorded.clear();
      may_report = false;
    };
    for (const Nodes& nodes : Launches()) {
      const Node& node = *nodes[0];
      if (plan.IsLaunched(node)) {
        record();
        steps_.push_back({nullptr, nodes, FusedArgsFor(node)});
        LaunchByCalls(nodes);
      } else {
        recorded.push_back(nodes);
        may_report = may_report || MayFailLate(node, plan.function);
      }
    }
    record();
  }

 private:
  // A graph, or nodes that each call launches.
  struct Step {
    std::unique_ptr<const CudaGraph> graph;
    Nodes launched;
    std::unique_ptr<const kernels::FusedArgs> fused;
  };

  // Null unless the node is a fused region.
  static std::unique_ptr<const kernels::FusedArgs> FusedArgsFor(
      const Node& node) {
    if (node.kind != NodeKind::kFused) return nullptr;
    return std::make_unique<const kernels::FusedArgs>(*FusedArgsOf(*node.body));
  }

  std::uint64_t LaunchNodes(
      const Nodes& nodes,
      const std::unique_ptr<const kernels::FusedArgs>& fused,
      const std::vector<Tensor>& of_call) const {
    if (fused == nullptr) return Launch(nodes, of_call);
    const Node& node = *nodes[0];
    kernels::FusedArgs args = *fused;
    kernels::FusedArgs::Memory* memory = args.memory;
    for (const std::vector<ValueId>* values : {&node.inputs, &node.outputs}) {
      for (const ValueId value : *values) {
        (memory++)->data = At(of_call, value).data();
      }
    }
    return kernels::cuda::Enqueue(
        stream_, OpLabel("fused", node.op.requested_at, node.op.requested_by),
        args);
  }

  // Enqueues several operations; the whole call is done with the last.
  std::uint64_t Enqueue(const OpLabel& label, absl::Span<const Tensor> inputs,
                        const std::vector<Tensor>& results,
                        Copies&& copies) override {
    const std::vector<Tensor> tensors = TensorsOf(inputs, results);
    absl::InlinedVector<std::uint64_t, 8> numbers;
    try {
      const MutexLock lock(calls_);
      if (!copies.before.empty()) numbers.push_back(Copy(label, copies.before));
      for (const Step& step : steps_) {
        numbers.push_back(!step.launched.empty()
                              ? LaunchNodes(step.launched, step.fused, tensors)
                              : cuda_.Launch(label, [&](const CudaLaunch& to) {
                                  step.graph->Launch(to);
                                }));
      }
      if (!copies.after.empty() || numbers.empty()) {
        numbers.push_back(Copy(label, copies.after));
      }
    } catch (...) {
      // Nothing marks the weights as written, so wait for the writes.
      if (!numbers.empty()) cuda_.WaitFor(numbers.back());
      throw;
    }
    // An operation may have failed, and another thread may have reported that
    // before the next was enqueued.
    for (const std::uint64_t number : numbers) {
      CheckResult(cuda_, number, cuda_, label.name(), label.requested_at());
    }
    return numbers.back();
  }

  std::uint64_t Copy(const OpLabel& label,
                     absl::Span<const MemoryCopy> copies) {
    return cuda_.Launch(label, [&](const CudaLaunch& to) {
      CudaApi& api = cuda_.gpu().api();
      for (const MemoryCopy& copy : copies) {
        ++internal::kernels_launched;
        const int error =
            api.CopyAsync(copy.to, copy.from, copy.bytes, to.stream);
        if (error == 0) continue;
        throw std::runtime_error(absl::StrCat("CUDA does not copy for ",
                                              label.name(), ": ",
                                              api.ErrorText(error)));
      }
    });
  }

  CudaStream& cuda_;
  std::vector<Step> steps_;
  // Held while a call is enqueued: one call at a time uses the arena.
  Mutex calls_;
};

}  // namespace

std::unique_ptr<StreamExecutor> MakeCudaExecutor(const Graph& graph,
                                                 const CapturedPlan& plan,
                                                 Stream& stream,
                                                 const char* name) {
  return std::make_unique<CudaExecutor>(graph, plan, stream, name);
}

}  // namespace d2l::ir
