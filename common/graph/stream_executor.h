// StreamExecutor: runs a captured program on one stream. CapturedPlan: the part
// that is the same on every stream: the place of each value, the steps that
// each call launches anew, and the strips of fused regions.
//
// There are two executors: on a CPU the program is a tape of the kernels'
// tasks, on a GPU it is CUDA graphs of their launches. Only Captured uses them.
//
// Thread-safety: a plan is a value, const methods may be called at the same
// time; an executor's Run may be called on any thread. Ownership: the graph,
// the plan and the stream outlive the executor; a call's task keeps alive what
// it needs.

#ifndef D2L_COMMON_GRAPH_STREAM_EXECUTOR_H_
#define D2L_COMMON_GRAPH_STREAM_EXECUTOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "common/base/source_location.h"
#include "common/device/failure.h"
#include "common/device/memory/storage.h"
#include "common/device/op_label.h"
#include "common/device/stream.h"
#include "common/graph/ir.h"
#include "common/graph/passes/passes.h"
#include "common/graph/strips.h"
#include "common/kernels/cpu/elementwise_loops.h"

namespace d2l::ir {

// A fused region's C++; without a function it runs as strips.
struct CompiledRegion {
  RegionFn function = nullptr;
  std::vector<kernels::cpu::LoopFn> loops;
};

struct CapturedPlan {
  // Where the memory of a value is.
  enum class Place : std::uint8_t {
    kNowhere,   // the value is never used
    kArena,     // also small arguments and results, which are copied
    kProgram,   // a weight or a constant
    kArgument,  // of the call
    kResult,    // made by the call
  };
  struct Result {
    ValueId root;
    bool copied;
  };

  // `program` has no calls. `compiled` holds its fused regions, in their order;
  // it is empty if none is compiled. Arguments and results of at most
  // max_copied_bytes are copied.
  CapturedPlan(const Function& program,
               const std::vector<CompiledRegion>& compiled,
               std::int64_t max_copied_bytes);

  // Whether each call has other addresses, or other numbers, for the node.
  bool IsLaunched(const Node& node) const;

  const Function function;
  const Storages storages;
  std::vector<Place> places;  // by value
  MemoryPlan memory;
  std::vector<Result> results;
  std::vector<int> written;  // weights that the program writes to, by number
  std::vector<std::shared_ptr<const Strips>> strips;  // by node, for a CPU
};

class StreamExecutor {
 public:
  virtual ~StreamExecutor() = default;

  // Asynchronous, like an operation.
  std::vector<Tensor> Run(absl::Span<const Tensor> inputs, SourceLocation at);

 protected:
  struct MemoryCopy {
    void* to;
    const void* from;
    std::size_t bytes;
  };
  // Copies of arguments into the arena, and of results out of it.
  struct Copies {
    absl::InlinedVector<MemoryCopy, 4> before;
    absl::InlinedVector<MemoryCopy, 1> after;
  };

  // `name` is interned.
  StreamExecutor(const Graph& graph, const CapturedPlan& plan, Stream& stream,
                 const char* name);

  // Enqueues a call, and returns its number in the stream.
  virtual std::uint64_t Enqueue(const OpLabel& label,
                                absl::Span<const Tensor> inputs,
                                const std::vector<Tensor>& results,
                                Copies&& copies) = 0;

  // Nodes that one launch does: one, or updates of different memory by the same
  // numbers, as a step of SGD requests them.
  using Nodes = std::vector<const Node*>;
  // All nodes that launch something, in their order.
  std::vector<Nodes> Launches() const;
  // Lets each call launch the nodes anew.
  void LaunchByCalls(const Nodes& nodes);
  // The call's tensors for such nodes, by value; empty if there are none.
  std::vector<Tensor> TensorsOf(absl::Span<const Tensor> inputs,
                                const std::vector<Tensor>& results) const;
  // Enqueues the kernel of the nodes' operation, and returns its number in the
  // stream. `of_call` is from TensorsOf and may be empty.
  std::uint64_t Launch(const Nodes& nodes,
                       const std::vector<Tensor>& of_call) const;
  // The call's tensor of the value, or else the program's.
  const Tensor& At(const std::vector<Tensor>& of_call, ValueId value) const;

  const Graph& graph_;
  const CapturedPlan& plan_;
  Stream& stream_;

 private:
  // A tensor for the value in the memory of its root, `base`.
  Tensor In(const Tensor& base, std::int64_t offset, ValueId value) const;
  void PlaceValue(ValueId value);
  Tensor OfCall(ValueId value, absl::Span<const Tensor> inputs,
                const std::vector<Tensor>& results) const;

  const char* const name_;
  StorageRef arena_;
  std::vector<Tensor> tensors_;   // by value: in the arena, or the program's
  std::vector<ValueId> of_call_;  // the call's values of LaunchByCalls
};

std::unique_ptr<StreamExecutor> MakeCpuExecutor(const Graph& graph,
                                                const CapturedPlan& plan,
                                                Stream& stream,
                                                const char* name);
// Throws std::runtime_error if CUDA does not capture a graph.
std::unique_ptr<StreamExecutor> MakeCudaExecutor(const Graph& graph,
                                                 const CapturedPlan& plan,
                                                 Stream& stream,
                                                 const char* name);

}  // namespace d2l::ir

#endif  // D2L_COMMON_GRAPH_STREAM_EXECUTOR_H_
