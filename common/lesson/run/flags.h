// The flags of every lesson and of the course.
//
//   absl::StatusOr<LessonOptions> options =
//       ParseLessonFlags(argc, argv, Size::kCourse);
//
// ParseLessonFlags sets the run's language (language.h). A wrong value returns
// a status that says what was requested, what exists, and what to type instead.
// An unknown flag, or text that is no number, ends the program with Abseil's
// message.
//
// Call it once, from main. Nothing here is thread-safe.

#ifndef D2L_COMMON_LESSON_RUN_FLAGS_H_
#define D2L_COMMON_LESSON_RUN_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/files/atomic_file.h"
#include "common/device/device_table.h"
#include "common/lesson/cell/cell.h"

namespace d2l {

struct LessonOptions {
  bool help = false;  // print LessonHelp and stop; the rest is not set
  std::string devices;
  DeviceOptions device_options;
  std::optional<double> pace;  // none: what fits the machine
  std::string link;            // see ParseTopology; "": none
  double min_seconds = CellTiming().min_seconds;
  Size size = Size::kCourse;
  std::vector<std::string> cells;  // ids or numbers; empty: all
  bool code = false;
  bool no_code = false;
  bool verbose = false;
  bool no_predict = false;
  bool no_text = false;
  int require_gpus = 0;
  // Open for writing; no two are the same file.
  std::optional<AtomicFile> json;
  std::optional<AtomicFile> trace;
  std::optional<AtomicFile> html;
  std::int64_t trace_calls = 0;
  std::string svg;  // a directory, which exists; or ""
  bool launch_blocking = false;
  bool check_races = false;
  bool allow_tf32 = false;
};

// default_size is the --size if the flag is not given.
absl::StatusOr<LessonOptions> ParseLessonFlags(int argc, char** argv,
                                               Size default_size);

// The text of --help: each flag with its default and an example. `command`
// starts the program: "bazel run //:course".
std::string LessonHelp(const std::string& command);

}  // namespace d2l

#endif  // D2L_COMMON_LESSON_RUN_FLAGS_H_
