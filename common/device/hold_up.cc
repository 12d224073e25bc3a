#include "common/device/hold_up.h"

#include "common/device/backend.h"
#include "common/device/device.h"
#include "common/device/stream.h"

namespace d2l {

HoldUp::HoldUp(Stream& stream) {
  // What is held up would be waited for where it is asked for.
  if (!LaunchBlocking()) release_ = stream.Hold();
}

HoldUp::~HoldUp() { Release(); }

void HoldUp::Release() {
  if (release_ != nullptr) release_();
}

int HoldUp::Room(Device device) {
  constexpr int kOnGpu = 500;
  return device.type() == DeviceType::kCuda
             ? kOnGpu
             : static_cast<int>(StreamOptions().max_queued_operations) - 1;
}

}  // namespace d2l
