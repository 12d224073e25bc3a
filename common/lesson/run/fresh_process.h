// Measures in a new process: the first product of a process is slow, and each
// process has only one.
//
//   [[maybe_unused]] const bool registered_probe = RegisterProbe(
//       "profiling/cold_products",
//       [](const std::vector<std::string>& arguments) -> std::vector<double> {
//         if (!InitializeDevices(arguments[0]).ok()) throw …;
//         …
//         return {first, second};
//       });
//
//   absl::StatusOr<std::vector<double>> seconds =
//       RunInFreshProcess("profiling/cold_products", {"cpu:0"});
//
// A probe is a named function of a lesson. It runs in a new process of the same
// program, in which LessonMain runs it before anything else: there are neither
// flags nor a device table, unless the probe makes one (InitializeDevices). The
// process has no input; what the probe prints is part of the message if it
// fails, and else lost. Its environment is that of the lesson.
//
// Ctrl-C, or whatever else ends the lesson, ends the new process as well.
//
// Errors: see RunInFreshProcess. Thread-safety: RunInFreshProcess may be called
// by several threads at the same time. Probes are registered while the program
// is loaded, on one thread.

#ifndef D2L_COMMON_LESSON_RUN_FRESH_PROCESS_H_
#define D2L_COMMON_LESSON_RUN_FRESH_PROCESS_H_

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace d2l {

// What it throws is reported as a failure.
using Probe =
    std::function<std::vector<double>(const std::vector<std::string>&)>;

// name: "LESSON/PROBE". Returns true. Throws std::logic_error if there is a
// probe of that name.
bool RegisterProbe(std::string name, Probe probe);

// Runs the probe in a new process, waits for it, and returns what it returned,
// to the last digit. Where that is not possible the status says what happened:
//   NotFound            there is no such probe; those there are are named
//   FailedPrecondition  this program is no lesson (only LessonMain knows that
//                       a process is there for a probe), or is a probe itself
//   DeadlineExceeded    it took longer than `limit`, and was ended
//   Internal            it threw, crashed or ended early; with what it printed
// launcher: a command that starts the process, or several of it: {"mpirun",
// "-np", "2"}. Of several, one returns numbers and the others return none.
absl::StatusOr<std::vector<double>> RunInFreshProcess(
    const std::string& name, const std::vector<std::string>& arguments,
    std::chrono::milliseconds limit = std::chrono::seconds(60),
    const std::vector<std::string>& launcher = {});

// For LessonMain, which calls it first: if this process is there for a probe,
// runs it and returns the exit code. From then on RunInFreshProcess works.
std::optional<int> RunProbeIfAsked(int argc, char** argv);

}  // namespace d2l

#endif  // D2L_COMMON_LESSON_RUN_FRESH_PROCESS_H_
