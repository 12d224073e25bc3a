// cuBLAS, loaded when it is first used.
//
//   const BlasLibrary& blas = Blas();
//   CheckBlas(blas.create(&handle));
//
// Programs are not linked with it: the library and its dependencies are larger
// than 500 MB, and programs that need no cuBLAS run without. A program built
// with cuBLAS's headers loads the library of their major version or of the
// other one (12 or 13): the functions below are the same in both.
//
// Thread-safe. A loaded library is never unloaded.

#ifndef D2L_COMMON_DEVICE_CUDA_BLAS_BLAS_LIBRARY_H_
#define D2L_COMMON_DEVICE_CUDA_BLAS_BLAS_LIBRARY_H_

#include <cublas_v2.h>

#include <string>
#include <vector>

namespace d2l {

// The functions used, each with its type in cublas_api.h, under the names of
// cublas_v2.h.
struct BlasLibrary {
  decltype(&cublasCreate_v2) create;
  decltype(&cublasDestroy_v2) destroy;
  decltype(&cublasSetStream_v2) set_stream;
  decltype(&cublasSetWorkspace_v2) set_workspace;
  decltype(&cublasSetMathMode) set_math_mode;
  decltype(&cublasGetStatusName) status_name;
  decltype(&cublasGetStatusString) status_string;
  decltype(&cublasSgemm_v2_64) sgemm;
  decltype(&cublasDgemm_v2_64) dgemm;
  decltype(&cublasSgemmStridedBatched_64) sgemm_batched;
  decltype(&cublasDgemmStridedBatched_64) dgemm_batched;
};

// The library of this program, from BlasFolders(). Throws as LoadBlas does,
// every time until it is found.
const BlasLibrary& Blas();

// Makes Blas() return `blas` from now on; null restores the library. Do not
// call it while a stream has a handle.
void ReplaceBlasForTesting(const BlasLibrary* blas);

// Folders in the order in which they are searched. "" stands for the system's
// own search: LD_LIBRARY_PATH, then what the system has.
std::vector<std::string> BlasFolders();

// Throws std::runtime_error, with the places searched and what to do, if no
// library provides all functions.
BlasLibrary LoadBlas(const std::vector<std::string>& folders);

// Throws std::runtime_error on an error; it becomes the operation's failure.
void CheckBlas(cublasStatus_t status);

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_CUDA_BLAS_BLAS_LIBRARY_H_
