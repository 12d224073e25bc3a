#include "common/device/cuda/cuda_event.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>

#include "common/device/cuda/cuda_errors.h"

namespace d2l {

CudaEventState::CudaEventState(std::shared_ptr<StreamLog> log,
                               std::uint64_t number,
                               std::shared_ptr<CudaEvent> event)
    : EventState(DeviceType::kCuda),
      log_(std::move(log)),
      number_(number),
      event_(std::move(event)) {}

bool CudaEventState::Query() {
  if (log_->completed() > number_) return true;
  if (internal::in_cuda_callback) return false;
  CudaApi& api = event_->gpu().api();
  const int error = api.QueryEvent(event_->handle());
  if (error == kCudaNotReady) return false;
  if (error != 0) {
    // Whatever the error, the stream's progress cannot be known any more.
    if (!log_->NoteError(api, error)) log_->Lose(api.ErrorText(error));
    return true;
  }
  log_->Complete(number_ + 1);
  return true;
}

void CudaEventState::Block() {
  if (log_->completed() > number_) return;
  if (internal::in_cuda_callback) {
    throw std::logic_error(
        "[event] waited for in a host callback of a CUDA stream, which may "
        "not wait for a GPU");
  }
  CudaApi& api = event_->gpu().api();
  const int error = api.SynchronizeEvent(event_->handle());
  if (error == 0) {
    log_->Complete(number_ + 1);
  } else if (!log_->NoteError(api, error)) {
    log_->Lose(api.ErrorText(error));
  }
}

FailurePtr CudaEventState::failure() {
  // It is done, even if its own stream does not know yet.
  log_->Resolve(number_ + 1);
  return log_->FailureOf(number_);
}

double CudaEventState::NanosSince(EventState& begin_state) {
  auto& begin = static_cast<CudaEventState&>(begin_state);
  if (&begin == this) return 0;
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  for (const CudaEventState* state : {this, &begin}) {
    if (state->event_ == nullptr ||
        state->log_->state() != StreamLog::State::kRunning) {
      return kUnknown;
    }
  }
  CudaGpu& gpu = event_->gpu();
  CudaGpu& other = begin.event_->gpu();
  if (&gpu == &other) {
    float millis = 0;
    const int error = gpu.api().ElapsedMillis(begin.event_->handle(),
                                              event_->handle(), &millis);
    return error == 0 ? 1e6 * static_cast<double>(millis) : kUnknown;
  }
  const std::shared_ptr<const CudaClock> clock = gpu.Clock();
  const std::shared_ptr<const CudaClock> other_clock = other.Clock();
  std::int64_t at = 0;
  std::int64_t began = 0;
  if (clock == nullptr || other_clock == nullptr ||
      gpu.HostNanos(*clock, *event_, &at) != 0 ||
      other.HostNanos(*other_clock, *begin.event_, &began) != 0) {
    return kUnknown;
  }
  return static_cast<double>(at - began);
}

}  // namespace d2l
