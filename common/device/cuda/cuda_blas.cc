#include "common/device/cuda/cuda_blas.h"

#include <cublas_v2.h>

#include <cstddef>
#include <memory>
#include <stdexcept>

#include "absl/strings/str_cat.h"

namespace d2l {
namespace {

// What NVIDIA recommends.
constexpr std::size_t kWorkspaceOnHopper = std::size_t{32} << 20;
constexpr std::size_t kWorkspace = std::size_t{4} << 20;

class Blas {
 public:
  explicit Blas(const CudaLaunch& launch) : api_(launch.owner->gpu().api()) {
    CheckBlas(cublasCreate(&handle_));
    const std::size_t bytes = launch.owner->gpu().capability() == "sm_90"
                                  ? kWorkspaceOnHopper
                                  : kWorkspace;
    if (api_.Allocate(bytes, &workspace_) != 0) {
      cublasDestroy(handle_);
      throw std::runtime_error(absl::StrCat(
          "there is no memory for cuBLAS's workspace, ", bytes, " bytes"));
    }
    // The stream first: setting it resets the workspace.
    cublasSetStream(handle_, launch.stream);
    cublasSetWorkspace(handle_, workspace_, bytes);
    cublasSetMathMode(handle_, CUBLAS_DEFAULT_MATH);
  }
  ~Blas() {
    cublasDestroy(handle_);
    api_.Free(workspace_);
  }
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;

  cublasHandle_t handle() const { return handle_; }

 private:
  CudaApi& api_;
  cublasHandle_t handle_ = nullptr;
  void* workspace_ = nullptr;
};

}  // namespace

cublasHandle_t BlasOf(const CudaLaunch& launch) {
  std::shared_ptr<void>& state = launch.owner->library_state();
  if (state == nullptr) state = std::make_shared<Blas>(launch);
  return static_cast<Blas*>(state.get())->handle();
}

void CheckBlas(cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error(absl::StrCat("cuBLAS: ", cublasGetStatusName(status),
                                        ": ", cublasGetStatusString(status)));
}

}  // namespace d2l
