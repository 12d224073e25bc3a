#include "common/device/cuda/stream/cuda_event.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>

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
  if (!log_->Look(*event_, number_ + 1)) return false;
  log_->DropPending();
  return true;
}

void CudaEventState::Block() {
  if (log_->completed() > number_) return;
  if (internal::in_cuda_callback) {
    throw std::logic_error(
        "[event] waited for in a host callback of a CUDA stream, which may "
        "not wait for a GPU");
  }
  log_->Await(*event_, number_ + 1);
  log_->DropPending();
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
  if (&event_->gpu() != &begin.event_->gpu()) {
    throw std::invalid_argument(
        "[elapsed_time] the events are of two GPUs, whose clocks cannot be "
        "compared");
  }
  float millis = 0;
  const int error = event_->MillisSince(*begin.event_, &millis);
  return error == 0 ? 1e6 * static_cast<double>(millis) : kUnknown;
}

}  // namespace d2l
