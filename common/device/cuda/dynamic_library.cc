#include "common/device/cuda/dynamic_library.h"

#include <dlfcn.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace d2l {
namespace {

// What the system says of its latest failure.
std::string SystemsError() {
  const char* const error = dlerror();
  return error == nullptr ? "unknown error" : error;
}

}  // namespace

std::vector<std::string> CudaLibraryNames(const std::string& stem,
                                          int headers_version) {
  std::vector<std::string> names = {absl::StrCat(stem, headers_version)};
  for (const int version : {13, 12}) {
    if (version != headers_version)
      names.push_back(absl::StrCat(stem, version));
  }
  return names;
}

void LoadLibrary(const std::vector<std::string>& names,
                 const std::vector<std::string>& folders,
                 absl::FunctionRef<void(void*)> find) {
  std::string unusable;
  for (const std::string& name : names) {
    for (const std::string& folder : folders) {
      const std::string path =
          folder.empty() ? name : absl::StrCat(folder, "/", name);
      void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (library == nullptr) {
        // One that is there, and lacks a library that it needs, for instance.
        const std::string error = SystemsError();
        if (!absl::StrContains(error, absl::StrCat(path, ": cannot open"))) {
          absl::StrAppend(&unusable, " Not usable: ", error, ".");
        }
        continue;
      }
      try {
        find(library);
        return;
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
  throw std::runtime_error(
      absl::StrCat("there is no ", absl::StrJoin(names, " or "), " in ",
                   absl::StrJoin(places, ", "), ".", unusable));
}

void* internal::FindSymbol(void* library, const char* name) {
  void* const found = dlsym(library, name);
  if (found == nullptr) throw std::runtime_error(SystemsError());
  return found;
}

}  // namespace d2l
