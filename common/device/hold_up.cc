#include "common/device/hold_up.h"

#include <condition_variable>
#include <memory>
#include <mutex>

#include "common/device/stream.h"

namespace d2l {

struct HoldUp::Gate {
  std::mutex mutex;
  std::condition_variable changed;
  bool reached = false;
  bool open = false;
};

HoldUp::HoldUp(Stream& stream) : gate_(std::make_shared<Gate>()) {
  // The callback below would be waited for where it is asked for.
  if (LaunchBlocking()) return;
  stream.HostCallback([gate = gate_] {
    std::unique_lock<std::mutex> lock(gate->mutex);
    gate->reached = true;
    gate->changed.notify_all();
    gate->changed.wait(lock, [&gate] { return gate->open; });
  });
  std::unique_lock<std::mutex> lock(gate_->mutex);
  gate_->changed.wait(lock, [this] { return gate_->reached; });
}

HoldUp::~HoldUp() { Release(); }

void HoldUp::Release() {
  std::lock_guard<std::mutex> lock(gate_->mutex);
  gate_->open = true;
  gate_->changed.notify_all();
}

}  // namespace d2l
