#include "common/device/cuda/cuda_blas.h"

#include <cublas_v2.h>

#include <cstddef>
#include <memory>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "common/device/cuda/blas_library.h"

namespace d2l {
namespace {

// What NVIDIA recommends.
constexpr std::size_t kWorkspaceOnHopper = std::size_t{32} << 20;
constexpr std::size_t kWorkspace = std::size_t{4} << 20;

class BlasOfStream {
 public:
  explicit BlasOfStream(const CudaLaunch& launch)
      : blas_(Blas()), api_(launch.owner->gpu().api()) {
    CheckBlas(blas_.create(&handle_));
    const std::size_t bytes = launch.owner->gpu().capability() == "sm_90"
                                  ? kWorkspaceOnHopper
                                  : kWorkspace;
    if (api_.Allocate(bytes, &workspace_) != 0) {
      blas_.destroy(handle_);
      throw std::runtime_error(absl::StrCat(
          "there is no memory for cuBLAS's workspace, ", bytes, " bytes"));
    }
    // The stream first: setting it resets the workspace.
    blas_.set_stream(handle_, launch.stream);
    blas_.set_workspace(handle_, workspace_, bytes);
  }
  ~BlasOfStream() {
    blas_.destroy(handle_);
    api_.Free(workspace_);
  }
  BlasOfStream(const BlasOfStream&) = delete;
  BlasOfStream& operator=(const BlasOfStream&) = delete;

  cublasHandle_t handle() const { return handle_; }

 private:
  const BlasLibrary& blas_;
  CudaApi& api_;
  cublasHandle_t handle_ = nullptr;
  void* workspace_ = nullptr;
};

}  // namespace

cublasHandle_t BlasOf(const CudaLaunch& launch) {
  std::shared_ptr<void>& state = launch.owner->library_state();
  if (state == nullptr) state = std::make_shared<BlasOfStream>(launch);
  return static_cast<BlasOfStream*>(state.get())->handle();
}

}  // namespace d2l
