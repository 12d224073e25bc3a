// The state behind an event of a CUDA stream. See Event.
//
// Blocking spins or sleeps as the CUDA runtime decides (it spins if there are
// cores enough). A host callback of a CUDA stream must not call CUDA: there
// Query returns what is known already, and Block throws std::logic_error.
//
// Both may find that the GPU is lost, and then destroy the callbacks that will
// not run: call them without locks that tensors need.

#ifndef D2L_COMMON_DEVICE_CUDA_STREAM_CUDA_EVENT_H_
#define D2L_COMMON_DEVICE_CUDA_STREAM_CUDA_EVENT_H_

#include <cstdint>
#include <memory>

#include "common/device/cuda/cuda_gpu.h"
#include "common/device/cuda/stream/stream_log.h"
#include "common/device/event.h"
#include "common/device/failure.h"

namespace d2l {

class CudaEventState final : public EventState {
 public:
  // Operation `number` of the stream, which recorded `event`; null if the
  // stream does not run any more.
  CudaEventState(std::shared_ptr<StreamLog> log, std::uint64_t number,
                 std::shared_ptr<CudaEvent> event);

  // Null if there is nothing to wait for.
  const CudaEvent* event() const { return event_.get(); }

  bool Query() override;
  void Block() override;
  FailurePtr failure() override;
  // By the GPU's clock. NaN if CUDA cannot be called any more. Throws
  // std::invalid_argument if the events are of two GPUs.
  double NanosSince(EventState& begin) override;

 private:
  const std::shared_ptr<StreamLog> log_;
  const std::uint64_t number_;
  const std::shared_ptr<CudaEvent> event_;
};

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_CUDA_STREAM_CUDA_EVENT_H_
