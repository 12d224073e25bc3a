#include "common/parallel/nccl/nccl.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/device/failure.h"

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

bool IsError(int result) {
  return result != kNcclSuccess && result != kNcclInProgress;
}

int NcclType(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return kNcclFloat32;
    case DType::kFloat64:
      return kNcclFloat64;
    case DType::kInt64:
      return kNcclInt64;
    case DType::kUInt8:
      return kNcclUint8;
  }
  throw std::invalid_argument(
      absl::StrFormat("[nccl] it cannot add %s", DTypeName(dtype)));
}

// Polls the groups of the process. Its thread is never ended: at the end of the
// program it ends kernels that wait for a process that is gone. Otherwise the
// streams would wait for ever, since they are drained after all functions that
// Watch could register with atexit.
class Watch {
 public:
  static Watch& Get() {
    static Watch& watch = *new Watch;
    return watch;
  }

  NcclGroup& GroupOf(const std::vector<CudaStream*>& streams,
                     const std::optional<NcclRanks>& ranks) {
    Slot& slot = SlotOf(streams);
    const MutexLock making(slot.mutex);
    if (slot.group != nullptr) return *slot.group;
    const absl::StatusOr<const NcclLibrary*> nccl = Nccl();
    if (!nccl.ok()) {
      throw std::runtime_error(std::string(nccl.status().message()));
    }
    slot.group = std::make_unique<NcclGroup>(**nccl, streams, ranks);
    const MutexLock lock(mutex_);
    if (made_.empty()) std::thread([this] { Run(); }).detach();
    made_.push_back(slot.group.get());
    return *slot.group;
  }

 private:
  // Its lock is held while the group is made, which waits for other processes.
  struct Slot {
    Mutex mutex;
    std::unique_ptr<NcclGroup> group ABSL_GUARDED_BY(mutex);
  };

  Slot& SlotOf(const std::vector<CudaStream*>& streams) {
    const MutexLock lock(mutex_);
    return slots_[streams];
  }

  [[noreturn]] void Run() {
    for (;;) {
      std::vector<NcclGroup*> made;
      {
        const MutexLock lock(mutex_);
        made = made_;
      }
      for (NcclGroup* const group : made) group->Poll();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }

  Mutex mutex_;
  std::map<std::vector<CudaStream*>, Slot> slots_ ABSL_GUARDED_BY(mutex_);
  std::vector<NcclGroup*> made_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<NcclLibrary> LoadNccl(const std::string& name) {
  void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const std::string error = dlerror();
    // A library that is there, but lacks one that it needs, for instance.
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

struct NcclGroup::Call {
  absl::Span<const OpLabel> labels;
  absl::Span<void* const> data;
  std::size_t numel;
  int dtype;
  std::vector<CudaStreamHandle> streams;
  std::vector<ErrorReporter> reporters;
  std::vector<Sum> sums;
  std::string error;
};

NcclGroup::NcclGroup(const NcclLibrary& nccl, std::vector<CudaStream*> streams,
                     const std::optional<NcclRanks>& ranks)
    : nccl_(nccl), streams_(std::move(streams)) {
  order_.resize(streams_.size());
  std::iota(order_.begin(), order_.end(), 0);
  std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
    return streams_[a]->gpu().index() < streams_[b]->gpu().index();
  });
  const int count = static_cast<int>(streams_.size());
  NcclRanks mine = ranks.value_or(NcclRanks{{}, 0, count});
  timeout_seconds_ = mine.timeout_seconds;
  const auto check = [&](int result, const char* what) {
    if (result == kNcclSuccess) return;
    const bool shared = ranks && result == kNcclInvalidUsage;
    throw std::runtime_error(absl::StrFormat(
        "[nccl] NCCL cannot %s: %s%s", what, Text(result),
        shared ? "; processes need GPUs of their own: --devices=auto where "
                 "there are enough, or CUDA_VISIBLE_DEVICES for each process"
               : ""));
  };
  if (!ranks) check(nccl_.get_unique_id(&mine.id), "make an id");
  const MutexLock lock(mutex_);
  comms_.resize(streams_.size());
  // Each waits for all the others.
  int result = nccl_.group_start();
  for (int i = 0; i < count && !IsError(result); ++i) {
    streams_[i]->gpu().MakeCurrent();
    NcclConfig config;
    result = nccl_.comm_init_rank_config(&comms_[i], mine.all, mine.id,
                                         mine.first + i, &config);
  }
  const int ended = nccl_.group_end();
  result = Await(IsError(result) ? result : ended);
  if (result != kNcclSuccess) GiveUp(result);
  check(result, "connect the GPUs");
}

std::vector<NcclGroup::Sum> NcclGroup::AllReduce(
    absl::Span<const OpLabel> labels, absl::Span<void* const> data,
    std::int64_t numel, DType dtype) {
  Call call = {
      labels, data, static_cast<std::size_t>(numel), NcclType(dtype), {}, {},
      {},     {}};
  // NCCL requires one order of all calls on all GPUs.
  static Mutex& launching = *new Mutex;
  const MutexLock launching_lock(launching);
  call.streams.resize(streams_.size());
  call.reporters.resize(streams_.size());
  call.sums.resize(streams_.size());
  Outstanding outstanding;
  if (std::isfinite(timeout_seconds_)) {
    for (CudaStream* const stream : streams_) {
      outstanding.reached.push_back(stream->Record());
    }
  }
  Launch(0, call);
  outstanding.reporters = std::move(call.reporters);
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    call.sums[i].done = streams_[i]->Record();
    outstanding.done.push_back(call.sums[i].done);
  }
  const MutexLock lock(mutex_);
  outstanding_.push_back(std::move(outstanding));
  return std::move(call.sums);
}

