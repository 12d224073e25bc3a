// Captured: runs a program on a CPU device as one task of its stream, and on a
// GPU as CUDA graphs.
//
//   ir::Captured captured(graph);
//   std::vector<Tensor> y = captured.Run({x});  // asynchronous, as operations
//
// The first call on a stream lets the kernels enqueue their tasks and keeps
// these (StreamCapture) instead of queueing them; later calls run them again.
// What is between operations lies in one arena per stream (PlanMemory),
// fused regions run as strips (strips.h), and small arguments and results are
// copied into and out of the arena. Only steps that touch larger ones, and
// random ones, are launched anew by each call.
//
// On a GPU the second call on a stream records the kernels' launches as CUDA
// graphs (cuda_graph.h), between which a call launches the steps above, and
// those that may fail late: their error then is one of this call. The first
// call runs the interpreter, so that libraries make what they need. A fused
// region is one kernel where that can hold it (fused_args.h), else its
// operations. This has run on a model of a GPU only.
//
// Results are bit for bit the interpreter's, but for the sign and payload of a
// NaN that generated C++ (below) or a model of a GPU makes, and random
// generators advance as there. An error of a step names the step and its line;
// it marks all results of the call as failed.
//
// With generate_cpp, fused regions run as C++ that the system's compiler has
// made of them (generated/cpp_code.h); it takes tenths of a second, or none
// where it has met the program before (generated/load_cpp.h). Where that fails,
// they run as strips, and not_generated() says why.
//
// The interpreter runs instead where a listener wants to see operations (this
// thread's or a profiler), for values on several devices, and for programs that
// write to an argument, or to a weight that shares memory with another or with
// an argument; on a GPU also from then on when CUDA does not record one.
//
// Errors: as of ir::Run. Thread-safety: Run may be called on any thread; calls
// on one stream run in order. Ownership: the weights' memory is kept; work that
// is still queued when this is destroyed runs as it should.

#ifndef D2L_COMMON_GRAPH_CAPTURED_H_
#define D2L_COMMON_GRAPH_CAPTURED_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/types/span.h"
#include "common/base/mutex.h"
#include "common/base/source_location.h"
#include "common/device/stream.h"
#include "common/graph/ir.h"
#include "common/tensor/tensor.h"

namespace d2l::ir {

struct CapturedPlan;
struct CompiledRegion;
class StreamExecutor;

struct CapturedOptions {
  bool generate_cpp = false;
  // For what the compiler makes; "" for the usual one.
  std::string cache_directory;
  double compile_seconds_limit = 30;
};

class Captured {
 public:
  // Up to this size arguments and results are copied. On a GPU a copy costs
  // what launching a kernel does, however small it is.
  static constexpr std::int64_t kMaxCopiedBytes = 4096;
  static constexpr std::int64_t kMaxCopiedBytesOnGpu = 64 << 10;

  // Calls are put in place (Inline), and on a GPU some fused regions taken
  // apart (Unfuse); otherwise the graph is run as it is: Optimize it before.
  // All weights are bound. Throws std::invalid_argument for a graph that is not
  // valid.
  explicit Captured(Graph graph, const CapturedOptions& options = {});
  ~Captured();
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;

  std::vector<Tensor> Run(absl::Span<const Tensor> inputs,
                          SourceLocation at = SourceLocation::Current());

  const Graph& graph() const { return graph_; }
  // Empty if calls on this device's streams are captured, else why the
  // interpreter runs them.
  std::string not_captured() const;
  // The C++ of its fused regions; "" if it was not asked for.
  const std::string& generated_source() const { return generated_source_; }
  // What generating, compiling and loading it took.
  double compile_seconds() const { return compile_seconds_; }
  // Empty if it runs, else why strips or the interpreter run instead.
  const std::string& not_generated() const { return not_generated_; }
  // Of what is between operations.
  std::int64_t arena_bytes() const;

 private:
  // Null if the interpreter is to run the call.
  StreamExecutor* On(Stream& stream);
  // For the fused regions, in their order; none if there are none.
  std::vector<CompiledRegion> Generate(const CapturedOptions& options);

  Graph graph_;
  std::string generated_source_;
  double compile_seconds_ = 0;
  std::string not_generated_;
  std::unique_ptr<const CapturedPlan> plan_;
  const char* name_ = "";  // interned
  Device device_;
  mutable Mutex mutex_;
  std::string not_captured_ ABSL_GUARDED_BY(mutex_);
  // With whether TF32 was allowed: a CUDA graph keeps that.
  std::map<std::pair<Stream*, bool>, std::unique_ptr<StreamExecutor>> streams_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace d2l::ir

#endif  // D2L_COMMON_GRAPH_CAPTURED_H_
