#include "common/device/cuda/blas_library.h"

#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/device/cuda/dynamic_library.h"

namespace d2l {
namespace {

// Throws std::runtime_error if one is missing.
BlasLibrary FunctionsOf(void* library) {
  BlasLibrary blas;
  FindFunction(library, "cublasCreate_v2", &blas.create);
  FindFunction(library, "cublasDestroy_v2", &blas.destroy);
  FindFunction(library, "cublasSetStream_v2", &blas.set_stream);
  FindFunction(library, "cublasSetWorkspace_v2", &blas.set_workspace);
  FindFunction(library, "cublasSetMathMode", &blas.set_math_mode);
  FindFunction(library, "cublasGetStatusName", &blas.status_name);
  FindFunction(library, "cublasGetStatusString", &blas.status_string);
  FindFunction(library, "cublasSgemm_v2_64", &blas.sgemm);
  FindFunction(library, "cublasDgemm_v2_64", &blas.dgemm);
  FindFunction(library, "cublasSgemmStridedBatched_64", &blas.sgemm_batched);
  FindFunction(library, "cublasDgemmStridedBatched_64", &blas.dgemm_batched);
  return blas;
}

}  // namespace

const BlasLibrary& Blas() {
  static const BlasLibrary blas = LoadBlas(BlasFolders());
  return blas;
}

std::vector<std::string> BlasFolders() {
  // The toolkit's folder is that of the machine where this was compiled.
  return {"", D2L_CUDA_LIBRARY_FOLDER, "/usr/local/cuda/lib64"};
}

BlasLibrary LoadBlas(const std::vector<std::string>& folders) {
  BlasLibrary blas;
  try {
    LoadLibrary(CudaLibraryNames("libcublas.so.", CUBLAS_VER_MAJOR), folders,
                [&](void* library) { blas = FunctionsOf(library); });
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(absl::StrCat(
        "it needs cuBLAS, and ", error.what(),
        " Install the CUDA toolkit, or set LD_LIBRARY_PATH to a folder that "
        "has one; PyTorch brings one, which find / -name 'libcublas.so.1*' "
        "shows."));
  }
  return blas;
}

void CheckBlas(cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const BlasLibrary& blas = Blas();
  throw std::runtime_error(absl::StrCat("cuBLAS: ", blas.status_name(status),
                                        ": ", blas.status_string(status)));
}

}  // namespace d2l
