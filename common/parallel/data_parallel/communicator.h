// Communicator: the devices that train one network together, in this process
// and in others, and the collectives among them.
//
//   Communicator all({cpu0, cpu1}, options);
//   Work adding = all.Run(Collective::kAllReduce, {g0, g1}, at);
//   // … work that overlaps …
//   adding.Wait(at);
//
// A collective runs behind the work of the devices' current streams, on streams
// of its own.
//
// For the thread of a DataParallel, whose options it refers to.

#ifndef D2L_COMMON_PARALLEL_DATA_PARALLEL_COMMUNICATOR_H_
#define D2L_COMMON_PARALLEL_DATA_PARALLEL_COMMUNICATOR_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "common/base/source_location.h"
#include "common/device/device.h"
#include "common/parallel/collective/collective.h"
#include "common/parallel/data_parallel/options.h"
#include "common/tensor/tensor.h"

namespace d2l {

class Communicator {
 public:
  Communicator(std::vector<Device> devices, const DataParallelOptions& options)
      : devices_(std::move(devices)), options_(options) {}

  // Those of this process.
  const std::vector<Device>& devices() const { return devices_; }
  // The number of devices of all processes; and a device's number among them.
  int ranks() const {
    return static_cast<int>(devices_.size()) * options_.processes;
  }
  int RankOf(std::size_t device) const {
    return options_.process * static_cast<int>(devices_.size()) +
           static_cast<int>(device);
  }

  // Enqueues it on one tensor of each device.
  Work Run(Collective collective, const std::vector<Tensor>& tensors,
           SourceLocation at) const;

 private:
  const std::vector<Device> devices_;
  const DataParallelOptions& options_;
};

}  // namespace d2l

#endif  // D2L_COMMON_PARALLEL_DATA_PARALLEL_COMMUNICATOR_H_
