// FakeNccl: NCCL's functions for tests, on models of GPUs.
//
//   FakeNccl nccl(cuda);  // a FakeCuda
//   nccl.AddStream(handle, gpu);
//   NcclGroup group(nccl.library(), streams);
//
// It adds: the calls of a group enqueue kernels that wait for those of all
// ranks, as NCCL's do. It keeps the promises of NCCL's documentation, but
// reveals as many mistakes as possible: nothing is launched before the group
// ends and its state was polled twice; a communicator is ready when all its
// ranks have joined; ranks may be called in any order; and a call leaves
// another GPU current. Wrong calls are recorded (violations()).
//
// Only one exists at a time. Thread-safe. Must be destroyed after the streams.

#ifndef D2L_COMMON_PARALLEL_NCCL_FAKE_NCCL_H_
#define D2L_COMMON_PARALLEL_NCCL_FAKE_NCCL_H_

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/device/cuda/cuda_api.h"
#include "common/device/cuda/fake/fake_cuda.h"
#include "common/parallel/nccl/nccl.h"

struct ncclComm {
  int id;
  int rank;
  int ranks;
  d2l::CudaEventHandle made_on;  // an event of the GPU that was current
  int calls = 0;
  int looks = 2;  // polls until what was begun is done
  bool aborted = false;
};

namespace d2l {

// The message of the exception that f throws, or "nothing thrown".
template <typename F>
std::string ErrorOf(F f) {
  try {
    f();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing thrown";
}

class FakeNccl {
 public:
  explicit FakeNccl(FakeCuda& cuda) : cuda_(cuda) { current() = this; }
  ~FakeNccl() { current() = nullptr; }
  FakeNccl(const FakeNccl&) = delete;
  FakeNccl& operator=(const FakeNccl&) = delete;

  void AddStream(CudaStreamHandle stream, int gpu) {
    const std::lock_guard<std::mutex> lock(mutex_);
    gpu_of_[stream] = gpu;
  }

  // The next call of this function returns `result`, and does nothing but end
  // its group.
  void FailNext(const std::string& function, int result) {
    const std::lock_guard<std::mutex> lock(mutex_);
    fail_next_[function] = result;
  }
  // From now on kernels wait until they are aborted, and the communicators have
  // this error as soon as nothing is in progress.
  void Break(int error) {
    const std::lock_guard<std::mutex> lock(mutex_);
    async_error_ = error;
  }

  // From now on no operation completes, as if a process had stopped.
  void Hang() {
    const std::lock_guard<std::mutex> lock(mutex_);
    hangs_ = true;
  }

  // "group_start", "all_reduce 7 x 5" (elements x type), …
  std::vector<std::string> TakeCalls() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(calls_, {});
  }
  std::vector<std::string> violations() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return violations_;
  }

  static const NcclLibrary& library() {
    static const NcclLibrary table = {
        [](NcclId* id) { return current()->GetUniqueId(id); },
        [](NcclComm* comm, int ranks, NcclId id, int rank, NcclConfig* config) {
          return current()->CommInitRank(comm, ranks, id, rank, *config);
        },
        [](NcclComm comm) { return current()->CommAbort(comm); },
        [](NcclComm comm, int* error) {
          return current()->GetAsyncError(comm, error);
        },
        [](const void* send, void* receive, std::size_t count, int dtype,
           int operation, NcclComm comm, CudaStreamHandle stream) {
          return current()->AllReduce(
              {send, receive, count, dtype, operation, comm, stream});
        },
        [] { return current()->GroupStart(); },
        [] { return current()->GroupEnd(); },
        [](int result) {
          return result == 6 ? "remote process exited" : "invalid usage";
        }};
    return table;
  }

 private:
  struct Addend {
    const void* send;
    void* receive;
    std::size_t count;
    int dtype;
    int operation;
    NcclComm comm;
    CudaStreamHandle stream;
  };
  // A sum of all ranks.
  struct Round {
    std::map<int, Addend> addends;  // of those whose kernels run
    bool added = false;
  };
  using Lock = std::unique_lock<std::mutex>;

  static FakeNccl*& current() {
    static FakeNccl* nccl = nullptr;
    return nccl;
  }

  int Enter(const std::string& function, const std::string& details = "") {
    calls_.push_back(function + details);
    const auto fail = fail_next_.find(function);
    if (fail == fail_next_.end()) return 0;
    const int result = fail->second;
    fail_next_.erase(fail);
    return result;
  }
  void Require(bool condition, const std::string& what) {
    if (!condition) violations_.push_back(what);
  }

  bool InGroup() const {
    return groups_.count(std::this_thread::get_id()) == 1;
  }

  int GetUniqueId(NcclId* id) {
    const Lock lock(mutex_);
    id->bytes = {};
    id->bytes[3] = static_cast<char>(++ids_);
    return Enter("get_unique_id");
  }

  int CommInitRank(NcclComm* comm, int ranks, NcclId id, int rank,
                   const NcclConfig& config) {
    const Lock lock(mutex_);
    const int result = Enter("comm_init_rank", " " + std::to_string(rank));
    if (result != 0) return result;
    Require(config.size == 24 && config.magic == 0xcafebeef &&
                config.version == 21400 && config.blocking == 0,
            "another configuration than that of NCCL 2.14");
    Require(InGroup(), "a communicator is made outside of a group");
    Require(rank >= 0 && rank < ranks, "a rank that is none");
    comms_.push_back(std::make_unique<ncclComm>(
        ncclComm{id.bytes[3], rank, ranks, nullptr}));
    *comm = comms_.back().get();
    cuda_.CreateEvent(/*timed=*/false, &(*comm)->made_on);
    return kNcclInProgress;
  }

