// CudaGpu: the resources that the streams on one physical GPU share: pools of
// events and of the streams' host memory, and a relation of the GPU's clock to
// the host's.
//
//   std::shared_ptr<CudaEvent> event;
//   if (const int error = gpu.NewEvent(/*timed=*/true, &event)) …
//   gpu.api().RecordEvent(event->handle(), stream);
//   const int error = event->Synchronize();
//
// Functions that return an int return CUDA's error.
//
// Thread-safe. A CudaGpu lives as long as the process and outlives its events;
// releasing an event or memory calls no CUDA, so it may happen anywhere. CUDA
// events are never destroyed and memory is never freed: the last reference may
// be released after the runtime has ended, and freeing page-locked memory waits
// for the GPU.

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
#include "common/device/cuda/stream/error_record.h"

namespace d2l {

class CudaGpu;

// A stream's host memory that its GPU can access.
struct StreamMemory {
  ErrorRecord records[2];
  alignas(64) std::uint32_t released;  // see CudaStream::Stall
  alignas(64) char number[8];          // see CudaStream::ReadBehind
};

// A CUDA event in use. When the last reference is released it returns to the
// pool, done or not: waits already enqueued for it refer to its old record.
class CudaEvent {
 public:
  CudaEvent(CudaGpu& gpu, bool timed, CudaEventHandle handle)
      : gpu_(gpu), timed_(timed), handle_(handle) {}
  ~CudaEvent();
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  CudaGpu& gpu() const { return gpu_; }
  bool timed() const { return timed_; }
  CudaEventHandle handle() const { return handle_; }

  // As in CudaApi, but callable from any thread.
  int Query() const;
  int Synchronize() const;
  // Both events are timed, done, and of one GPU.
  int MillisSince(const CudaEvent& begin, float* millis) const;

 private:
  CudaGpu& gpu_;
  const bool timed_;
  const CudaEventHandle handle_;
};

// A moment on the GPU's clock and on the host's.
struct CudaClock {
  std::shared_ptr<CudaEvent> event;
  std::int64_t host_nanos;         // NowNanos() when the event was reached,
  std::int64_t uncertainty_nanos;  // give or take this much
};

class CudaGpu {
 public:
  // index: the GPU's number in the runtime. built_archs: see
  // LaunchFailureText.
  CudaGpu(CudaApi& api, int index, std::string capability, int multiprocessors,
          std::vector<int> built_archs)
      : api_(api),
        index_(index),
        capability_(std::move(capability)),
        multiprocessors_(multiprocessors),
        built_archs_(std::move(built_archs)) {}
  CudaGpu(const CudaGpu&) = delete;
  CudaGpu& operator=(const CudaGpu&) = delete;

  CudaApi& api() const { return api_; }
  int index() const { return index_; }
  const std::string& capability() const { return capability_; }
  int multiprocessors() const { return multiprocessors_; }
  const std::vector<int>& built_archs() const { return built_archs_; }

  // Makes it the thread's current device.
  int MakeCurrent() const { return api_.SetDevice(index_); }

  // An event for the caller's exclusive use. The GPU is the thread's current
  // one.
  int NewEvent(bool timed, std::shared_ptr<CudaEvent>* event);

  // Zeroed memory for one stream. Return it once no work on the GPU uses it.
  // The GPU is the thread's current one.
  int NewStreamMemory(StreamMemory** memory);
  void ReturnStreamMemory(StreamMemory* memory);

  // A recent moment; null if CUDA refuses. Every four seconds a new one is
  // read, which takes some 10 us. If the GPU does not answer within 100 ms,
  // because a stalled stream shares a hardware queue with the clock's stream,
  // the previous moment is returned.
  std::shared_ptr<const CudaClock> Clock();

  // NowNanos() when `event`, which is timed and done, was reached. The error is
  // that of the clock's moment plus 0.5 us.
  static int HostNanos(const CudaClock& clock, const CudaEvent& event,
                       std::int64_t* nanos);

 private:
  friend class CudaEvent;

  std::shared_ptr<const CudaClock> ReadClock();

  CudaApi& api_;
  const int index_;
  const std::string capability_;
  const int multiprocessors_;
  const std::vector<int> built_archs_;

  std::mutex mutex_;                                  // guards these two
  std::array<std::vector<CudaEventHandle>, 2> free_;  // by timed
  std::vector<StreamMemory*> free_memory_;

  std::mutex clock_mutex_;  // guards what follows
  CudaStreamHandle clock_stream_ = nullptr;
  std::shared_ptr<const CudaClock> clock_;
  std::int64_t clock_read_at_ = 0;
};

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_CUDA_CUDA_GPU_H_
