#include "common/lesson/runner.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/atomic_file.h"
#include "common/base/format.h"
#include "common/base/source_location.h"
#include "common/base/stdout.h"
#include "common/base/text.h"
#include "common/base/timer.h"
#include "common/device/backend.h"
#include "common/device/device_table.h"
#include "common/device/failure.h"
#include "common/kernels/tf32.h"
#include "common/lesson/cell.h"
#include "common/lesson/flags.h"
#include "common/lesson/fresh_process.h"
#include "common/lesson/lesson.h"
#include "common/lesson/report.h"
#include "common/lesson/run_profile.h"
#include "common/lesson/source.h"
#include "common/profiler/chrome_trace.h"
#include "common/profiler/html_timeline.h"
#include "common/profiler/profile.h"

namespace d2l {
namespace {

// A cell to be run, with its lesson.
struct Task {
  const Lesson* lesson;
  const LessonCell* cell;
};

// What is the same for all cells of this run.
struct Run {
  Program program;
  Size size;
  std::vector<std::string> circumstances;
  std::string svg;      // a directory, or ""
  RunProfile* profile;  // null: nothing is recorded
};

std::size_t Columns() { return static_cast<std::size_t>(TextWidth()); }

int Complain(const absl::Status& status) {
  std::cerr << Wrap(std::string(status.message()), "Error: ") << std::flush;
  return 1;
}

absl::StatusOr<std::vector<Task>> Select(const std::vector<std::string>& ids) {
  std::vector<Task> tasks;
  std::vector<std::string> there;
  std::vector<std::string> unknown = ids;
  for (const Lesson* lesson : Lessons()) {
    for (const LessonCell& cell : lesson->cells) {
      const std::vector<std::string> also = cell.Also();
      there.push_back(also.empty()
                          ? cell.text.id
                          : absl::StrCat(cell.text.id, " (also ",
                                         absl::StrJoin(also, ", "), ")"));
      bool selected = ids.empty();
      for (const std::string& id : ids) {
        if (!cell.HasId(id)) continue;
        selected = true;
        unknown.erase(std::remove(unknown.begin(), unknown.end(), id),
                      unknown.end());
      }
      if (selected) tasks.push_back({lesson, &cell});
    }
  }
  if (!unknown.empty()) {
    return absl::NotFoundError(
        absl::StrFormat("--cell=%s asked for; there are %s. Say --cell=%s.",
                        absl::StrJoin(unknown, ","), absl::StrJoin(there, ", "),
                        Lessons()[0]->cells[0].text.id));
  }
  return tasks;
}

// A heading and, below it, text as it stands.
void PrintBlock(const std::string& heading, const std::string& text) {
  std::cout << "--- " << heading << " "
            << std::string(heading.size() + 5 < Columns()
                               ? Columns() - 5 - heading.size()
                               : 0,
                           '-')
            << "\n";
  const std::size_t begin = text.find_first_not_of('\n');
  const std::size_t end = text.find_last_not_of('\n');
  if (begin != std::string::npos) {
    std::cout << text.substr(begin, end - begin + 1) << "\n";
  }
}

void PrintLessonHead(const Lesson& lesson, const Run& run) {
  std::cout << std::string(Columns(), '=') << "\n"
            << lesson.title << "\n"
            << Wrap(lesson.section) << "\nDevices, at size "
            << SizeName(run.size) << ":\n";
  for (const DeviceInfo& info : Devices()) {
    std::cout << Wrap(info.Describe(), "  ");
  }
  const std::string note =
      DevicesNote(lesson.devices, Devices(), CudaBackend().Inventory());
  if (!note.empty()) std::cout << Wrap(note, "Note: ");
  for (const std::string& circumstance : run.circumstances) {
    std::cout << Wrap(circumstance, "Note: ");
  }
}

// If stdout is redirected, reports progress on stderr.
void PrintProgress(const std::string& progress) {
  if (isatty(STDERR_FILENO) == 1 && isatty(STDOUT_FILENO) != 1) {
    std::cerr << progress << " ..." << std::endl;
  }
}

void PrintCellText(const Task& task, const std::string& progress) {
  const CellText& text = task.cell->text;
  const std::vector<std::string> also = task.cell->Also();
  std::cout << "\n" << std::string(Columns(), '=') << "\n" << progress;
  if (!also.empty()) std::cout << " (also " << absl::StrJoin(also, ", ") << ")";
  std::cout << "\n\n" << Wrap(text.context) << "\n";
  if (*text.python != '\0') PrintBlock("The course (Python)", text.python);
  const absl::StatusOr<SourceExcerpt> source =
      CellSource(task.lesson->file, text.id);
  if (source.ok()) {
    PrintBlock(
        absl::StrCat("Here (C++), ", task.lesson->file, ":", source->line),
        source->text);
  } else {
    PrintBlock("Here (C++)", std::string(source.status().message()));
  }
  if (*text.course_printed != '\0') {
    PrintBlock("The course printed", text.course_printed);
  }
  PrintBlock("This machine prints", "");
  std::cout << std::flush;
}

// What to do about a lack of memory.
std::string SmallerSize(Size size) {
  switch (size) {
    case Size::kLarge:
      return "Run the lesson with --size=course or --size=small.";
    case Size::kCourse:
      return "Run the lesson with --size=small.";
    case Size::kSmall:
      break;
  }
  return "This is the smallest size; end other programs, or lower "
         "--max_queued_operations and --max_bytes_in_flight.";
}

void WaitForAllDevices() {
  for (const DeviceInfo& info : Devices()) Synchronize(info.device);
}

// After an error: what is left of it must not show up in the next cell.
void ForgetFailures() {
  for (const DeviceInfo& info : Devices()) {
    try {
      Synchronize(info.device);
    } catch (const AsyncError&) {
      // Reported already, or a consequence of what was.
    }
  }
}

// False if an error was thrown.
bool RunCell(const Task& task, const Run& run, CellResult* result) {
  Cell cell(run.size, run.circumstances, result, {run.svg, task.lesson->name});
  std::string error;
  try {
    task.cell->run(cell);
    // An operation whose result was not read may still fail: here, not later.
    WaitForAllDevices();
    return true;
  } catch (const OutOfMemoryError& e) {
    error = absl::StrCat(e.what(), " ", SmallerSize(run.size));
  } catch (const std::exception& e) {
    error = e.what();
  } catch (...) {
    error = "something that is not a std::exception was thrown";
  }
  std::cout << std::flush;
  std::cerr << Wrap(error, absl::StrCat("Error in ", result->id, ": "))
            << std::flush;
  ForgetFailures();
  return false;
}

bool RunAndRecordCell(const Task& task, const Run& run, CellResult* result) {
  if (run.profile == nullptr) return RunCell(task, run, result);
  const std::string id = task.cell->text.id;
  const absl::StatusOr<SourceExcerpt> source =
      CellSource(task.lesson->file, id);
  bool ran = false;
  run.profile->Record(run.program == Program::kCourse
                          ? absl::StrCat(task.lesson->name, " ", id)
                          : id,
                      {task.lesson->file, source.ok() ? source->line : 0},
                      [&] { ran = RunCell(task, run, result); });
  return ran;
}

void PrintCellResult(const CellResult& result) {
  const std::string figures = FiguresText(result);
  const std::string claims = ClaimsText(result);
  if (!figures.empty()) std::cout << "\n" << figures;
  if (!claims.empty()) std::cout << "\n" << claims;
  std::cout << std::flush;
}

// What went wrong, for the last line.
struct Failures {
  int wrong_results = 0;
  int errors = 0;
};

std::vector<LessonResult> RunAll(const std::vector<Task>& tasks, const Run& run,
                                 Failures* failures) {
  std::vector<LessonResult> lessons;
  const Lesson* current = nullptr;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const Task& task = tasks[i];
    if (task.lesson != current) {
      current = task.lesson;
      lessons.push_back({current->name, Devices(), {}, run.circumstances});
      PrintLessonHead(*current, run);
    }
    const std::string id = task.cell->text.id;
    const std::string progress =
        run.program == Program::kCourse
            ? absl::StrFormat("cell %d of %d: %s", i + 1, tasks.size(), id)
            : id;
    PrintProgress(progress);
    PrintCellText(task, progress);
    CellResult result;
    result.id = id;
    result.course_printed = task.cell->text.course_printed;
    result.also = task.cell->Also();
    if (!RunAndRecordCell(task, run, &result)) ++failures->errors;
    failures->wrong_results += result.wrong_results;
    PrintCellResult(result);
    lessons.back().cells.push_back(std::move(result));
  }
  return lessons;
}

// What the flags ask for; false if a file could not be written.
bool WriteFiles(LessonOptions* options, const std::string& json,
                const Profile& profile) {
  // --json=/dev/stdout: what comes before stands before.
  std::cout << std::flush;
  bool all_written = true;
  const auto write = [&](std::optional<AtomicFile>& file, auto&& make_text) {
    if (!file) return;
    file->Write(make_text());
    const absl::Status written = file->Commit();
    if (written.ok()) {
      std::cout << "Written: " << file->path() << std::endl;
    } else {
      Complain(written);
      all_written = false;
    }
  };
  write(options->json, [&] { return json; });
  // The run's own bound is the only one, so that no cell is left out.
  const auto spans = static_cast<std::int64_t>(profile.spans.size());
  write(options->trace, [&] {
    TraceOptions trace_options;
    trace_options.max_spans = spans;
    return ToChromeTrace(profile, trace_options);
  });
  write(options->html, [&] {
    HtmlTimelineOptions html_options;
    html_options.title = absl::StrJoin(
        Lessons(), ", ",
        [](std::string* out, const Lesson* lesson) { *out += lesson->title; });
    html_options.max_spans = spans;
    return ToHtmlTimeline(profile, html_options);
  });
  for (const std::string& note : profile.notes) {
    std::cout << Wrap(note, "Note: ");
  }
  std::cout << std::flush;
  return all_written;
}

// Does not wait for work in flight. Only calls that are safe in a signal
// handler. The program ends by the signal, so that a loop of the shell stops.
void StopAtOnce(int number) {
  RemoveTemporaryFiles();
  constexpr char kText[] = "\nInterrupted.\n";
  if (number == SIGINT && write(STDERR_FILENO, kText, sizeof(kText) - 1) < 0) {
    // There is nowhere to report it.
  }
  signal(number, SIG_DFL);
  raise(number);
}

void StopOnSignals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action = {};
    // In the background, where Ctrl-C does not count, the shell says so.
    if (sigaction(number, nullptr, &action) == 0 &&
        action.sa_handler == SIG_IGN) {
      continue;
    }
    action = {};
    action.sa_handler = StopAtOnce;
    sigaction(number, &action, nullptr);
  }
}

