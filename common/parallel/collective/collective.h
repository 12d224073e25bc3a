// Collective operations on one tensor per device, in place, as those of
// torch.distributed.
//
//   std::vector<Tensor> gradients = {Full({3}, 1, cpu0), Full({3}, 2, cpu1)};
//   AllReduce(gradients);  // both are 3
//   Work work = AllReduceAsync(gradients, AllReduceAlgorithm::kRing);
//   // … work that overlaps …
//   work.Wait();  // what is enqueued from here on sees 6
//
// The tensors are contiguous, of one dtype and length, each on a device of its
// own: any devices of the table, in any order. Position in the list is the
// rank.
//
// With kSplit, the default, as with kStar and kHost, every device ends with the
// bits of ((t[0] + t[1]) + t[2]) + …. A ring starts each chunk's sum at another
// rank: its replicas are identical to each other, but not to that sum. kNccl
// asks NVIDIA's NCCL, which every device needs a GPU of its own for (nccl.h).
//
// Asynchronous. Each device has one further stream for communication, which
// begins after the work already enqueued on the device's current stream, and
// only writes that device's own memory. Nothing else is ordered: computation
// that is enqueued on the current stream before Wait overlaps. Calls are
// carried out in the order in which they were made, which must not differ
// between threads that share a device.
//
// Errors: wrong arguments throw std::invalid_argument. A failure of the work
// that should have computed one of the tensors reaches the results on all
// devices: reading any of them throws the AsyncError of that work, as it is if
// that is known at the call. After another exception the tensors hold garbage.
//
// Thread-safe. Until the work is done, its memory is kept; do not write to the
// tensors between AllReduceAsync and Wait.

#ifndef D2L_COMMON_PARALLEL_COLLECTIVE_COLLECTIVE_H_
#define D2L_COMMON_PARALLEL_COLLECTIVE_COLLECTIVE_H_

#include <functional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "common/base/source_location.h"
#include "common/device/device.h"
#include "common/device/event.h"
#include "common/device/stream.h"
#include "common/parallel/collective/schedule.h"
#include "common/tensor/tensor.h"

namespace d2l {

using Replicas = absl::Span<const Tensor>;

// Of those below.
enum class Collective { kAllReduce, kReduceScatter, kAllGather };

// A collective on its way (torch.distributed's Work).
class Work {
 public:
  Work() = default;
  // done: behind each device's part of it.
  explicit Work(std::vector<std::pair<Device, Event>> done)
      : done_(std::move(done)) {}

  // What this thread enqueues on the devices' current streams from here on
  // starts after the collective. The caller does not wait. Further calls do
  // nothing.
  void Wait(SourceLocation at = SourceLocation::Current());

 private:
  std::vector<std::pair<Device, Event>> done_;
};

// Every tensor becomes the sum of all.
Work AllReduceAsync(Replicas replicas,
                    AllReduceAlgorithm algorithm = AllReduceAlgorithm::kSplit,
                    SourceLocation at = SourceLocation::Current());
void AllReduce(Replicas replicas,
               AllReduceAlgorithm algorithm = AllReduceAlgorithm::kSplit,
               SourceLocation at = SourceLocation::Current());

// The halves of kSplit, for tensors that are cut into a chunk for each rank
// (ChunkBegin, schedule.h). Chunk r of tensor r becomes the sum of all tensors'
// chunks r, with the bits of an AllReduce, and what its other chunks hold means
// nothing; or every tensor's chunk r becomes that of tensor r.
Work ReduceScatterAsync(Replicas replicas,
                        SourceLocation at = SourceLocation::Current());
Work AllGatherAsync(Replicas replicas,
                    SourceLocation at = SourceLocation::Current());
// One rank's part of an AllGather, which the others need not be ready for:
// `whole`, on one of the devices, becomes the chunks, one of each device. It
// follows the device's communication stream only: have that wait for who wrote
// the chunks, and last read `whole`.
Work GatherAsync(Replicas chunks, const Tensor& whole,
                 SourceLocation at = SourceLocation::Current());

// The stream on which the device's part of collectives runs. Others are
// DataParallel's: behind collectives, where an emulated link takes its time.
Stream& CommunicationStream(Device device, int number = 0);

// Executes any plan. name: of the operation, for messages and profiles; a
// literal.
Work RunPlan(const char* name, const CollectivePlan& plan, Replicas replicas,
             SourceLocation at = SourceLocation::Current());

// For collectives by other means (mpi/mpi_world.h): throws what all of them
// throw for wrong arguments.
void CheckReplicas(const char* name, Replicas replicas, SourceLocation at);
// `work` writes all the tensors, which are on CPU devices, as one operation on
// the first device's communication stream.
Work RunOnOneStream(const char* name, Replicas replicas,
                    std::function<void()> work, SourceLocation at);

}  // namespace d2l

#endif  // D2L_COMMON_PARALLEL_COLLECTIVE_COLLECTIVE_H_
