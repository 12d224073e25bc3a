// NcclGroup: the sum of arrays on several GPUs by NVIDIA's NCCL.
//
//   absl::StatusOr<const NcclLibrary*> nccl = Nccl();
//   NcclGroup group(**nccl, {&stream_of_gpu_0, &stream_of_gpu_1});
//   group.AllReduce({label, label}, {a, b}, numel, DType::kFloat32);
//
// AllReduce(tensors, AllReduceAlgorithm::kNccl) is built on this
// (collective.h). NCCL chooses how it adds; the same machine gives the same
// bits each time, but not those of the ordered sum.
//
// Ranks: one for each stream, on a GPU of its own: NCCL takes no GPU twice, so
// devices that share one add by schedules. With NcclRanks they are a part of
// the ranks of several processes, each of which makes its group at the same
// time and makes the same calls.
//
// Errors: std::invalid_argument for other dtypes than NCCL's;
// std::runtime_error if NCCL makes no communicator; if it takes no work, the
// operation has failed on every stream (AsyncError). NCCL finds other errors
// later, as that another process is gone, and its kernels then wait for ever:
// Look ends them, and the oldest operation that is not done fails on every
// stream, with NCCL's error. So it is if another process is there and does not
// answer for NcclRanks::timeout_seconds, after the streams have reached the
// operation; the constructor and AllReduce wait no longer than that either.
// From then on every call fails.
//
// Thread-safe. A group lives as long as its streams and what was enqueued.

#ifndef D2L_COMMON_PARALLEL_NCCL_NCCL_H_
#define D2L_COMMON_PARALLEL_NCCL_NCCL_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/types/span.h"
#include "common/base/mutex.h"
#include "common/base/timer.h"
#include "common/device/cuda/stream/cuda_stream.h"
#include "common/device/cuda/stream/error_record.h"
#include "common/device/event.h"
#include "common/device/op_label.h"
#include "common/parallel/nccl/nccl_library.h"
#include "common/tensor/dtype.h"

namespace d2l {

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

  // Whether NCCL has found an error since, or waits too long. Called every 100
  // ms for the groups of NcclGroupOf.
  void Look();

 private:
  struct Call;
  // What is enqueued and may not be done.
  struct Outstanding {
    std::vector<ErrorReporter> reporters;
    std::vector<Event> done;
    std::vector<Event> reached;       // the streams have come to it
    std::optional<Timer> since = {};  // they had when Look last saw it
  };

  // Begins the operation on the streams from order_[begun] on.
  void Launch(std::size_t begun, Call& call);
  // Within the launches on all streams.
  void Enqueue(Call& call);
  // What NCCL does in the background: its error, if there is one.
  int State() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits for that, after a call with this result. kNcclInProgress: too long.
  int Await(int result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Fails what is under way, and ends it.
  void GiveUp(int error) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string Text(int result) const;

  const NcclLibrary& nccl_;
  const std::vector<CudaStream*> streams_;
  double timeout_seconds_;
  std::vector<std::size_t> order_;  // of the ranks: rising GPUs

  Mutex mutex_;
  std::vector<NcclComm> comms_ ABSL_GUARDED_BY(mutex_);
  std::deque<Outstanding> outstanding_ ABSL_GUARDED_BY(mutex_);
  std::string failed_ ABSL_GUARDED_BY(mutex_);  // empty: it has not
};

// The group of these streams, in this order, made by the first call, with these
// ranks, and kept. Other groups are made and used meanwhile. Throws
// std::runtime_error if there is no NCCL.
NcclGroup& NcclGroupOf(const std::vector<CudaStream*>& streams,
                       const std::optional<NcclRanks>& ranks = std::nullopt);

}  // namespace d2l

#endif  // D2L_COMMON_PARALLEL_NCCL_NCCL_H_
