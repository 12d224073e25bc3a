#include <functional>

#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/failure.h"
#include "common/device/stream.h"
#include "common/exercise/exercise.h"

namespace d2l {
namespace {

namespace where_it_was_noticed {
int FailedLine(Device device, const std::function<void()>& program) {
  try {
    program();
    Synchronize(device);
  } catch (const AsyncError& error) {
    return error.noticed_at().line();
  }
  return 0;
}
}  // namespace where_it_was_noticed

namespace does_not_wait {
int FailedLine(Device /*device*/, const std::function<void()>& program) {
  try {
    program();
  } catch (const AsyncError& error) {
    return error.failure().requested_at.line();
  }
  return 0;
}
}  // namespace does_not_wait

namespace blocks_every_launch {
int FailedLine(Device device, const std::function<void()>& program) {
  int line = 0;
  SetLaunchBlocking(true);
  try {
    program();
    Synchronize(device);
  } catch (const AsyncError& error) {
    line = error.failure().requested_at.line();
  }
  SetLaunchBlocking(false);
  return line;
}
}  // namespace blocks_every_launch

D2L_MISTAKE("late_error", where_it_was_noticed, FailedLine,
            "where it was noticed");
D2L_MISTAKE("late_error", does_not_wait, FailedLine, "the work was not done");
D2L_MISTAKE("late_error", blocks_every_launch, FailedLine, "Launch blocking");

}  // namespace
}  // namespace d2l
