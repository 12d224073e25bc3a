// StreamExecutor: runs a captured program on one stream, and CapturedPlan: what
// it does in the same way on every stream, which is where each value is, which
// steps a call launches anew, and the strips of fused regions.
//
// There are two executors: on a CPU the program is a tape of the kernels'
// tasks, on a GPU it is CUDA graphs of their launches. Only Captured uses them.
//
// Thread-safety: a plan is a value, const methods may be called at the same
// time; an executor's Run may be called on any thread. Ownership: the graph,
// the plan and the stream outlive the executor; the task that a call enqueues
// keeps what it needs.

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
    kNowhere,   // it is never used
    kArena,     // also of small arguments and results, which are copied
    kProgram,   // a weight or a constant
    kArgument,  // of the call
    kResult,    // made by the call
  };
  struct Result {
    ValueId root;
    bool copied;
  };

  // program: without calls. compiled: of its fused regions, in their order;
  // empty if none is. max_copied_bytes: up to this size arguments and results
  // are copied.
  CapturedPlan(const Function& program,
               const std::vector<CompiledRegion>& compiled,
               std::int64_t max_copied_bytes);

  // Whether each call has other addresses, or other numbers, for it.
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

  // Asynchronous, as an operation.
  std::vector<Tensor> Run(absl::Span<const Tensor> inputs, SourceLocation at);

 protected:
  struct MemoryCopy {
    void* to;
    const void* from;
    std::size_t bytes;
  };
  // Of arguments into the arena, and of results out of it.
  struct Copies {
    absl::InlinedVector<MemoryCopy, 1> before;
    absl::InlinedVector<MemoryCopy, 1> after;
  };

  // name: interned.
  StreamExecutor(const Graph& graph, const CapturedPlan& plan, Stream& stream,
                 const char* name);

  // Enqueues a call, and returns its number in the stream.
  virtual std::uint64_t Enqueue(const OpLabel& label,
                                absl::Span<const Tensor> inputs,
                                const std::vector<Tensor>& results,
                                Copies&& copies) = 0;

  // Whether something is launched for the node.
  static bool Runs(const Node& node);
  // Each call launches the node anew.
  void LaunchByCalls(const Node& node);
  // What such nodes need of a call, by value; empty if there are none.
  std::vector<Tensor> TensorsOf(absl::Span<const Tensor> inputs,
                                const std::vector<Tensor>& results) const;
  // Has the kernel of the node's operation enqueue its work, and returns the
  // number of that. of_call: of TensorsOf; may be empty.
  std::uint64_t Launch(const Node& node,
                       const std::vector<Tensor>& of_call) const;
  // The tensor of the call; where there is none, that of the program.
  const Tensor& At(const std::vector<Tensor>& of_call, ValueId value) const;

  const Graph& graph_;
  const CapturedPlan& plan_;
  Stream& stream_;

 private:
  // A value with the memory of `base`, the root that it has.
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
// Throws std::runtime_error if CUDA records no graph.
std::unique_ptr<StreamExecutor> MakeCudaExecutor(const Graph& graph,
                                                 const CapturedPlan& plan,
                                                 Stream& stream,
                                                 const char* name);

// Throws the error of the operation that wrote x, if it has failed. Inline, as
// each call asks for each of its tensors.
inline void CheckReadable(const Tensor& x, const char* name,
                          SourceLocation at) {
  const Storage& storage = *x.storage();
  if (storage.writer() == nullptr || !storage.writer()->ever_failed()) return;
  ThrowIfFailed(*storage.writer(), storage.written_by(), name, at);
}

}  // namespace d2l::ir

#endif  // D2L_COMMON_GRAPH_STREAM_EXECUTOR_H_
