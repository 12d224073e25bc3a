// CudaGpu: the resources that the streams on one physical GPU share: pools of
// events and of the streams' host memory, a relation of the GPU's clock to the
// host's, and CUPTI, which all GPUs share.
//
//   std::shared_ptr<CudaEvent> event;
//   if (const int error = gpu.NewEvent(/*timed=*/true, &event)) …
//   gpu.api().RecordEvent(event->handle(), stream);
//
// Thread-safe. A CudaGpu lives as long as the process and outlives its events;
// releasing an event or memory calls no CUDA, so it may happen anywhere. CUDA's
// events are never destroyed, nor memory freed: the last reference may go when
// the runtime is gone, and freeing page-locked memory waits for the GPU.

#ifndef D2L_COMMON_DEVICE_CUDA_CUDA_GPU_H_
#define D2L_COMMON_DEVICE_CUDA_CUDA_GPU_H_

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "common/device/cuda/cuda_api.h"
#include "common/device/cuda/error_record.h"

namespace d2l {

class CudaGpu;
class CuptiTimer;

// A stream's host memory that its GPU can access.
struct StreamMemory {
  ErrorRecord records[2];
  alignas(64) std::uint32_t released;  // see CudaStream::Stall
};

// One of CUDA's events, in use. When the last reference goes it returns to the
// pool, done or not: waits that were enqueued for it keep the record they were
// made for.
class CudaEvent {
 public:
  CudaEvent(CudaGpu& gpu, bool timed, CudaEventHandle handle)
      : gpu_(gpu), timed_(timed), handle_(handle) {}
  ~CudaEvent();
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  CudaGpu& gpu() const { return gpu_; }
  CudaEventHandle handle() const { return handle_; }

 private:
  CudaGpu& gpu_;
  const bool timed_;
  const CudaEventHandle handle_;
};

// A moment on both clocks.
struct CudaClock {
  std::shared_ptr<CudaEvent> event;
  std::int64_t host_nanos;         // NowNanos() when the event was reached,
  std::int64_t uncertainty_nanos;  // give or take this much
};

class CudaGpu {
 public:
  // index: the GPU's number in the runtime. built_archs: see
  // LaunchFailureText. cupti: null for none.
  CudaGpu(CudaApi& api, int index, std::string capability, int multiprocessors,
          std::vector<int> built_archs, CuptiTimer* cupti = nullptr)
      : api_(api),
        index_(index),
        capability_(std::move(capability)),
        multiprocessors_(multiprocessors),
        built_archs_(std::move(built_archs)),
        cupti_(cupti) {}
  CudaGpu(const CudaGpu&) = delete;
  CudaGpu& operator=(const CudaGpu&) = delete;

  CudaApi& api() const { return api_; }
  int index() const { return index_; }
  const std::string& capability() const { return capability_; }
  int multiprocessors() const { return multiprocessors_; }
  const std::vector<int>& built_archs() const { return built_archs_; }
  CuptiTimer* cupti() const { return cupti_; }

  // An event for the caller's exclusive use. The GPU is the thread's current
  // one. Returns CUDA's error.
  int NewEvent(bool timed, std::shared_ptr<CudaEvent>* event);

  // Memory for one stream, all 0. To be returned when the GPU has no work left
  // that uses it. Returns CUDA's error.
  int NewStreamMemory(StreamMemory** memory);
  void ReturnStreamMemory(StreamMemory* memory);

  // A moment not long ago; null if CUDA refuses. Now and then it waits for the
  // GPU, some 10 us.
  std::shared_ptr<const CudaClock> Clock();

  // NowNanos() at which `event`, which is timed and done, was reached. As
  // precise as the clock's moment, and 0.5 us. Returns CUDA's error.
  int HostNanos(const CudaClock& clock, const CudaEvent& event,
                std::int64_t* nanos);

 private:
  friend class CudaEvent;

  std::shared_ptr<const CudaClock> ReadClock();

  CudaApi& api_;
  const int index_;
  const std::string capability_;
  const int multiprocessors_;
  const std::vector<int> built_archs_;
  CuptiTimer* const cupti_;

  std::mutex mutex_;                                  // guards these two
  std::array<std::vector<CudaEventHandle>, 2> free_;  // by timed
  std::vector<StreamMemory*> free_memory_;

  std::mutex clock_mutex_;  // guards what follows
  CudaStreamHandle clock_stream_ = nullptr;
  std::shared_ptr<const CudaClock> clock_;
};

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_CUDA_CUDA_GPU_H_
