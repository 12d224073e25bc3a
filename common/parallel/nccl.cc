#include "common/parallel/nccl.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/device/failure.h"

namespace d2l {
namespace {

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

void CheckGpus(absl::Span<CudaStream* const> streams) {
  if (streams.empty()) {
    throw std::invalid_argument(
        "[nccl] a stream for each GPU wanted; got none");
  }
  std::set<int> gpus;
  for (const CudaStream* stream : streams) {
    if (gpus.insert(stream->gpu().index()).second) continue;
    throw std::invalid_argument(absl::StrFormat(
        "[nccl] NCCL takes each GPU once; two of the devices, %s for one, are "
        "on GPU %d; add up by a schedule, such as "
        "AllReduceAlgorithm::kSplit (--allreduce=split)",
        stream->device().ToString(), stream->gpu().index()));
  }
}

// Looks after the groups of the process.
class Watch {
 public:
  static Watch& Get() {
    static Watch& watch = *new Watch;
    return watch;
  }

  NcclGroup& GroupOf(const std::vector<CudaStream*>& streams,
                     const std::optional<NcclRanks>& ranks) {
    const MutexLock lock(mutex_);
    const auto found = groups_.find(streams);
    if (found != groups_.end()) return *found->second;
    const absl::StatusOr<const NcclLibrary*> nccl = Nccl();
    if (!nccl.ok()) {
      throw std::runtime_error(std::string(nccl.status().message()));
    }
    NcclGroup& group = *groups_
                            .emplace(streams, std::make_unique<NcclGroup>(
                                                  **nccl, streams, ranks))
                            .first->second;
    if (!thread_.joinable()) {
      thread_ = std::thread([this] { Run(); });
      // Before the streams end, which came first.
      std::atexit([] { Get().Stop(); });
    }
    return group;
  }

 private:
  void Run() {
    const MutexLock lock(mutex_);
    while (!stopped_) {
      for (const auto& [streams, group] : groups_) group->Look();
      changed_.WaitFor(mutex_, std::chrono::milliseconds(100));
    }
  }

  void Stop() {
    {
      const MutexLock lock(mutex_);
      stopped_ = true;
      changed_.NotifyAll();
    }
    thread_.join();
  }

  Mutex mutex_;
  CondVar changed_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::vector<CudaStream*>, std::unique_ptr<NcclGroup>> groups_
      ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace

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
  CheckGpus(streams_);
  order_.resize(streams_.size());
  std::iota(order_.begin(), order_.end(), 0);
  std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
    return streams_[a]->gpu().index() < streams_[b]->gpu().index();
  });
  const int count = static_cast<int>(streams_.size());
  NcclRanks mine = ranks.value_or(NcclRanks{{}, 0, count});
  if (!ranks) Check(nccl_.get_unique_id(&mine.id), "make an id");
  const MutexLock lock(mutex_);
  comms_.resize(streams_.size());
  // Each waits for all the others.
  int result = nccl_.group_start();
  for (int i = 0; i < count && result == kNcclSuccess; ++i) {
    streams_[i]->gpu().MakeCurrent();
    result =
        nccl_.comm_init_rank(&comms_[i], mine.all, mine.id, mine.first + i);
  }
  const int ended = nccl_.group_end();
  Check(result != kNcclSuccess ? result : ended, "connect the GPUs");
}

std::vector<NcclGroup::Sum> NcclGroup::AllReduce(
    absl::Span<const OpLabel> labels, absl::Span<void* const> data,
    std::int64_t numel, DType dtype) {
  Call call = {
      labels, data, static_cast<std::size_t>(numel), NcclType(dtype), {}, {},
      {},     {}};
  // NCCL wants one order of all calls on all GPUs.
  static Mutex& launching = *new Mutex;
  const MutexLock launching_lock(launching);
  call.streams.resize(streams_.size());
  call.reporters.resize(streams_.size());
  call.sums.resize(streams_.size());
  Launch(0, call);
  Outstanding outstanding = {std::move(call.reporters), {}};
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
  // All streams are in a launch at a time, entered in one order.
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
  for (std::size_t i = 0; i < comms_.size() && result == kNcclSuccess; ++i) {
    result = nccl_.all_reduce(call.data[i], call.data[i], call.numel,
                              call.dtype, kNcclSum, comms_[i], call.streams[i]);
  }
  const int ended = nccl_.group_end();
  if (result == kNcclSuccess) result = ended;
  if (result != kNcclSuccess) call.error = Text(result);
}

void NcclGroup::Look() {
  const MutexLock lock(mutex_);
  const auto done = [](const Event& event) { return event.Query(); };
  while (!outstanding_.empty() &&
         std::all_of(outstanding_.front().done.begin(),
                     outstanding_.front().done.end(), done)) {
    outstanding_.pop_front();
  }
  if (outstanding_.empty() || !failed_.empty()) return;
  for (const NcclComm comm : comms_) {
    int error = kNcclSuccess;
    const int result = nccl_.comm_get_async_error(comm, &error);
    if (result != kNcclSuccess) error = result;
    if (error == kNcclSuccess || error == kNcclInProgress) continue;
    failed_ = absl::StrCat(Text(error), "; start the program again");
    // Before its kernels end.
    for (const ErrorReporter& to : outstanding_.front().reporters) {
      ReportFromHost(to, DeviceError::kNccl, 0, error);
    }
    for (const NcclComm each : comms_) nccl_.comm_abort(each);
    return;
  }
}

std::string NcclGroup::Text(int result) const {
  return absl::StrCat("NCCL: ", nccl_.get_error_string(result));
}

void NcclGroup::Check(int result, const char* what) const {
  if (result == kNcclSuccess) return;
  throw std::runtime_error(absl::StrFormat("[nccl] NCCL cannot %s: %s", what,
                                           nccl_.get_error_string(result)));
}

NcclGroup& NcclGroupOf(const std::vector<CudaStream*>& streams,
                       const std::optional<NcclRanks>& ranks) {
  return Watch::Get().GroupOf(streams, ranks);
}

}  // namespace d2l
