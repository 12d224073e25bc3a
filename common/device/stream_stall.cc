#include "common/device/stream_stall.h"

#include "common/device/backend.h"
#include "common/device/device.h"
#include "common/device/stream.h"

namespace d2l {

StreamStall::StreamStall(Stream& stream) {
  // With launch blocking, each enqueue would wait for the stalled stream.
  if (!LaunchBlocking()) release_ = stream.Stall();
}

StreamStall::~StreamStall() { Release(); }

void StreamStall::Release() {
  if (release_ != nullptr) release_();
}

int StreamStall::Room(Device device) {
  constexpr int kOnGpu = 250;
  return device.type() == DeviceType::kCuda
             ? kOnGpu
             : static_cast<int>(StreamOptions().max_queued_operations) - 1;
}

}  // namespace d2l
