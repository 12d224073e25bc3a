#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/memory/storage.h"
#include "common/device/stream.h"
#include "common/exercise/exercise.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

namespace not_pinned {
StorageRef StartCopy(const Tensor& x) {
  const std::size_t bytes = x.numel() * sizeof(float);
  Stream& stream = CurrentStream(x.device());
  const Device cpu = Device::Parse("cpu:0");
  StorageRef host = Memory(cpu).Allocate(bytes, DefaultStream(cpu));
  stream.CopyAsync(host->data(), x.data(), bytes, CopyKind::kDeviceToHost);
  return host;
}
}  // namespace not_pinned

namespace waits_for_the_copy {
StorageRef StartCopy(const Tensor& x) {
  const std::size_t bytes = x.numel() * sizeof(float);
  Stream& stream = CurrentStream(x.device());
  StorageRef host = PinnedMemory(x.device()).AllocatePinned(bytes);
  stream.CopyAsync(host->data(), x.data(), bytes, CopyKind::kDeviceToHost);
  stream.Synchronize();
  return host;
}
}  // namespace waits_for_the_copy

namespace counts_elements {
StorageRef StartCopy(const Tensor& x) {
  const std::size_t bytes = x.numel();
  Stream& stream = CurrentStream(x.device());
  StorageRef host =
      PinnedMemory(x.device()).AllocatePinned(bytes * sizeof(float));
  stream.CopyAsync(host->data(), x.data(), bytes, CopyKind::kDeviceToHost);
  return host;
}
}  // namespace counts_elements

namespace another_stream {
StorageRef StartCopy(const Tensor& x) {
  const std::size_t bytes = x.numel() * sizeof(float);
  StorageRef host = PinnedMemory(x.device()).AllocatePinned(bytes);
  DefaultStream(x.device())
      .CopyAsync(host->data(), x.data(), bytes, CopyKind::kDeviceToHost);
  return host;
}
}  // namespace another_stream

namespace one_block_for_all {
StorageRef StartCopy(const Tensor& x) {
  static StorageRef& host = *new StorageRef;
  const std::size_t bytes = x.numel() * sizeof(float);
  if (!host || host->bytes() < bytes) {
    host = PinnedMemory(x.device()).AllocatePinned(bytes);
  }
  CurrentStream(x.device())
      .CopyAsync(host->data(), x.data(), bytes, CopyKind::kDeviceToHost);
  return host;
}
}  // namespace one_block_for_all

namespace copies_on_the_host {
StorageRef StartCopy(const Tensor& x) {
  const std::size_t bytes = x.numel() * sizeof(float);
  StorageRef host = PinnedMemory(x.device()).AllocatePinned(bytes);
  CurrentStream(x.device()).HostCallback([x, host, bytes] {
    std::memcpy(host->data(), x.data(), bytes);
  });
  return host;
}
}  // namespace copies_on_the_host

namespace reads_first {
StorageRef StartCopy(const Tensor& x) {
  const std::vector<float> values = ToVector<float>(x);
  const std::size_t bytes = values.size() * sizeof(float);
  StorageRef host = PinnedMemory(x.device()).AllocatePinned(bytes);
  std::copy(values.begin(), values.end(), static_cast<float*>(host->data()));
  return host;
}
}  // namespace reads_first

namespace the_tensor_itself {
// The device's memory is the host's here; a GPU's is not.
StorageRef StartCopy(const Tensor& x) { return x.storage(); }
}  // namespace the_tensor_itself

D2L_MISTAKE("pageable", not_pinned, StartCopy, "The memory is not pinned.");
D2L_MISTAKE("pageable", waits_for_the_copy, StartCopy, "something else does");
D2L_MISTAKE("pageable", counts_elements, StartCopy, "bytes, not elements");
D2L_MISTAKE("pageable", another_stream, StartCopy,
            "Copy on the current stream");
D2L_MISTAKE("pageable", one_block_for_all, StartCopy,
            "the same block from two calls");
D2L_MISTAKE("pageable", copies_on_the_host, StartCopy,
            "The host copied the values itself");
D2L_MISTAKE("pageable", reads_first, StartCopy, "ToVector and Item wait");
D2L_MISTAKE("pageable", the_tensor_itself, StartCopy, "the memory of x itself");

}  // namespace
}  // namespace d2l
