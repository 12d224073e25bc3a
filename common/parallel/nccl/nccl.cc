#include "common/parallel/nccl/nccl.h"

#include <dlfcn.h>

#include <functional>
#include <map>
#include <stdexcept>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"

namespace d2l {
namespace {

const NcclLibrary* replacement = nullptr;

// ncclDataType_t.
const std::map<DType, int>& types =
    *new std::map<DType, int>{{DType::kUInt8, 1},
                              {DType::kInt64, 4},
                              {DType::kFloat32, 7},
                              {DType::kFloat64, 8}};

void Check(const NcclLibrary& nccl, int result) {
  if (result == 0) return;
  throw std::runtime_error(absl::StrCat("NCCL: ", nccl.get_error_string(result),
                                        "; NCCL_DEBUG=INFO makes it say more"));
}

// One for each GPU, in this order. They are kept: NCCL may not be called when
// the program ends.
const std::vector<NcclComm>& Communicators(const NcclLibrary& nccl,
                                           const std::vector<int>& gpus) {
  static auto& made = *new std::map<std::vector<int>, std::vector<NcclComm>>;
  std::vector<NcclComm>& comms = made[gpus];
  if (comms.empty()) {
    std::vector<NcclComm> connected(gpus.size());
    Check(nccl, nccl.comm_init_all(connected.data(),
                                   static_cast<int>(gpus.size()), gpus.data()));
    comms = std::move(connected);
  }
  return comms;
}

}  // namespace

absl::StatusOr<NcclLibrary> LoadNccl(const std::string& name) {
  NcclLibrary nccl;
  void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  const auto find = [library](const char* function, auto* pointer) {
    *reinterpret_cast<void**>(pointer) = dlsym(library, function);
    return *pointer != nullptr;
  };
  if (library != nullptr && find("ncclCommInitAll", &nccl.comm_init_all) &&
      find("ncclAllReduce", &nccl.all_reduce) &&
      find("ncclGroupStart", &nccl.group_start) &&
      find("ncclGroupEnd", &nccl.group_end) &&
      find("ncclGetErrorString", &nccl.get_error_string)) {
    return nccl;
  }
  return absl::NotFoundError(absl::StrCat(
      "NVIDIA's NCCL cannot be loaded (", dlerror(),
      "). Install it (sudo apt-get install libnccl2, from the repository that "
      "CUDA comes from), or set LD_LIBRARY_PATH to the folder of another one; "
      "PyTorch brings one, which find / -name 'libnccl.so.2' shows; or add up "
      "without it: --allreduce=split"));
}

void ReplaceNcclForTesting(const NcclLibrary* nccl) { replacement = nccl; }

absl::StatusOr<const NcclLibrary*> Nccl() {
  if (replacement != nullptr) return replacement;
  static const auto& loaded = *new absl::StatusOr<NcclLibrary>(LoadNccl());
  if (!loaded.ok()) return loaded.status();
  return &*loaded;
}

std::vector<std::uint64_t> EnqueueNcclSum(
    const std::vector<CudaStream*>& streams, absl::Span<const OpLabel> labels,
    absl::Span<void* const> data, std::int64_t numel, DType dtype) {
  // NCCL requires one order of all calls on all GPUs.
  static Mutex& mutex = *new Mutex;
  const MutexLock lock(mutex);
  const NcclLibrary& nccl = **Nccl();
  std::vector<int> gpus;
  for (CudaStream* const stream : streams) {
    gpus.push_back(stream->gpu().index());
  }
  const std::vector<NcclComm>& comms = Communicators(nccl, gpus);
  std::vector<CudaStreamHandle> handles;
  std::vector<std::uint64_t> numbers(streams.size());
  // Launches on the streams from handles.size() on, each within the launch on
  // the one before: NCCL enqueues its kernels when the group ends, and all of
  // them must be enqueued as a part of their streams' operations. An exception
  // fails the operation on every stream.
  const std::function<void()> launch = [&] {
    const std::size_t i = handles.size();
    if (i < streams.size()) {
      numbers[i] = streams[i]->Launch(labels[i], [&](const CudaLaunch& to) {
        const absl::Cleanup back = [&] { to.owner->gpu().MakeCurrent(); };
        handles.push_back(to.stream);
        launch();
      });
      return;
    }
    Check(nccl, nccl.group_start());
    int result = 0;
    for (std::size_t j = 0; j < comms.size() && result == 0; ++j) {
      constexpr int kSum = 0;
      result =
          nccl.all_reduce(data[j], data[j], static_cast<std::size_t>(numel),
                          types.at(dtype), kSum, comms[j], handles[j]);
    }
    const int ended = nccl.group_end();
    Check(nccl, result != 0 ? result : ended);
  };
  launch();
  return numbers;
}

}  // namespace d2l
