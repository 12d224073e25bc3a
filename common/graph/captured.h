// Captured: runs a program on a CPU device as one task of its stream, and on a
// GPU as CUDA graphs.
//
//   ir::Captured captured(graph);
//   std::vector<Tensor> y = captured.Run({x});  // asynchronous, as operations
//
// The first call on a stream captures the tasks that the kernels enqueue
// (StreamCapture) instead of queueing them; later calls run these tasks again.
// Values between operations lie in one arena per stream (PlanMemory), fused
// regions run as strips (strips.h), and small arguments and results are copied
// into and out of the arena. Each call launches anew only the random steps and
// the steps that touch larger arguments or results.
//
// On a GPU the second call on a stream captures the kernels' launches as CUDA
// graphs (cuda_graph.h). Between the graphs a call launches the steps above.
// The first call runs the interpreter, so that libraries allocate what they
// need. A fused region is one kernel if it fits one (fused_args.h), else its
// operations. This has run on a model of a GPU only.
//
// Results are bit for bit the interpreter's, except for the sign and payload of
// a NaN; random generators advance as in the interpreter. An error of a step
// names the step and its line, and marks all results of the call as failed.
//
// With generate_cpp, the system's compiler compiles C++ for the fused regions
// (generated/cpp_code.h); this takes tenths of a second, or nothing if the
// program is in the cache (generated/load_cpp.h). If it fails, the regions run
// as strips, and not_generated() says why.
//
// The interpreter runs instead if a listener (this thread's or a profiler)
// wants to see operations, for values on several devices, and for programs that
// write to an argument, or to a weight that shares memory with another or with
// an argument; on a GPU also after CUDA has refused to capture a graph.
//
// Errors: as of ir::Run. Thread-safety: Run may be called on any thread; calls
// on one stream run in order. Ownership: a Captured keeps the weights' memory;
// work that is still queued when it is destroyed runs normally.

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
  // For the compiler's output; "" for the default directory.
  std::string cache_directory;
  double compile_seconds_limit = 30;
};

class Captured {
 public:
  // Arguments and results of at most this size are copied. On a GPU a copy
  // costs as much as launching a kernel, however small it is.
  static constexpr std::int64_t kMaxCopiedBytes = 4096;
  static constexpr std::int64_t kMaxCopiedBytesOnGpu = 64 << 10;

  // Inlines calls, and on a GPU splits some fused regions (Unfuse); otherwise
  // the graph runs as it is: Optimize it before. All weights are bound. Throws
  // std::invalid_argument for a graph that is not valid.
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
  // The C++ of its fused regions; "" without generate_cpp.
  const std::string& generated_source() const { return generated_source_; }
  // The time that generating, compiling and loading the C++ took.
  double compile_seconds() const { return compile_seconds_; }
  // Empty if the C++ runs, else why strips or the interpreter run instead.
  const std::string& not_generated() const { return not_generated_; }
  // The size of the arena for values between operations.
  std::int64_t arena_bytes() const;

 private:
  // Null if the interpreter must run the call.
  StreamExecutor* On(Stream& stream);
  // The C++ of the fused regions, in their order; empty if there is none.
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
  // The key includes whether TF32 was allowed: a CUDA graph keeps that.
  std::map<std::pair<Stream*, bool>, std::unique_ptr<StreamExecutor>> streams_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace d2l::ir

#endif  // D2L_COMMON_GRAPH_CAPTURED_H_
