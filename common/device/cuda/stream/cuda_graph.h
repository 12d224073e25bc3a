// CudaGraph: launches of a CUDA stream that are recorded once, by CUDA's stream
// capture, and run again by one call, as torch.cuda.CUDAGraph.
//
//   CudaGraph graph(stream, [&] {
//     primitive.Launch({stream, label, inputs, output});  // not run
//   });
//   stream.Launch(OpLabel("program"), [&](const CudaLaunch& to) {
//     graph.Launch(to);
//   });
//
// A launch uses the arguments of the recording: the same random numbers, and
// the same addresses, so the caller must keep that memory. The graph keeps the
// scratch memory of kernels.
//
// CUDA records on a separate stream, so work that other threads enqueue
// meanwhile, also on this stream, is not part of the graph. One graph is
// recorded at a time. In the recording thread the stream takes launches only;
// other calls throw std::logic_error. A library that sets itself up at its
// first launch (cuBLAS) must have been used before.
//
// A kernel of the graph that reports an error (ErrorRecord) fails the operation
// that launched the graph, and the failure names the recorded operation, with
// its line and its inputs. For this each launch first writes a word
// (CudaApi::WriteWord), unless the graph is told that no kernel reports.
//
// Errors: the constructor throws what `launches` throws, and
// std::runtime_error, with CUDA's message, if CUDA cannot record the graph.
// Launch throws std::runtime_error, which the stream's Launch makes an
// AsyncError. Thread-safety: Launch is const, and for one stream only.
// Ownership: the stream outlives it. Launches that are enqueued still run when
// it is destroyed.
//
// CudaGraph has run on a model of a GPU (fake_cuda.h) only.

#ifndef D2L_COMMON_DEVICE_CUDA_STREAM_CUDA_GRAPH_H_
#define D2L_COMMON_DEVICE_CUDA_STREAM_CUDA_GRAPH_H_

#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/device/cuda/cuda_api.h"
#include "common/device/cuda/stream/cuda_stream.h"
#include "common/device/memory/storage.h"
#include "common/device/op_label.h"

namespace d2l {

class CudaGraph {
 public:
  // may_report: false if no kernel reports an error.
  CudaGraph(CudaStream& stream, absl::FunctionRef<void()> launches,
            bool may_report = true);
  ~CudaGraph();
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  // Call it in a launch of the stream.
  void Launch(const CudaLaunch& to) const;

  // If this thread records a graph: keeps the memory, which kernels use, as
  // long as the graph.
  static void Keep(const StorageRef& memory);

 private:
  friend class CudaStream;

  // The graph that this thread records on `stream`; null for none.
  static CudaGraph* RecordedOn(const CudaStream& stream);
  void Add(const OpLabel& label,
           absl::FunctionRef<void(const CudaLaunch&)> launch);

  CudaStream& stream_;
  CudaGraphHandle handle_ = nullptr;
  // Of the recorded operations; null if none reports an error.
  std::shared_ptr<std::vector<OpLabel>> labels_;
  bool long_kernel_ = false;  // see internal::long_kernel_launched
  std::vector<StorageRef> kept_;
};

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_CUDA_STREAM_CUDA_GRAPH_H_
