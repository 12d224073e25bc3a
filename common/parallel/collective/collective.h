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
// uses NVIDIA's NCCL, for which every device needs a GPU of its own (nccl.h).
//
// Asynchronous. Each device has one further stream for communication, which
// begins after the work already enqueued on the device's current stream, and
// only writes that device's own memory. Nothing else is ordered: computation
// that is enqueued on the current stream before Wait overlaps. On a virtual
// device it takes none of the device's cores (StreamOptions::beside), so a sum
// does not wait until a product is done. Collectives run in the order of the
// calls; threads that share a device must make their calls in the same order.
//
// Errors: wrong arguments throw std::invalid_argument. If the work that
// computes one of the tensors fails, reading any device's result throws the
// AsyncError of that work. The call itself throws it if that failure has been
// reported (stream.h). After another exception the tensors hold garbage.
//
// Thread-safe. The memory is kept until the work is done; do not write to the
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

// The kinds of collectives below.
enum class Collective { kAllReduce, kReduceScatter, kAllGather };

// A collective in progress (torch.distributed's Work).
class Work {
 public:
  Work() = default;
  // done: for each device, an event behind its part.
  explicit Work(std::vector<std::pair<Device, Event>> done)
      : done_(std::move(done)) {}

  // Work that this thread enqueues on the devices' current streams from here on
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
// (ChunkBegin, schedule.h). First, chunk r of tensor r becomes the sum of all
// tensors' chunks r, with the bits of an AllReduce; its other chunks are
// undefined. Second, every tensor's chunk r becomes that of tensor r.
Work ReduceScatterAsync(Replicas replicas,
                        SourceLocation at = SourceLocation::Current());
Work AllGatherAsync(Replicas replicas,
                    SourceLocation at = SourceLocation::Current());

// The stream on which the device's part of collectives runs.
Stream& CommunicationStream(Device device);

// Executes any plan. name: the operation's, for messages and profiles; a
// literal.
Work RunPlan(const char* name, const CollectivePlan& plan, Replicas replicas,
             SourceLocation at = SourceLocation::Current());

// For other implementations of collectives (mpi/mpi_world.h): throws the errors
// that all collectives throw for wrong arguments.
void CheckReplicas(const char* name, Replicas replicas, SourceLocation at);
// Runs `work`, which writes all the tensors, as one operation on the first
// device's communication stream. The tensors must be on CPU devices.
Work RunOnOneStream(const char* name, Replicas replicas,
                    std::function<void()> work, SourceLocation at);

}  // namespace d2l

#endif  // D2L_COMMON_PARALLEL_COLLECTIVE_COLLECTIVE_H_
