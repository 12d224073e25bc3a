// NcclGroup: the sum of arrays on several GPUs by NVIDIA's NCCL.
//
//   absl::StatusOr<const NcclLibrary*> nccl = Nccl();
//   NcclGroup group(**nccl, {&stream_of_gpu_0, &stream_of_gpu_1});
//   group.AllReduce({label, label}, {a, b}, numel, DType::kFloat32);
//
// AllReduce(tensors, AllReduceAlgorithm::kNccl) is built on this. NCCL chooses
// how it adds; the same machine gives the same bits each time, but not those of
// the ordered sum.
//
// Ranks: one for each stream, on a GPU of its own: NCCL takes no GPU twice, so
// devices that share one add by schedules. With NcclRanks they are a part of
// the ranks of several processes, each of which makes its group at the same
// time and makes the same calls.
//
// Errors: std::invalid_argument for dtypes that NCCL lacks; std::runtime_error
// if NCCL cannot make a communicator; if it refuses work, the operation fails
// on every stream (AsyncError). NCCL finds other errors later, such as that
// another process is gone, and its kernels then wait for ever: Poll ends them,
// and the oldest operation that is not done fails on every stream, with NCCL's
// error. The same happens if another process is alive but does not answer for
// NcclRanks::timeout_seconds, after the streams have reached the operation; the
// constructor and AllReduce wait no longer than that either. From then on every
// call fails.
//
// The library is loaded by the first call that needs it, and stays loaded.
// Neither it nor its headers are needed to build: the types below are those of
// its C interface, which is the same since 2.14, the first version with calls
// that do not block (ncclCommInitRankConfig).
//
// Thread-safe. A group must live as long as its streams and enqueued work.

#ifndef D2L_COMMON_PARALLEL_NCCL_NCCL_H_
#define D2L_COMMON_PARALLEL_NCCL_NCCL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/mutex.h"
#include "common/base/source_location.h"
#include "common/base/timer.h"
#include "common/device/cuda/cuda_api.h"
#include "common/device/cuda/stream/cuda_stream.h"
#include "common/device/cuda/stream/error_record.h"
#include "common/device/device.h"
#include "common/device/event.h"
#include "common/device/op_label.h"
#include "common/parallel/collective/collective.h"
#include "common/tensor/dtype.h"

// NCCL's name for what its handles point to.
struct ncclComm;

namespace d2l {

using NcclComm = ncclComm*;  // ncclComm_t

// ncclUniqueId: identifies a communicator. One of its ranks makes these bytes
// and passes them to the others.
struct NcclId {
  std::array<char, 128> bytes;
};

// The ranks of a group among those of all processes: from `first` on.
struct NcclRanks {
  NcclId id;  // made by one process (NcclLibrary::get_unique_id)
  int first;
  int all;
  // How long another process may take to answer.
  double timeout_seconds = std::numeric_limits<double>::infinity();
};

// ncclConfig_t of 2.14. Newer versions use their defaults for the rest.
struct NcclConfig {
  std::size_t size = sizeof(NcclConfig);
  unsigned int magic = 0xcafebeef;
  unsigned int version = 21400;
  int blocking = 0;
};

// NCCL's codes, which do not change.
inline constexpr int kNcclSuccess = 0;
inline constexpr int kNcclInvalidUsage = 5;
inline constexpr int kNcclInProgress = 7;
inline constexpr int kNcclUint8 = 1;
inline constexpr int kNcclInt64 = 4;
inline constexpr int kNcclFloat32 = 7;
inline constexpr int kNcclFloat64 = 8;
inline constexpr int kNcclSum = 0;

// The functions used, without "nccl". Each int returned is an ncclResult_t.
struct NcclLibrary {
  int (*get_unique_id)(NcclId* id);
  int (*comm_init_rank_config)(NcclComm* comm, int ranks, NcclId id, int rank,
                               NcclConfig* config);
  int (*comm_abort)(NcclComm comm);
  int (*comm_get_async_error)(NcclComm comm, int* error);
  int (*all_reduce)(const void* send, void* receive, std::size_t count,
                    int dtype, int operation, NcclComm comm,
                    CudaStreamHandle stream);
  int (*group_start)();
  int (*group_end)();
  const char* (*get_error_string)(int result);
};

// NotFound, with what to install, if there is no such library;
// FailedPrecondition if it lacks a function, as one older than 2.14 does.
absl::StatusOr<NcclLibrary> LoadNccl(const std::string& name = "libnccl.so.2");

// The library of this program, loaded by the first call.
absl::StatusOr<const NcclLibrary*> Nccl();
// Nccl() returns this instead from now on; null for the library.
void ReplaceNcclForTesting(const NcclLibrary* nccl);

class NcclGroup {
 public:
  NcclGroup(const NcclLibrary& nccl, std::vector<CudaStream*> streams,
            const std::optional<NcclRanks>& ranks = std::nullopt);
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  struct Sum {
    std::uint64_t number;  // of the operation on the stream
    Event done;
  };
  // In place, as one operation on each stream, with its label.
  std::vector<Sum> AllReduce(absl::Span<const OpLabel> labels,
                             absl::Span<void* const> data, std::int64_t numel,
                             DType dtype);

  // Checks whether NCCL has found an error, or waits too long. Called every 100
  // ms for the groups of NcclGroupOf.
  void Poll();

 private:
  struct Call;
  // An operation that is enqueued and may not be done.
  struct Outstanding {
    std::vector<ErrorReporter> reporters;
    std::vector<Event> done;
    std::vector<Event> reached;       // when the streams reach it
    std::optional<Timer> since = {};  // Poll first saw that
  };

  // Begins the operation on the streams from order_[begun] on.
  void Launch(std::size_t begun, Call& call);
  // Called within the launches on all streams.
  void Enqueue(Call& call);
  // The state of NCCL's background work: its error, if there is one.
  int State() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits for that work after a call's `result`. kNcclInProgress: too long.
  int Await(int result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Fails the operations in progress, and aborts them.
  void GiveUp(int error) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string Text(int result) const;

  const NcclLibrary& nccl_;
  const std::vector<CudaStream*> streams_;
  double timeout_seconds_;
  std::vector<std::size_t> order_;  // of the ranks: by GPU

  Mutex mutex_;
  std::vector<NcclComm> comms_ ABSL_GUARDED_BY(mutex_);
  std::deque<Outstanding> outstanding_ ABSL_GUARDED_BY(mutex_);
  std::string failed_ ABSL_GUARDED_BY(mutex_);  // empty: it has not
};

// The group of these streams, in this order, with these ranks; the first call
// makes it, and it is kept. Other groups can be made and used meanwhile. Throws
// std::runtime_error if there is no NCCL.
NcclGroup& NcclGroupOf(const std::vector<CudaStream*>& streams,
                       const std::optional<NcclRanks>& ranks = std::nullopt);

// AllReduceAsync with kNccl. Throws std::invalid_argument for devices that NCCL
// cannot use, and std::runtime_error, with what to install, if there is no
// NCCL. ranks: those of several processes, for a sum over all of them; the same
// in each call.
Work AllReduceByNccl(Replicas replicas, SourceLocation at,
                     const std::optional<NcclRanks>& ranks = std::nullopt);
// Returns these errors beforehand.
absl::Status CheckNccl(absl::Span<const Device> devices);

}  // namespace d2l

#endif  // D2L_COMMON_PARALLEL_NCCL_NCCL_H_
