#include "common/parallel/nccl/nccl_library.h"

#include <dlfcn.h>

#include <atomic>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace d2l {
namespace {

constexpr char kWhatToDo[] =
    "Install NVIDIA's package (sudo apt-get install libnccl2, from the "
    "repository that CUDA comes from), or set LD_LIBRARY_PATH to the folder of "
    "another one; PyTorch brings one, which find / -name 'libnccl.so.2' shows; "
    "or add up without it: --allreduce=split";

template <typename Function>
bool Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

std::atomic<const NcclLibrary*> replacement{nullptr};

}  // namespace

absl::StatusOr<NcclLibrary> LoadNccl(const std::string& name) {
  void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const std::string error = dlerror();
    // One that is there, and lacks a library that it needs, for instance.
    const bool absent =
        absl::StrContains(error, absl::StrCat(name, ": cannot open"));
    return absl::NotFoundError(absl::StrCat(
        "there is no ", name,
        ", NVIDIA's NCCL, in LD_LIBRARY_PATH and the system's folders",
        absent ? "" : absl::StrCat(" that can be loaded (", error, ")"), ". ",
        kWhatToDo));
  }
  NcclLibrary nccl;
  const bool complete =
      Find(library, "ncclGetUniqueId", &nccl.get_unique_id) &&
      Find(library, "ncclCommInitRankConfig", &nccl.comm_init_rank_config) &&
      Find(library, "ncclCommAbort", &nccl.comm_abort) &&
      Find(library, "ncclCommGetAsyncError", &nccl.comm_get_async_error) &&
      Find(library, "ncclAllReduce", &nccl.all_reduce) &&
      Find(library, "ncclGroupStart", &nccl.group_start) &&
      Find(library, "ncclGroupEnd", &nccl.group_end) &&
      Find(library, "ncclGetErrorString", &nccl.get_error_string);
  if (!complete) {
    const std::string error = dlerror();
    dlclose(library);
    return absl::FailedPreconditionError(
        absl::StrCat(name, " lacks a function that NCCL has from 2.14 on (",
                     error, "). ", kWhatToDo));
  }
  return nccl;
}

absl::StatusOr<const NcclLibrary*> Nccl() {
  if (const NcclLibrary* const other = replacement) return other;
  static const auto& loaded = *new absl::StatusOr<NcclLibrary>(LoadNccl());
  if (!loaded.ok()) return loaded.status();
  return &*loaded;
}

void ReplaceNcclForTesting(const NcclLibrary* nccl) { replacement = nccl; }

}  // namespace d2l
