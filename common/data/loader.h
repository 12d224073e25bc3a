// DataLoader: a dataset as minibatches on a device (torch's DataLoader).
//
//   DataLoader loader(data, {/*batch_size=*/256}, device);
//   while (std::optional<Batch> batch = loader.Next()) {  // one epoch
//     z = Mean(batch->images);  // float32 (256, 1, 28, 28); the last has 88
//   }
//
// Images are float32 (n, 1, 28, 28) in [0, 1], bytes divided by 255; labels are
// int64 (n). Every epoch has its own order, a function of the seed and the
// epoch's number, the same on every machine. A thread makes two batches in
// advance, in pinned memory; Next enqueues their copies on the device's current
// stream and does not wait for them.
//
// One thread at a time may use a loader. The dataset outlives it and does not
// change. Errors: the constructor throws std::invalid_argument for a batch size
// below 1, a label that is no class, images and labels that differ in number,
// and a device that does not exist; Next throws OutOfMemoryError, even if it
// occurred in the thread, and can then be called again.

#ifndef D2L_COMMON_DATA_LOADER_H_
#define D2L_COMMON_DATA_LOADER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/base/source_location.h"
#include "common/data/dataset.h"
#include "common/data/prefetcher.h"
#include "common/device/device.h"
#include "common/device/memory/storage.h"
#include "common/tensor/tensor.h"

namespace d2l {

struct LoaderOptions {
  std::int64_t batch_size = 256;
  bool shuffle = true;
  bool drop_last = false;  // drops an epoch's last batch if it is smaller
  std::uint64_t seed = 0;  // of the order
};

struct Batch {
  Tensor images;
  Tensor labels;
};

// The position of a batch; both numbers count from 0.
struct LoaderPosition {
  std::int64_t epoch = 0;
  std::int64_t batch = 0;
};

// The numbers from 0 to count - 1 in the order of that epoch.
std::vector<std::int64_t> ShuffledOrder(std::int64_t count, std::uint64_t seed,
                                        std::int64_t epoch);

class DataLoader {
 public:
  DataLoader(const Dataset& data, const LoaderOptions& options,
             Device device = Device());
  DataLoader(Dataset&&, const LoaderOptions&, Device = Device()) = delete;

  const Dataset& data() const { return data_; }
  const LoaderOptions& options() const { return options_; }
  Device device() const { return device_; }
  // The number of batches in an epoch.
  std::int64_t batches() const { return batches_; }

  // The next batch of the epoch; none at its end, then those of the next epoch.
  std::optional<Batch> Next(SourceLocation at = SourceLocation::Current());

  // The position of the next batch; at an epoch's end, its `batch` is
  // batches(). To resume, pass it to SetPosition of a loader with the same data
  // and options, which throws std::invalid_argument if there is no such batch.
  LoaderPosition position() const { return position_; }
  void SetPosition(LoaderPosition position);

 private:
  // A batch on the host.
  struct Staged {
    std::int64_t size;
    StorageRef images;
    StorageRef labels;
  };
  class Stager;

  const Dataset& data_;
  const LoaderOptions options_;
  const Device device_;
  const std::int64_t batches_;
  LoaderPosition position_;
  std::unique_ptr<Prefetcher<Staged>> prefetcher_;  // null: starts at position_
};

}  // namespace d2l

#endif  // D2L_COMMON_DATA_LOADER_H_
