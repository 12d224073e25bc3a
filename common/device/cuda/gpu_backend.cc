#include "common/device/cuda/gpu_backend.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/device/cuda/cuda_errors.h"
#include "common/device/cuda/stream/cuda_stream.h"
#include "common/device/cuda/stream/stream_log.h"

namespace d2l {
namespace {

void RefuseInCallback() {
  if (!internal::in_cuda_callback) return;
  throw std::logic_error(
      "[memory] a host callback of a CUDA stream asked for memory, and no free "
      "block fits; a callback may not call CUDA, so allocate before it");
}

void* MemoryOrNull(CudaApi& api, int error, void* data) {
  if (error == 0) return data;
  if (error == kCudaMemoryAllocation) return nullptr;
  throw std::runtime_error(absl::StrCat(
      "[memory] CUDA could not allocate memory: ", api.ErrorText(error)));
}

}  // namespace

GpuBackend::GpuBackend(CudaApi& api, DeviceInventory inventory,
                       const std::vector<int>& built_archs)
    : api_(api), inventory_(std::move(inventory)) {
  for (std::size_t i = 0; i < inventory_.devices.size(); ++i) {
    const PhysicalDevice& device = inventory_.devices[i];
    gpus_.push_back(std::make_unique<CudaGpu>(api, static_cast<int>(i),
                                              device.capability, device.cores,
                                              built_archs));
  }
}

std::unique_ptr<Stream> GpuBackend::NewStream(Device device, int physical_index,
                                              int index,
                                              const StreamOptions& options) {
  if (physical_index < 0 || physical_index >= static_cast<int>(gpus_.size())) {
    throw std::invalid_argument(
        absl::StrFormat("[stream] %s is to be on GPU %d; there are %d",
                        device.ToString(), physical_index, gpus_.size()));
  }
  auto stream = std::make_unique<CudaStream>(*gpus_[physical_index], device,
                                             index, options);
  LetPeersIn(physical_index);
  return stream;
}

void GpuBackend::LetPeersIn(int physical_index) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (std::find(in_use_.begin(), in_use_.end(), physical_index) !=
      in_use_.end()) {
    return;
  }
  for (const int peer : in_use_) {
    // Without peer access copies still work, through the host.
    api_.EnablePeerAccess(physical_index, peer);
    api_.EnablePeerAccess(peer, physical_index);
  }
  in_use_.push_back(physical_index);
}

int GpuBackend::UseAnyGpu() {
  int gpu = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!in_use_.empty()) gpu = in_use_.front();
  }
  return api_.SetDevice(gpu);
}

void* GpuBackend::Allocate(int physical_index, std::size_t bytes) {
  RefuseInCallback();
  void* data = nullptr;
  int error = api_.SetDevice(physical_index);
  if (error == 0) error = api_.Allocate(bytes, &data);
  return MemoryOrNull(api_, error, data);
}

void GpuBackend::Free(int physical_index, void* data, std::size_t /*bytes*/) {
  if (api_.SetDevice(physical_index) == 0) api_.Free(data);
}

void* GpuBackend::AllocatePinned(std::size_t bytes) {
  RefuseInCallback();
  void* data = nullptr;
  int error = UseAnyGpu();
  if (error == 0) error = api_.AllocatePinned(bytes, &data);
  return MemoryOrNull(api_, error, data);
}

void GpuBackend::FreePinned(void* data, std::size_t /*bytes*/) {
  if (UseAnyGpu() == 0) api_.FreePinned(data);
}

std::int64_t GpuBackend::FreeMemory(int physical_index) {
  std::size_t free = 0;
  std::size_t total = 0;
  const bool done = !internal::in_cuda_callback &&
                    api_.SetDevice(physical_index) == 0 &&
                    api_.MemoryInfo(&free, &total) == 0;
  return done ? static_cast<std::int64_t>(free) : 0;
}

}  // namespace d2l
