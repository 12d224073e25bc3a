#include "common/parallel/data_parallel/communicator.h"

#include <chrono>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include "common/device/device_table.h"
#include "common/device/event.h"
#include "common/device/stream.h"
#include "common/tensor/dtype.h"

namespace d2l {
namespace {

// Behind collectives; not their own stream, which an emulated link would hold
// up.
Stream& BucketStream(Device device) { return CommunicationStream(device, 1); }

}  // namespace

Work Communicator::Run(Collective collective,
                       const std::vector<Tensor>& tensors,
                       SourceLocation at) const {
  if (ranks() == 1) return {};
  std::deque<StreamGuard> guards;
  for (const Device device : devices_) {
    Stream& stream = BucketStream(device);
    stream.Wait(CurrentStream(device).Record(), at);
    guards.emplace_back(stream);
  }
  const bool all = collective == Collective::kAllReduce;
  (options_.collective ? options_.collective(collective, tensors, at)
   : all               ? AllReduceAsync(tensors, options_.allreduce, at)
   : collective == Collective::kReduceScatter ? ReduceScatterAsync(tensors, at)
                                              : AllGatherAsync(tensors, at))
      .Wait(at);
  EmulateLink(static_cast<double>(tensors[0].numel()) *
                  DTypeSize(tensors[0].dtype()) * (all ? 2 : 1) *
                  (ranks() - 1) / ranks(),
              at);
  std::vector<std::pair<Device, Event>> ends;
  for (const Device device : devices_) {
    ends.emplace_back(device, BucketStream(device).Record());
  }
  return Work(std::move(ends));
}

void Communicator::EmulateLink(double bytes, SourceLocation at) const {
  if (!options_.emulated_link.has_value()) return;
  const std::chrono::duration<double> time(
      options_.emulated_link->seconds +
      bytes / options_.emulated_link->bytes_per_second);
  for (const Device device : devices_) {
    CurrentStream(device).HostCallback(
        [time] { std::this_thread::sleep_for(time); }, at);
  }
}

}  // namespace d2l
