// GpuBackend: the CUDA back end on any CudaApi.
//
//   static GpuBackend& backend =
//       *new GpuBackend(RealCudaApi(), ListDevices(), BuiltArchs());
//
// The program's back end is in cuda_backend.cc; tests make one on a model of a
// GPU. Several streams, of one device or of logical ones, share their GPU's
// CudaGpu. GPUs that have streams may use each other's memory directly, where
// the hardware can.
//
// Memory comes straight from cudaMalloc, which may wait for all work of the
// GPU; DeviceMemory makes it stream-ordered and cheap. A host callback, which
// must not call CUDA, can only get free blocks of DeviceMemory: Allocate and
// AllocatePinned throw std::logic_error there, and FreeMemory returns 0.
//
// Thread-safe. It must outlive its streams and everything they made, so it is
// never destroyed.

#ifndef D2L_COMMON_DEVICE_CUDA_GPU_BACKEND_H_
#define D2L_COMMON_DEVICE_CUDA_GPU_BACKEND_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "common/device/backend.h"
#include "common/device/cuda/cuda_api.h"
#include "common/device/cuda/cuda_gpu.h"
#include "common/device/device.h"
#include "common/device/stream.h"

namespace d2l {

class GpuBackend final : public Backend {
 public:
  // built_archs: see LaunchFailureText.
  GpuBackend(CudaApi& api, DeviceInventory inventory,
             const std::vector<int>& built_archs);

  DeviceType type() const override { return DeviceType::kCuda; }
  const DeviceInventory& Inventory() override { return inventory_; }

  // A CudaStream. Throws std::invalid_argument if there is no such GPU, and
  // std::runtime_error if CUDA cannot make a stream.
  std::unique_ptr<Stream> NewStream(Device device, int physical_index,
                                    int index,
                                    const StreamOptions& options) override;

  void* Allocate(int physical_index, std::size_t bytes) override;
  void Free(int physical_index, void* data, std::size_t bytes) override;
  bool FreeWaits() const override { return true; }
  void* AllocatePinned(std::size_t bytes) override;
  void FreePinned(void* data, std::size_t bytes) override;
  std::int64_t FreeMemory(int physical_index) override;

 private:
  void LetPeersIn(int physical_index);

  CudaApi& api_;
  const DeviceInventory inventory_;
  std::vector<std::unique_ptr<CudaGpu>> gpus_;  // by physical index

  // Makes a GPU that already has streams, or GPU 0, the thread's device.
  int UseAnyGpu();

  std::mutex mutex_;         // guards in_use_
  std::vector<int> in_use_;  // the GPUs that have had streams
};

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_CUDA_GPU_BACKEND_H_
