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

namespace only_around_the_wait {
int FailedLine(Device device, const std::function<void()>& program) {
  program();
  try {
    Synchronize(device);
  } catch (const AsyncError& error) {
    return error.failure().requested_at.line();
  }
  return 0;
}
}  // namespace only_around_the_wait

namespace one_stream {
int FailedLine(Device device, const std::function<void()>& program) {
  try {
    program();
    CurrentStream(device).Synchronize();
  } catch (const AsyncError& error) {
    return error.failure().requested_at.line();
  }
  return 0;
}
}  // namespace one_stream

namespace runs_it_twice {
int FailedLine(Device device, const std::function<void()>& program) {
  try {
    program();
    program();
    Synchronize(device);
  } catch (const AsyncError& error) {
    return error.failure().requested_at.line();
  }
  return 0;
}
}  // namespace runs_it_twice

D2L_MISTAKE("late_error", where_it_was_noticed, FailedLine,
            "noticed the failure");
D2L_MISTAKE("late_error", does_not_wait, FailedLine, "the work was not done");
D2L_MISTAKE("late_error", blocks_every_launch, FailedLine, "Launch blocking");
D2L_MISTAKE("late_error", only_around_the_wait, FailedLine,
            "inside the try block");
D2L_MISTAKE("late_error", one_stream, FailedLine,
            "A device has several streams");
D2L_MISTAKE("late_error", runs_it_twice, FailedLine, "calls of program()");

}  // namespace
}  // namespace d2l