void NcclGroup::Launch(std::size_t begun, Call& call) {
  if (begun == order_.size()) {
    Enqueue(call);
    return;
  }
  // All streams are in a launch at the same time, entered in one order.
  const std::size_t rank = order_[begun];
  call.sums[rank].number =
      streams_[rank]->Launch(call.labels[rank], [&](const CudaLaunch& to) {
        call.streams[rank] = to.stream;
        call.reporters[rank] = to.errors;
        std::exception_ptr other;
        try {
          Launch(begun + 1, call);
        } catch (const AsyncError&) {
          other = std::current_exception();
        }
        to.owner->gpu().MakeCurrent();
        // The operation fails on all streams or on none, for one reason.
        if (!call.error.empty()) throw std::runtime_error(call.error);
        if (other != nullptr) std::rethrow_exception(other);
      });
}

void NcclGroup::Enqueue(Call& call) {
  const MutexLock lock(mutex_);
  call.error = failed_;
  if (!failed_.empty()) return;
  int result = nccl_.group_start();
  for (std::size_t i = 0; i < comms_.size() && !IsError(result); ++i) {
    result = nccl_.all_reduce(call.data[i], call.data[i], call.numel,
                              call.dtype, kNcclSum, comms_[i], call.streams[i]);
  }
  const int ended = nccl_.group_end();
  if (!IsError(result)) result = ended;
  if (IsError(result)) {
    call.error = absl::StrCat("NCCL: ", Text(result));
    return;
  }
  result = Await(result);
  if (result != kNcclSuccess) GiveUp(result);
  call.error = failed_;
}

void NcclGroup::Poll() {
  const MutexLock lock(mutex_);
  const auto done = [](const Event& event) { return event.Query(); };
  while (!outstanding_.empty() &&
         std::all_of(outstanding_.front().done.begin(),
                     outstanding_.front().done.end(), done)) {
    outstanding_.pop_front();
  }
  if (outstanding_.empty() || !failed_.empty()) return;
  const int error = State();
  if (IsError(error)) return GiveUp(error);
  Outstanding& oldest = outstanding_.front();
  if (!std::all_of(oldest.reached.begin(), oldest.reached.end(), done)) return;
  if (!oldest.since) oldest.since.emplace();
  if (oldest.since->Seconds() > timeout_seconds_) GiveUp(kNcclInProgress);
}

int NcclGroup::State() {
  int state = kNcclSuccess;
  for (const NcclComm comm : comms_) {
    int error = kNcclSuccess;
    const int result = nccl_.comm_get_async_error(comm, &error);
    if (result != kNcclSuccess) error = result;
    if (IsError(error)) return error;
    if (error == kNcclInProgress) state = error;
  }
  return state;
}

int NcclGroup::Await(int result) {
  const Timer timer;
  while (result == kNcclInProgress && timer.Seconds() <= timeout_seconds_) {
    std::this_thread::yield();
    result = State();
  }
  return result;
}

void NcclGroup::GiveUp(int error) {
  failed_ = absl::StrCat("NCCL: ", Text(error), "; start the program again");
  // Reports the failure before the kernels end.
  if (!outstanding_.empty()) {
    for (const ErrorReporter& to : outstanding_.front().reporters) {
      ReportFromHost(to, DeviceError::kNccl, 0, error);
    }
  }
  for (const NcclComm comm : comms_) {
    if (comm != nullptr) nccl_.comm_abort(comm);
  }
  comms_.clear();
}

std::string NcclGroup::Text(int result) const {
  return result == kNcclInProgress
             ? absl::StrFormat("another process has not answered for %g s",
                               timeout_seconds_)
             : nccl_.get_error_string(result);
}

NcclGroup& NcclGroupOf(const std::vector<CudaStream*>& streams,
                       const std::optional<NcclRanks>& ranks) {
  return Watch::Get().GroupOf(streams, ranks);
}

}  // namespace d2l
