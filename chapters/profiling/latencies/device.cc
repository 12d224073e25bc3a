#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "chapters/profiling/latencies/measure.h"
#include "common/base/console/language.h"
#include "common/base/timer.h"
#include "common/device/device_table.h"
#include "common/device/memory/memory.h"
#include "common/device/stream.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

// Well below what a queue holds (StreamOptions), so that no call waits for
// room.
constexpr std::int64_t kMostEnqueued = 500;
constexpr std::size_t kCopied = std::size_t{1} << 20;

// x + y of one element; `sample` is given a function that enqueues it.
template <typename Sample>
Measurement MeasureAdd(Device device, const Phrase& until, Sample sample) {
  const Tensor x = Ones({1}, device);
  const Tensor y = Full({1}, 2, device);
  Tensor sum;
  Synchronize(device);
  std::vector<double> samples = sample([&] { sum = x + y; });
  if (ToVector<float>(sum) != std::vector<float>{3}) {
    throw std::runtime_error("1 + 2 is not 3 on this device");
  }
  const std::string on = GetDeviceInfo(device).Describe();
  return {samples, LaunchBlocking()
                       ? Say("x + y of one element, %s; with launch "
                             "blocking, every call waits until its work is "
                             "done. On %s.",
                             until, on)
                       : Say("x + y of one element, %s. On %s.", until, on)};
}

}  // namespace

Measurement MeasureEnqueue(Device device, const Budget& budget) {
  return MeasureAdd(device, "until the call has returned", [&](auto add) {
    return SampleBatches(
        budget,
        [&](std::int64_t n) {
          const Timer timer;
          for (std::int64_t i = 0; i < n; ++i) add();
          const std::int64_t nanos = timer.Nanos();
          Synchronize(device);
          return nanos;
        },
        kMostEnqueued);
  });
}

Measurement MeasureCompletion(Device device, const Budget& budget) {
  return MeasureAdd(device, "and Synchronize", [&](auto add) {
    return SampleEach(budget, [&] {
      add();
      Synchronize(device);
    });
  });
}

CopyLatencies MeasureCopies(Device device, const Budget& budget) {
  Stream& stream = CurrentStream(device);
  const StorageRef sent = PinnedMemory(device).AllocatePinned(kCopied);
  const StorageRef received = PinnedMemory(device).AllocatePinned(kCopied);
  const StorageRef there = Memory(device).Allocate(kCopied, stream);
  unsigned char* const bytes = static_cast<unsigned char*>(sent->data());
  for (std::size_t i = 0; i < kCopied; ++i) {
    bytes[i] = static_cast<unsigned char>(i * 2654435761u >> 24);
  }
  std::memset(received->data(), 0, kCopied);

  const auto sample = [&](const StorageRef& to, const StorageRef& from,
                          CopyKind kind) {
    stream.Synchronize();
    return SampleEach(budget, [&] {
      stream.CopyAsync(to->data(), from->data(), kCopied, kind);
      stream.Synchronize();
    });
  };
  CopyLatencies result;
  result.to_device.seconds = sample(there, sent, CopyKind::kHostToDevice);
  result.from_device.seconds = sample(received, there, CopyKind::kDeviceToHost);
  if (std::memcmp(sent->data(), received->data(), kCopied) != 0) {
    throw std::runtime_error("a copy came back with other bytes");
  }
  const DeviceKind kind = GetDeviceInfo(device).kind;
  const bool gpu = kind == DeviceKind::kReal || kind == DeviceKind::kLogical;
  const Phrase which =
      gpu ? "." : "; from memory to memory, since this device has no other.";
  const std::string on = GetDeviceInfo(device).Describe();
  result.to_device.how = Say(
      "from pinned host memory, 1 MiB, and Synchronize%s On %s.", which, on);
  result.from_device.how =
      Say("to pinned host memory, 1 MiB, and Synchronize%s On %s.", which, on);
  return result;
}

}  // namespace d2l
