#include "common/device/cuda/gpu_backend.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/device/cuda/cuda_stream.h"
#include "common/device/cuda/stream_log.h"

namespace d2l {
namespace {

// f(), on a thread that may call CUDA.
template <typename F>
auto CallingCuda(F f) {
  if (!internal::in_cuda_callback) return f();
  return std::async(std::launch::async, f).get();
}

}  // namespace

GpuBackend::GpuBackend(CudaApi& api, DeviceInventory inventory,
                       const std::vector<int>& built_archs, CuptiApi* cupti)
    : api_(api),
      inventory_(std::move(inventory)),
      cupti_(cupti == nullptr ? nullptr
                              : std::make_unique<CuptiTimer>(*cupti)) {
  for (std::size_t i = 0; i < inventory_.devices.size(); ++i) {
    const PhysicalDevice& device = inventory_.devices[i];
    gpus_.push_back(std::make_unique<CudaGpu>(api, static_cast<int>(i),
                                              device.capability, device.cores,
                                              built_archs, cupti_.get()));
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
    // Without it copies still work, through the host.
    api_.EnablePeerAccess(physical_index, peer);
    api_.EnablePeerAccess(peer, physical_index);
  }
  in_use_.push_back(physical_index);
}

void* GpuBackend::Allocate(int physical_index, std::size_t bytes) {
  return CallingCuda([&] {
    void* data = nullptr;
    const bool done =
        api_.SetDevice(physical_index) == 0 && api_.Allocate(bytes, &data) == 0;
    return done ? data : nullptr;
  });
}

void GpuBackend::Free(int physical_index, void* data, std::size_t /*bytes*/) {
  CallingCuda([&] {
    if (api_.SetDevice(physical_index) == 0) api_.Free(data);
  });
}

void* GpuBackend::AllocatePinned(std::size_t bytes) {
  return CallingCuda([&] {
    void* data = nullptr;
    return api_.AllocatePinned(bytes, &data) == 0 ? data : nullptr;
  });
}

void GpuBackend::FreePinned(void* data, std::size_t /*bytes*/) {
  CallingCuda([&] { api_.FreePinned(data); });
}

std::int64_t GpuBackend::FreeMemory(int physical_index) {
  return CallingCuda([&] {
    std::size_t free = 0;
    std::size_t total = 0;
    const bool done = api_.SetDevice(physical_index) == 0 &&
                      api_.MemoryInfo(&free, &total) == 0;
    return done ? static_cast<std::int64_t>(free) : std::int64_t{0};
  });
}

std::shared_ptr<DeviceTimes> GpuBackend::BeginTiming() {
  if (cupti_ == nullptr || gpus_.empty()) return nullptr;
  return cupti_->Begin();
}

}  // namespace d2l
