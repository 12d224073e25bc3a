#include "common/device/cuda/blas/cuda_blas.h"

#include <cublas_v2.h>

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/device/cuda/blas/blas_library.h"

namespace d2l {
namespace {

// The sizes that NVIDIA recommends: larger from Hopper (sm_90) on.
std::size_t WorkspaceBytes(const std::string& capability) {
  int number = 0;
  const bool known =
      absl::SimpleAtoi(absl::StripPrefix(capability, "sm_"), &number);
  return std::size_t{known && number >= 90 ? 32u : 4u} << 20;
}

class BlasOfStream {
 public:
  explicit BlasOfStream(const CudaLaunch& launch)
      : blas_(Blas()), api_(launch.owner->gpu().api()) {
    CheckBlas(blas_.create(&handle_));
    const std::size_t bytes = WorkspaceBytes(launch.owner->gpu().capability());
    if (const int error = api_.Allocate(bytes, &workspace_)) {
      blas_.destroy(handle_);
      throw std::runtime_error(absl::StrCat(
          "CUDA could not allocate memory for cuBLAS's workspace, ", bytes,
          " bytes: ", api_.ErrorText(error)));
    }
    workspace_bytes_ = bytes;
  }
  ~BlasOfStream() {
    blas_.destroy(handle_);
    api_.Free(workspace_);
  }
  BlasOfStream(const BlasOfStream&) = delete;
  BlasOfStream& operator=(const BlasOfStream&) = delete;

  // For launches on this stream: the owner's, or a recorded one (CudaGraph),
  // which runs on the owner's, so they may share the workspace.
  cublasHandle_t HandleOn(CudaStreamHandle stream) {
    if (stream != stream_) {
      // Set the stream first: that resets the workspace.
      CheckBlas(blas_.set_stream(handle_, stream));
      CheckBlas(blas_.set_workspace(handle_, workspace_, workspace_bytes_));
      stream_ = stream;
    }
    return handle_;
  }

 private:
  const BlasLibrary& blas_;
  CudaApi& api_;
  cublasHandle_t handle_ = nullptr;
  void* workspace_ = nullptr;
  std::size_t workspace_bytes_ = 0;
  CudaStreamHandle stream_ = nullptr;
};

}  // namespace

cublasHandle_t BlasOf(const CudaLaunch& launch) {
  std::shared_ptr<void>& state = launch.owner->library_state();
  if (state == nullptr) state = std::make_shared<BlasOfStream>(launch);
  return static_cast<BlasOfStream*>(state.get())->HandleOn(launch.stream);
}

}  // namespace d2l
