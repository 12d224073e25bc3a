#include "common/device/cuda/cuda_gpu.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "common/base/timer.h"
#include "common/device/cuda/cuda_errors.h"

namespace d2l {
namespace {

// CUDA returns the time between two events as a float of milliseconds. Up to 4
// s that is as fine as its clock, 0.5 us; after that, a new moment is read.
constexpr std::int64_t kClockNanos = 4'000'000'000;

// The GPU answers within microseconds, or only after a stall ends.
constexpr std::int64_t kClockPatienceNanos = 100'000'000;

// Page-locked memory is allocated one page at a time.
constexpr std::size_t kPage = 4096;

}  // namespace

CudaEvent::~CudaEvent() {
  std::lock_guard<std::mutex> lock(gpu_.mutex_);
  gpu_.free_[timed_].push_back(handle_);
}

int CudaEvent::Query() const {
  const int error = gpu_.MakeCurrent();
  return error != 0 ? error : gpu_.api().QueryEvent(handle_);
}

int CudaEvent::Synchronize() const {
  const int error = gpu_.MakeCurrent();
  return error != 0 ? error : gpu_.api().SynchronizeEvent(handle_);
}

int CudaEvent::MillisSince(const CudaEvent& begin, float* millis) const {
  const int error = gpu_.MakeCurrent();
  return error != 0 ? error
                    : gpu_.api().ElapsedMillis(begin.handle_, handle_, millis);
}

int CudaGpu::NewEvent(bool timed, std::shared_ptr<CudaEvent>* event) {
  CudaEventHandle handle = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!free_[timed].empty()) {
      handle = free_[timed].back();
      free_[timed].pop_back();
    }
  }
  if (handle == nullptr) {
    if (const int error = api_.CreateEvent(timed, &handle)) return error;
  }
  *event = std::make_shared<CudaEvent>(*this, timed, handle);
  return 0;
}

int CudaGpu::NewStreamMemory(StreamMemory** memory) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (free_memory_.empty()) {
    lock.unlock();  // this may wait for the GPU, and events may not
    void* data = nullptr;
    if (const int error = api_.AllocatePinned(kPage, &data)) return error;
    lock.lock();
    auto* const first = static_cast<StreamMemory*>(data);
    for (std::size_t i = 0; i < kPage / sizeof(StreamMemory); ++i) {
      free_memory_.push_back(first + i);
    }
  }
  *memory = new (free_memory_.back()) StreamMemory{};
  free_memory_.pop_back();
  return 0;
}

void CudaGpu::ReturnStreamMemory(StreamMemory* memory) {
  std::lock_guard<std::mutex> lock(mutex_);
  free_memory_.push_back(memory);
}

std::shared_ptr<const CudaClock> CudaGpu::Clock() {
  std::lock_guard<std::mutex> lock(clock_mutex_);
  const std::int64_t now = NowNanos();
  if (clock_ == nullptr || now - clock_read_at_ > kClockNanos) {
    clock_read_at_ = now;
    if (auto read = ReadClock()) clock_ = std::move(read);
  }
  return clock_;
}

std::shared_ptr<const CudaClock> CudaGpu::ReadClock() {
  if (MakeCurrent() != 0) return nullptr;
  if (clock_stream_ == nullptr && api_.CreateStream(&clock_stream_) != 0) {
    return nullptr;
  }
  // The event lies between two readings of the host's clock. Of three pairs of
  // readings the closest one was interrupted least.
  std::shared_ptr<const CudaClock> best;
  for (int i = 0; i < 3; ++i) {
    CudaClock read = {};
    if (NewEvent(/*timed=*/true, &read.event) != 0) return nullptr;
    const std::int64_t before = NowNanos();
    int error = api_.RecordEvent(read.event->handle(), clock_stream_);
    std::int64_t after = before;
    while (error == 0 || error == kCudaNotReady) {
      error = read.event->Query();
      after = NowNanos();
      if (error == 0) break;
      if (after - before > kClockPatienceNanos) return nullptr;
    }
    if (error != 0) return nullptr;
    read.uncertainty_nanos = (after - before) / 2;
    read.host_nanos = before + read.uncertainty_nanos;
    if (best == nullptr || read.uncertainty_nanos < best->uncertainty_nanos) {
      best = std::make_shared<const CudaClock>(std::move(read));
    }
  }
  return best;
}

int CudaGpu::HostNanos(const CudaClock& clock, const CudaEvent& event,
                       std::int64_t* nanos) {
  float millis = 0;
  const int error = event.MillisSince(*clock.event, &millis);
  *nanos = clock.host_nanos + std::llround(1e6 * static_cast<double>(millis));
  return error;
}

}  // namespace d2l
