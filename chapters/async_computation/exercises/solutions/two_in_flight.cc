// two_in_flight: let the front end run ahead, but by two steps at most.
//
//   bazel run //:exercises -- two_in_flight

#include <functional>
#include <queue>

#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/event.h"
#include "common/device/stream.h"
#include "common/exercise/exercise.h"

namespace d2l {
namespace {

// Calls enqueue() `steps` times; each call enqueues one step of work on the
// device's current stream. At most two steps are in flight, enqueued and not
// done, at any time; when the function returns, all are done.
void RunSteps(int steps, Device device, const std::function<void()>& enqueue) {
  // SOLUTION
  std::queue<Event> in_flight;
  for (int i = 0; i < steps; ++i) {
    if (in_flight.size() == 2) {
      in_flight.front().Synchronize();
      in_flight.pop();
    }
    enqueue();
    in_flight.push(CurrentStream(device).Record());
  }
  Synchronize(device);
  // END
}

D2L_ANSWER("two_in_flight", RunSteps);

}  // namespace
}  // namespace d2l