absl::Status PrepareDevices(const LessonOptions& options,
                            const std::vector<Task>& tasks) {
  DeviceOptions device_options = options.device_options;
  device_options.min_devices = 1;
  for (const Task& task : tasks) {
    device_options.min_devices =
        std::max(device_options.min_devices, task.lesson->devices);
  }
  const absl::Status made = InitializeDevices(options.devices, device_options);
  if (!made.ok()) return made;
  if (options.launch_blocking) SetLaunchBlocking(true);
  if (options.allow_tf32) SetAllowTf32(true);
  return RequireGpus(options.require_gpus);
}

}  // namespace

int LessonMain(int argc, char** argv, Program program) {
  CheckStdoutAtExit();
  if (const std::optional<int> exit_code = RunProbeIfAsked(argc, argv)) {
    return *exit_code;
  }
  StopOnSignals();
  const bool course = program == Program::kCourse;
  if (Lessons().empty()) {
    return Complain(absl::FailedPreconditionError(
        "there is no lesson in this program: see common/lesson/lesson.bzl"));
  }
  absl::StatusOr<LessonOptions> options =
      ParseLessonFlags(argc, argv, course ? Size::kSmall : Size::kCourse);
  if (!options.ok()) return Complain(options.status());
  if (options->help) {
    std::cout << LessonHelp(course
                                ? "bazel run //:course"
                                : absl::StrCat("bazel run //chapters/",
                                               Lessons()[0]->name, ":lesson"));
    return 0;
  }
  const absl::StatusOr<std::vector<Task>> tasks = Select(options->cells);
  if (!tasks.ok()) return Complain(tasks.status());
  const absl::Status devices = PrepareDevices(*options, *tasks);
  if (!devices.ok()) return Complain(devices);

  const bool profiled = options->trace || options->html;
  RunProfile recorded(static_cast<int>(tasks->size()));
  const Run run = {program, options->size,
                   Circumstances(LaunchBlocking(), AllowTf32(), profiled,
                                 options->device_options.stream, Devices(),
                                 CpuBackend().Inventory().devices[0].cores),
                   options->svg, profiled ? &recorded : nullptr};
  const Timer timer;
  Failures failures;
  const std::vector<LessonResult> lessons = RunAll(*tasks, run, &failures);

  std::cout << "\n" << std::string(Columns(), '=') << "\n";
  if (course) std::cout << VerdictTable(lessons) << "\n";
  std::cout << Wrap(CountsText(lessons))
            << absl::StrFormat("%d wrong results, %d errors. %s.\n",
                               failures.wrong_results, failures.errors,
                               FormatDuration(timer.Seconds()));
  const bool written = WriteFiles(
      &*options, course ? CourseJson(lessons) : LessonJson(lessons[0]),
      recorded.Finish());
  return written && failures.wrong_results + failures.errors == 0 ? 0 : 1;
}

}  // namespace d2l