  int CommAbort(NcclComm comm) {
    const Lock lock(mutex_);
    Require(!comm->aborted, "a communicator is aborted twice");
    comm->aborted = true;
    changed_.notify_all();
    return Enter("comm_abort");
  }

  int GetAsyncError(NcclComm comm, int* error) {
    std::vector<Addend> launches;
    {
      const Lock lock(mutex_);
      Require(!comm->aborted, "an aborted communicator is used");
      *error = async_error_;
      if (comm->looks == 0) return 0;
      *error = kNcclInProgress;
      const auto connected =
          std::count_if(comms_.begin(), comms_.end(), [&](const auto& other) {
            return other->id == comm->id && !other->aborted;
          });
      if (hangs_ || connected < comm->ranks || --comm->looks > 0) return 0;
      *error = kNcclSuccess;
      const auto mine = [&](const Addend& addend) {
        return addend.comm == comm;
      };
      std::copy_if(begun_.begin(), begun_.end(), std::back_inserter(launches),
                   mine);
      begun_.erase(std::remove_if(begun_.begin(), begun_.end(), mine),
                   begun_.end());
    }
    for (const Addend& addend : launches) LaunchKernel(addend);
    return 0;
  }

  int GroupStart() {
    const Lock lock(mutex_);
    const bool begins = groups_.try_emplace(std::this_thread::get_id()).second;
    Require(begins, "a group within a group");
    return Enter("group_start");
  }

  int AllReduce(const Addend& addend) {
    const Lock lock(mutex_);
    const int result =
        Enter("all_reduce", " " + std::to_string(addend.count) + " x " +
                                std::to_string(addend.dtype));
    if (result != 0) return result;
    Require(InGroup(), "all_reduce outside of a group");
    Require(addend.operation == kNcclSum, "an operation that is no sum");
    Require(!addend.comm->aborted, "an aborted communicator is used");
    Require(addend.comm->looks == 0,
            "a communicator is used before it is ready");
    Require(gpu_of_.count(addend.stream) == 1, "an unknown stream");
    groups_[std::this_thread::get_id()].push_back(addend);
    return kNcclInProgress;
  }

  int GroupEnd() {
    const Lock lock(mutex_);
    Require(InGroup(), "a group ends that did not begin");
    const auto ended = groups_.extract(std::this_thread::get_id());
    const int result = Enter("group_end");
    if (result != 0) return result;
    if (ended.empty()) return kNcclInProgress;
    for (const Addend& addend : ended.mapped()) {
      addend.comm->looks = 2;
      begun_.push_back(addend);
    }
    return kNcclInProgress;
  }

  void LaunchKernel(const Addend& addend) {
    cuda_.SetDevice(gpu_of_[addend.stream]);
    // Records a violation if the communicator is another GPU's.
    cuda_.RecordEvent(addend.comm->made_on, addend.stream);
    std::pair<int, int> round;
    {
      const Lock lock(mutex_);
      round = {addend.comm->id, addend.comm->calls++};
    }
    cuda_.LaunchKernel(addend.stream, [=] { Kernel(addend, round); });
  }

  void Kernel(const Addend& addend, std::pair<int, int> number) {
    Lock lock(mutex_);
    Round& round = rounds_[number];
    round.addends[addend.comm->rank] = addend;
    if (async_error_ == 0 &&
        static_cast<int>(round.addends.size()) == addend.comm->ranks) {
      Add(round);
      round.added = true;
      changed_.notify_all();
    }
    const bool ended = changed_.wait_for(lock, std::chrono::seconds(20), [&] {
      return round.added || addend.comm->aborted;
    });
    Require(ended, "a kernel waits for ever");
  }

  void Add(Round& round) {
    const Addend& first = round.addends.begin()->second;
    for (const auto& [rank, addend] : round.addends) {
      Require(addend.count == first.count && addend.dtype == first.dtype,
              "the ranks add different arrays");
      Require(addend.send == addend.receive, "not in place");
    }
    switch (first.dtype) {
      case kNcclFloat32:
        return AddAs<float>(round);
      case kNcclFloat64:
        return AddAs<double>(round);
      case kNcclInt64:
        return AddAs<std::int64_t>(round);
      case kNcclUint8:
        return AddAs<std::uint8_t>(round);
      default:
        Require(false, "an unknown type");
    }
  }
  template <typename T>
  void AddAs(Round& round) {
    std::vector<T> sum(round.addends.begin()->second.count);
    for (const auto& [rank, addend] : round.addends) {
      const T* const x = static_cast<const T*>(addend.send);
      for (std::size_t i = 0; i < sum.size(); ++i) {
        sum[i] = static_cast<T>(sum[i] + x[i]);
      }
    }
    for (const auto& [rank, addend] : round.addends) {
      if (sum.empty()) continue;
      std::memcpy(addend.receive, sum.data(), sum.size() * sizeof(T));
    }
  }

  FakeCuda& cuda_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  int ids_ = 0;
  bool hangs_ = false;
  int async_error_ = 0;
  std::map<CudaStreamHandle, int> gpu_of_;
  // A thread's calls since it began a group: in NCCL, too, a group is a
  // thread's.
  std::map<std::thread::id, std::vector<Addend>> groups_;
  std::vector<Addend> begun_;  // by groups that have ended
  std::vector<std::unique_ptr<ncclComm>> comms_;
  std::map<std::pair<int, int>, Round> rounds_;  // by id and number
  std::map<std::string, int> fail_next_;
  std::vector<std::string> calls_;
  std::vector<std::string> violations_;
};

}  // namespace d2l

#endif  // D2L_COMMON_PARALLEL_NCCL_FAKE_NCCL_H_
