#include "chapters/profiling/latencies_device.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chapters/profiling/latencies_sampling.h"
#include "common/base/timer.h"
#include "common/device/device_table.h"
#include "common/device/memory.h"
#include "common/device/stream.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

// Well below what a queue holds (StreamOptions), so that no call waits for
// room.
constexpr std::int64_t kMostEnqueued = 500;
constexpr std::size_t kCopied = std::size_t{1} << 20;

std::string Where(Device device) {
  return absl::StrCat(" On ", GetDeviceInfo(device).Describe(), ".");
}

std::string ElementwiseHow(Device device, const char* until) {
  return absl::StrCat("x + y of one element, ", until,
                      LaunchBlocking() ? "; with launch blocking, every call "
                                         "waits until its work is done."
                                       : ".",
                      Where(device));
}

void CheckSum(const Tensor& sum) {
  if (ToVector<float>(sum) != std::vector<float>{3}) {
    throw std::runtime_error("1 + 2 is not 3 on this device");
  }
}

}  // namespace

Measurement MeasureEnqueue(Device device, const Budget& budget) {
  const Tensor x = Ones({1}, device);
  const Tensor y = Full({1}, 2, device);
  Tensor sum;
  Synchronize(device);
  Measurement result;
  result.nanos = SampleNanos(
      budget,
      [&](std::int64_t n) {
        const Timer timer;
        for (std::int64_t i = 0; i < n; ++i) sum = x + y;
        const std::int64_t nanos = timer.Nanos();
        Synchronize(device);
        return nanos;
      },
      kMostEnqueued);
  CheckSum(sum);
  result.how = ElementwiseHow(device, "until the call has returned");
  return result;
}

Measurement MeasureCompletion(Device device, const Budget& budget) {
  const Tensor x = Ones({1}, device);
  const Tensor y = Full({1}, 2, device);
  Tensor sum;
  Synchronize(device);
  Measurement result;
  result.nanos = SampleNanos(budget, [&](std::int64_t n) {
    const Timer timer;
    for (std::int64_t i = 0; i < n; ++i) {
      sum = x + y;
      Synchronize(device);
    }
    return timer.Nanos();
  });
  CheckSum(sum);
  result.how = ElementwiseHow(device, "and Synchronize");
  return result;
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

  const auto sample = [&](const std::function<void()>& copy) {
    stream.Synchronize();
    return SampleNanos(budget, [&](std::int64_t n) {
      const Timer timer;
      for (std::int64_t i = 0; i < n; ++i) {
        copy();
        stream.Synchronize();
      }
      return timer.Nanos();
    });
  };
  CopyLatencies result;
  result.to_device.nanos = sample([&] {
    stream.CopyAsync(there->data(), sent->data(), kCopied,
                     CopyKind::kHostToDevice);
  });
  result.from_device.nanos = sample([&] {
    stream.CopyAsync(received->data(), there->data(), kCopied,
                     CopyKind::kDeviceToHost);
  });
  if (std::memcmp(sent->data(), received->data(), kCopied) != 0) {
    throw std::runtime_error("a copy came back with other bytes");
  }

  const DeviceKind kind = GetDeviceInfo(device).kind;
  const bool gpu = kind == DeviceKind::kReal || kind == DeviceKind::kLogical;
  const std::string how = absl::StrCat(
      " pinned host memory, 1 MiB, and Synchronize",
      gpu ? "." : "; from memory to memory, since this device has no other.",
      Where(device));
  result.to_device.how = absl::StrCat("from", how);
  result.from_device.how = absl::StrCat("to", how);
  return result;
}

}  // namespace d2l
