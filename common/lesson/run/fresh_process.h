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
// program, in which LessonMain runs it before anything else: there are no flags
// and no device table, unless the probe makes one (InitializeDevices). The
// process has no input; the probe's output is part of the message if it fails,
// and is discarded otherwise. Its environment is the lesson's.
//
// If the lesson ends, by Ctrl-C or otherwise, the new process ends as well.
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

// An exception of the probe is reported as a failure.
using Probe =
    std::function<std::vector<double>(const std::vector<std::string>&)>;

// `name` is "LESSON/PROBE". Returns true. Throws std::logic_error if there is a
// probe of that name.
bool RegisterProbe(std::string name, Probe probe);

// Runs the probe in a new process, waits for it, and returns its exact result.
// If that is impossible, the status says why:
//   NotFound            there is no such probe; the message lists the probes
//   FailedPrecondition  this program is no lesson (only LessonMain can run a
//                       probe in the new process), or is a probe itself
//   DeadlineExceeded    it took longer than `limit`, and was ended
//   Internal            it threw, crashed or ended early; with its output
// launcher: a command that starts the process, or several of it: {"mpirun",
// "-np", "2"}. One of several returns numbers, the others return none.
absl::StatusOr<std::vector<double>> RunInFreshProcess(
    const std::string& name, const std::vector<std::string>& arguments,
    std::chrono::milliseconds limit = std::chrono::seconds(60),
    const std::vector<std::string>& launcher = {});

// For LessonMain, which calls it first: if this process is for a probe, runs it
// and returns the exit code. From then on RunInFreshProcess works.
std::optional<int> RunProbeIfAsked(int argc, char** argv);

}  // namespace d2l

#endif  // D2L_COMMON_LESSON_RUN_FRESH_PROCESS_H_
