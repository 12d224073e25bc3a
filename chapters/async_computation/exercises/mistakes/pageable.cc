#include <cstddef>

#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/storage.h"
#include "common/device/stream.h"
#include "common/exercise/exercise.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

namespace not_pinned {
StorageRef StartCopy(const Tensor& x) {
  const std::size_t bytes = x.numel() * sizeof(float);
  Stream& stream = CurrentStream(x.device());
  const Device cpu = Device::Parse("cpu:0").value();
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

D2L_MISTAKE("pageable", not_pinned, StartCopy, "The memory is not pinned.");
D2L_MISTAKE("pageable", waits_for_the_copy, StartCopy, "Something else does");
D2L_MISTAKE("pageable", counts_elements, StartCopy, "bytes, not elements");

}  // namespace
}  // namespace d2l
