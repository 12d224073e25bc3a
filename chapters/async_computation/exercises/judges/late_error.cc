// Judges late_error: programs that fail late, in one place or in two, and one
// that does not fail.

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/console/language.h"
#include "common/base/source_location.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/failure.h"
#include "common/device/stream.h"
#include "common/exercise/exercise.h"
#include "common/exercise/probes.h"

namespace d2l {
namespace {

using FailedLine = int(Device device, const std::function<void()>& program);

// Eight operations, enqueued on lines 101 to 108.
struct Program {
  std::vector<int> failing;
  bool on_second_stream = false;
  bool waits = false;  // the program itself, at its end
};

int Call(const Judging& judging, FailedLine* answer, Device device,
         const std::string& input, const std::function<void()>& program) {
  try {
    return answer(device, program);
  } catch (const AsyncError&) {
    judging.Wrong({input, "an AsyncError that left your function",
                   "the line that enqueued the work",
                   "A program may wait by itself; then program() throws the "
                   "error. Call program() inside the try block, too."});
  }
}

void JudgeOne(const Judging& judging, FailedLine* answer,
              const Program& program, Device device) {
  Stream& second = NewStream(device);
  Stream& stream = program.on_second_stream ? second : CurrentStream(device);
  const std::vector<int>& failing = program.failing;
  std::string input = Say("operations on lines 101 to 108");
  for (const int line : failing) input += Say(", %d fails", line);
  if (program.on_second_stream) input += Say(", on a second stream");
  if (program.waits) input += Say(", and a wait at the end of the program");
  const int expected = failing.empty() ? 0 : failing.front();
  int calls = 0;
  bool at_its_end = false, waited = false;
  const int got = Call(judging, answer, device, input, [&] {
    ++calls;
    Gate gate(stream);
    for (int line = 101; line <= 108; ++line) {
      bool fails = false;
      for (const int l : failing) fails = fails || l == line;
      stream.HostCallback(
          [fails] {
            if (fails) throw std::runtime_error("a number is out of range");
          },
          SourceLocation("program.cc", line));
    }
    waited = gate.TimedOut();
    at_its_end = true;
    gate.Open();
    if (program.waits) Synchronize(device);
  });
  const bool idle = stream.Query();
  if (calls == 0) {
    judging.Wrong({input, "program() was not called", "one call",
                   "Call program(): it enqueues the work."});
  }
  if (calls > 1) {
    judging.Wrong({input, Say("%d calls of program()", calls), "one call",
                   "Each call enqueues all of its work once more. One call is "
                   "enough: the error has the line."});
  }
  try {
    Synchronize(device);
  } catch (const std::runtime_error&) {
    if (got == 0) {
      judging.Wrong(
          {input, "0, and the failure came later",
           absl::StrFormat("%d", expected),
           program.on_second_stream
               ? "A device has several streams. Synchronize(device) waits for "
                 "all of them."
               : "The program had returned, but the work was not done. A "
                 "failure shows only when the program waits."});
    }
  }
  if (waited || !at_its_end) {
    judging.Wrong({input, "the program waited for each operation",
                   "a program that runs ahead of the device",
                   "Launch blocking finds the line and makes every call wait. "
                   "The error itself names the line as well."});
  }
  if (got != expected) {
    std::string look = "Nothing failed here: return 0.";
    if (expected != 0) {
      look = got > 100 && got <= 108
                 ? "Of several failures the first one counts."
                 : "An AsyncError has two lines: noticed_at(), which you may "
                   "have returned, noticed the failure; failure().requested_at "
                   "enqueued the work.";
    }
    judging.Wrong({input, absl::StrFormat("%d", got),
                   absl::StrFormat("%d", expected), look});
  }
  if (!idle) {
    judging.Wrong({input, "work was still to be done", "none",
                   "Wait for the device: what is not done can still fail."});
  }
}

void JudgeFailedLine(Judging& judging, FailedLine* answer) {
  const std::vector<Program> programs = {
      {{104}},
      {{107, 108}},
      {{101}},
      {{}},
      {{108}},
      {{103}, /*on_second_stream=*/true},
      {{105}, /*on_second_stream=*/false, /*waits=*/true}};
  for (const Program& program : programs) {
    JudgeOne(judging, answer, program, Devices().back().device);
  }
  JudgeOne(judging, answer, programs[0], Devices()[0].device);
}

D2L_JUDGE("late_error", JudgeFailedLine);

}  // namespace
}  // namespace d2l
