// Libraries that are loaded when they are first needed, so that programs run
// without them.
//
//   Functions functions;
//   LoadLibrary({"libcublas.so.13"}, {"", "/usr/local/cuda/lib64"},
//               [&](void* library) {
//                 FindFunction(library, "cublasCreate_v2", &functions.create);
//               });
//
// Thread-safe. A library that is loaded stays.

#ifndef D2L_COMMON_DEVICE_CUDA_DYNAMIC_LIBRARY_H_
#define D2L_COMMON_DEVICE_CUDA_DYNAMIC_LIBRARY_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"

namespace d2l {

// Names of the versions of a library of CUDA's, `stem` and a major version, in
// the order in which they are looked for: that of the headers first, since an
// older driver knows no newer one.
std::vector<std::string> CudaLibraryNames(const std::string& stem,
                                          int headers_version);

// Loads the first library for which `find`, called with what dlopen returned,
// does not throw: each name in each folder, in that order. A folder "" stands
// for the system's own search: LD_LIBRARY_PATH, then what the system has.
// Throws std::runtime_error if there is none, which says where it looked:
// "there is no … in …".
void LoadLibrary(const std::vector<std::string>& names,
                 const std::vector<std::string>& folders,
                 absl::FunctionRef<void(void*)> find);

namespace internal {
void* FindSymbol(void* library, const char* name);
}  // namespace internal

// Throws std::runtime_error if the library has no such function.
template <typename Function>
void FindFunction(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(internal::FindSymbol(library, name));
}

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_CUDA_DYNAMIC_LIBRARY_H_
