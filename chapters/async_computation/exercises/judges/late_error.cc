// Judges late_error: programs that fail late, in one place or in two, and one
// that does not fail.

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/source_location.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/stream.h"
#include "common/exercise/exercise.h"
#include "common/exercise/probes.h"
#include "common/lesson/language.h"

namespace d2l {
namespace {

using FailedLine = int(Device device, const std::function<void()>& program);

// Programs of eight requests, on lines 101 to 108.
void JudgeOne(const Judging& judging, FailedLine* answer,
              const std::vector<int>& failing) {
  const Device device = TryGpu();
  Stream& stream = CurrentStream(device);
  std::string input = Say("requests on lines 101 to 108");
  for (const int line : failing) input += Say(", %d fails", line);
  const int expected = failing.empty() ? 0 : failing.front();
  bool called = false, at_its_end = false, waited = false;
  const int got = answer(device, [&] {
    called = true;
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
  });
  const bool idle = stream.Query();
  if (!called) {
    judging.Wrong({input, "program() was not called", "one call",
                   "Call program(): it asks for the work."});
  }
  try {
    Synchronize(device);
  } catch (const std::runtime_error&) {
    if (got == 0) {
      judging.Wrong(
          {input, "0, and the failure came later",
           absl::StrFormat("%d", expected),
           "The program had returned, the work was not done. A failure shows "
           "when somebody waits."});
    }
  }
  if (waited || !at_its_end) {
    judging.Wrong({input, "each request was waited for",
                   "a program that runs ahead of the device",
                   "Launch blocking finds the line and makes every call wait. "
                   "The error itself names the line as well."});
  }
  if (got != expected) {
    std::string look = "Nothing failed here: 0.";
    if (expected != 0) {
      look = got > 100 && got <= 108
                 ? "Of several failures the first one counts."
                 : "An AsyncError knows two lines: where it was noticed, which "
                   "this may be, and in failure() where the work was "
                   "requested.";
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
  const std::vector<std::vector<int>> programs = {
      {104}, {107, 108}, {101}, {}, {108}};
  for (const std::vector<int>& failing : programs) {
    JudgeOne(judging, answer, failing);
  }
}

D2L_JUDGE("late_error", JudgeFailedLine);

}  // namespace
}  // namespace d2l
