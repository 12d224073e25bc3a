#include "common/device/cuda/blas/blas_library.h"

#include <dlfcn.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace d2l {
namespace {

// The system's message for its latest failure.
std::string SystemsError() {
  const char* const error = dlerror();
  return error == nullptr ? "unknown error" : error;
}

template <typename Function>
void FindFunction(void* library, const char* name, Function* function) {
  void* const found = dlsym(library, name);
  if (found == nullptr) throw std::runtime_error(SystemsError());
  *function = reinterpret_cast<Function>(found);
}

// Throws std::runtime_error if a function is missing.
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

// The headers' version comes first: an older driver supports no newer one.
std::vector<std::string> Names() {
  std::vector<std::string> names = {
      absl::StrCat("libcublas.so.", CUBLAS_VER_MAJOR)};
  for (const int version : {13, 12}) {
    if (version != CUBLAS_VER_MAJOR) {
      names.push_back(absl::StrCat("libcublas.so.", version));
    }
  }
  return names;
}

const BlasLibrary* replacement = nullptr;

}  // namespace

const BlasLibrary& Blas() {
  if (replacement != nullptr) return *replacement;
  static const BlasLibrary blas = LoadBlas(BlasFolders());
  return blas;
}

void ReplaceBlasForTesting(const BlasLibrary* blas) { replacement = blas; }

std::vector<std::string> BlasFolders() {
  // The toolkit's folder is that of the machine where this was compiled.
  return {"", D2L_CUDA_LIBRARY_FOLDER, "/usr/local/cuda/lib64"};
}

BlasLibrary LoadBlas(const std::vector<std::string>& folders) {
  std::string unusable;
  for (const std::string& name : Names()) {
    for (const std::string& folder : folders) {
      const std::string path =
          folder.empty() ? name : absl::StrCat(folder, "/", name);
      void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (library == nullptr) {
        // The file exists but cannot be loaded: it may need a missing library.
        const std::string error = SystemsError();
        if (!absl::StrContains(error, absl::StrCat(path, ": cannot open"))) {
          absl::StrAppend(&unusable, " Not usable: ", error, ".");
        }
        continue;
      }
      try {
        return FunctionsOf(library);
      } catch (const std::runtime_error& error) {
        absl::StrAppend(&unusable, " Not usable: ", error.what(), ".");
        dlclose(library);
      }
    }
  }
  std::vector<std::string> places;
  for (const std::string& folder : folders) {
    places.push_back(folder.empty() ? "LD_LIBRARY_PATH and the system's folders"
                                    : folder);
  }
  throw std::runtime_error(absl::StrCat(
      "it needs cuBLAS, and there is no ", absl::StrJoin(Names(), " or "),
      " in ", absl::StrJoin(places, ", "), ".", unusable,
      " Install the CUDA toolkit, or set LD_LIBRARY_PATH to a folder that has "
      "one; PyTorch brings one, which find / -name 'libcublas.so.1*' shows."));
}

void CheckBlas(cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const BlasLibrary& blas = Blas();
  throw std::runtime_error(absl::StrCat("cuBLAS: ", blas.status_name(status),
                                        ": ", blas.status_string(status)));
}

}  // namespace d2l
