#include "common/device/cuda/stream/cuda_graph.h"

#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/device/cuda/cuda_errors.h"
#include "common/device/cuda/stream/stream_log.h"

namespace d2l {
namespace {

thread_local CudaGraph* recording = nullptr;

void Check(CudaApi& api, int error, const std::string& what) {
  if (error == 0) return;
  throw std::runtime_error(
      absl::StrCat("CUDA does not ", what, ": ", api.ErrorText(error)));
}

}  // namespace

CudaGraph::CudaGraph(CudaStream& stream, absl::FunctionRef<void()> launches,
                     bool may_report)
    : stream_(stream),
      labels_(may_report ? std::make_shared<std::vector<OpLabel>>() : nullptr) {
  if (internal::enqueue_mode) internal::RefuseCall(stream, "CudaGraph");
  CudaApi& api = stream.gpu().api();
  const std::lock_guard<std::mutex> lock(stream.recording_);
  int error = stream.gpu().MakeCurrent();
  if (error == 0 && stream.recorded_ == nullptr) {
    error = api.CreateStream(&stream.recorded_);
  }
  Check(api, error, "make a stream to record");
  error = api.BeginCapture(stream.recorded_);
  std::exception_ptr thrown;
  if (error == 0) {
    recording = this;
    internal::enqueue_mode = internal::kCapturing;
    internal::long_kernel_launched = false;
    try {
      launches();
    } catch (...) {
      thrown = std::current_exception();
    }
    long_kernel_ = internal::long_kernel_launched;
    internal::enqueue_mode = internal::kMayEnqueue;
    recording = nullptr;
    error = api.EndCapture(stream.recorded_, &handle_);
  }
  if (thrown != nullptr) {
    if (error == 0) api.DestroyGraph(handle_);
    std::rethrow_exception(thrown);
  }
  Check(api, error, "record a graph");
}

CudaGraph::~CudaGraph() {
  // Where CUDA cannot be called, the graph is not destroyed.
  if (internal::in_cuda_callback || !stream_.is_running()) return;
  if (stream_.gpu().MakeCurrent() != 0) return;
  stream_.gpu().api().DestroyGraph(handle_);
}

void CudaGraph::Launch(const CudaLaunch& to) const {
  CudaApi& api = stream_.gpu().api();
  if (labels_ != nullptr) {
    stream_.log_->AddGraph(to.errors.number, labels_);
    ErrorRecord* const records = stream_.memory_->records;
    ++internal::kernels_launched;
    Check(api,
          api.WriteWord(to.stream, &records->graph_launch,
                        to.errors.WordOf(records)),
          "write which operation launches a graph");
  }
  ++internal::kernels_launched;
  if (long_kernel_) internal::long_kernel_launched = true;
  Check(api, api.LaunchGraph(handle_, to.stream), "launch a graph");
}

void CudaGraph::Keep(const StorageRef& memory) {
  if (recording != nullptr) recording->kept_.push_back(memory);
}

CudaGraph* CudaGraph::RecordedOn(const CudaStream& stream) {
  return recording != nullptr && &recording->stream_ == &stream ? recording
                                                                : nullptr;
}

void CudaGraph::Add(const OpLabel& label,
                    absl::FunctionRef<void(const CudaLaunch&)> launch) {
  const CudaGpu& gpu = stream_.gpu();
  ErrorReporter errors = {};
  if (labels_ != nullptr) {
    errors = {stream_.memory_->records,
              ErrorReporter::kInGraph + labels_->size()};
    labels_->push_back(label);
  }
  launch({stream_.recorded_, errors, gpu.multiprocessors(), &stream_});
  Check(gpu.api(), gpu.api().TakeLaunchError(),
        absl::StrCat("record ", label.name(), ", requested at ",
                     label.requested_at().ToString()));
}

}  // namespace d2l
