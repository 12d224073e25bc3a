#include "common/lesson/run/runner.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/console/command_line.h"
#include "common/base/console/format.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/base/files/atomic_file.h"
#include "common/base/source_location.h"
#include "common/base/timer.h"
#include "common/base/undisturbed_timer.h"
#include "common/device/backend.h"
#include "common/device/device_table.h"
#include "common/device/topology.h"
#include "common/drawing/html_timeline.h"
#include "common/kernels/tf32.h"
#include "common/lesson/cell/cell.h"
#include "common/lesson/cell/other_load.h"
#include "common/lesson/run/flags.h"
#include "common/lesson/run/fresh_process.h"
#include "common/lesson/run/printed.h"
#include "common/lesson/run/prompt.h"
#include "common/lesson/run/report.h"
#include "common/lesson/run/run_cell.h"
#include "common/lesson/run/run_profile.h"
#include "common/lesson/text/lesson.h"
#include "common/lesson/text/source.h"
#include "common/profiler/export.h"
#include "common/profiler/profile.h"
#include "common/profiler/race_checker.h"

namespace d2l {
namespace {

// The part that is the same for all cells of this run.
struct Run {
  Program program;
  Size size;
  Detail detail;
  CellTiming timing;
  bool asks;  // whether to ask for predictions
  std::vector<std::string> circumstances;
  std::string svg;      // a directory, or ""
  RunProfile* profile;  // null: nothing is recorded
};

int Complain(const absl::Status& status) {
  std::cerr << Wrap(std::string(status.message()), Lead("Error:"))
            << std::flush;
  return 1;
}

std::vector<NumberedCell> AllCells() {
  std::vector<NumberedCell> tasks;
  for (const Lesson* lesson : Lessons()) {
    int place = 0;
    for (const LessonCell& cell : lesson->cells) {
      tasks.push_back(
          {lesson, &cell, absl::StrCat(lesson->number, ".", ++place)});
    }
  }
  return tasks;
}

// The cells with one of these ids; all cells, if there are no ids.
absl::StatusOr<std::vector<NumberedCell>> Select(
    const std::vector<std::string>& ids) {
  const std::vector<NumberedCell> all = AllCells();
  if (ids.empty()) return all;
  std::vector<NumberedCell> chosen;
  std::set<std::string> names;
  for (const NumberedCell& cell : all) {
    const CellText& text = cell.cell->text;
    std::set<std::string> mine(text.also.begin(), text.also.end());
    mine.insert({cell.number, cell.cell->id});
    if (std::any_of(ids.begin(), ids.end(), [&](const std::string& id) {
          return mine.count(id) != 0;
        })) {
      chosen.push_back(cell);
    }
    names.merge(mine);
  }
  for (const std::string& id : ids) {
    if (names.count(id) != 0) continue;
    const std::string nearest = NearestName(id, {names.begin(), names.end()});
    const auto name = [](std::string* out, const NumberedCell& cell) {
      absl::StrAppend(out, cell.number, " ", cell.cell->id);
    };
    return absl::NotFoundError(
        Say("--cell=%s asked for; there are %s. Did you mean --cell=%s?", id,
            absl::StrJoin(all, ", ", name), nearest));
  }
  return chosen;
}

bool RunAndRecordCell(const NumberedCell& task, const std::string& progress,
                      const Run& run, CellResult* result) {
  Cell cell(run.size, result, run.detail.verbose, {run.svg, task.lesson->name},
            run.timing);
  bool ran = false;
  const auto work = [&] {
    ran = RunCell(progress, task.cell->run, cell, result);
  };
  const std::string& id = task.cell->id;
  if (run.profile == nullptr) {
    work();
  } else {
    run.profile->Record(run.program == Program::kCourse
                            ? absl::StrCat(task.lesson->name, " ", id)
                            : id,
                        {result->source.file, result->source.line}, work);
  }
  return ran;
}

// The number of the cell after this one in its lesson, or "".
std::string Next(const NumberedCell& task) {
  const std::vector<NumberedCell> all = AllCells();
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    if (all[i].number == task.number && all[i + 1].lesson == task.lesson) {
      return all[i + 1].number;
    }
  }
  return "";
}

// The failures, for the last line.
struct Failures {
  int wrong_results = 0;
  int errors = 0;
};

// The result of a lesson before its cells run.
LessonResult WithoutCells(const Lesson& lesson, const Run& run) {
  return {lesson.name,   Devices(),    /*cells=*/{},   run.circumstances,
          lesson.number, lesson.title, lesson.section, run.size};
}

// Adds the seconds of waiting for predictions to `asking`.
std::vector<LessonResult> RunAll(const std::vector<NumberedCell>& tasks,
                                 const Run& run, Failures* failures,
                                 double* asking) {
  std::vector<LessonResult> lessons;
  const Lesson* current = nullptr;
  bool asks = run.asks;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const NumberedCell& task = tasks[i];
    if (task.lesson != current) {
      current = task.lesson;
      lessons.push_back(WithoutCells(*current, run));
      PrintLessonHead(*current, run.size, run.circumstances, run.detail);
    }
    PrintCellHead(task, run.detail);
    CellResult result = {task.cell->text, task.number};
    if (asks && !result.text.choices.empty()) {
      const Timer timer;
      const std::optional<int> answer = AskForChoice(result.text.choices);
      *asking += timer.Seconds();
      asks = answer.has_value();
      result.predicted = answer.value_or(0);
    }
    const bool asked = run.detail.predict && !result.text.predict.empty();
    std::cout << (asked ? "\n" : "") << std::flush;
    const auto code = [&](CodePart part) {
      return CellSource(task.lesson->file, result.text.id, part)
          .value_or(SourceExcerpt());
    };
    result.source = code(CodePart::kTaught);
    result.measured = code(CodePart::kMeasured);
    const LoadWatch watch;
    const std::string progress =
        Say("%s (cell %d of %d)", task.number, i + 1, tasks.size());
    if (!RunAndRecordCell(task, progress, run, &result)) ++failures->errors;
    result.load = watch.Seen();
    failures->wrong_results += result.wrong_results;
    PrintCellResult(result, run.detail, Next(task));
    lessons.back().cells.push_back(std::move(result));
  }
  return lessons;
}

// Writes the requested files; false if one could not be written.
bool WriteFiles(LessonOptions* options, const std::string& json,
                const Profile& profile) {
  // With --json=/dev/stdout, earlier output must come first.
  std::cout << std::flush;
  bool all_written = true;
  const auto write = [&](std::optional<AtomicFile>& file, auto&& make_text) {
    if (!file) return;
    file->Write(make_text());
    const absl::Status written = file->Commit();
    if (written.ok()) {
      std::cout << Say("Written: %s", file->path()) << std::endl;
    } else {
      Complain(written);
      all_written = false;
    }
  };
  write(options->json, [&] { return json; });
  ExportOptions as;
  as.max_spans = options->trace_calls;
  as.more_spans = Say("--trace_calls=%d holds all.", profile.spans.size());
  write(options->trace, [&] { return ToChromeTrace(profile, as); });
  write(options->html, [&] {
    return ToHtmlTimeline(
        profile, absl::StrJoin(Lessons(), ", ",
                               [](std::string* out, const Lesson* lesson) {
                                 *out += lesson->title;
                               }));
  });
  if (options->trace) {
    const std::string note = FitSpans(profile, as).note;
    if (!note.empty()) std::cout << Wrap(note, Lead("Note:"));
  }
  for (const std::string& note : profile.notes) {
    std::cout << Wrap(note, Lead("Note:"));
  }
  std::cout << std::flush;
  return all_written;
}

// Does not wait for work in flight. Makes only calls that are safe in a signal
// handler. Ends the program by the signal, so that a loop of the shell stops.
void StopAtOnce(int number) {
  RestoreTerminal();
  RemoveTemporaryFiles();
  constexpr char kText[] = "\nInterrupted.\n";
  if (number == SIGINT && write(STDERR_FILENO, kText, sizeof(kText) - 1) < 0) {
    // There is nowhere to report it.
  }
  signal(number, SIG_DFL);
  raise(number);
}

void StopOnSignals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    struct sigaction action = {};
    // The shell ignores SIGINT for background processes: leave it ignored.
    if (sigaction(number, nullptr, &action) == 0 &&
        action.sa_handler == SIG_IGN) {
      continue;
    }
    action = {};
    action.sa_handler = StopAtOnce;
    sigaction(number, &action, nullptr);
  }
}

// For the table's devices; none without --link.
absl::StatusOr<std::optional<Topology>> LinksOf(const LessonOptions& options) {
  if (options.link.empty()) return std::optional<Topology>();
  absl::StatusOr<Topology> links =
      ParseTopology(options.link, RanksOfDevices());
  if (!links.ok()) return links.status();
  return std::optional<Topology>(*std::move(links));
}

// Returns the links between the devices; none without --link.
absl::StatusOr<std::optional<Topology>> PrepareDevices(
    const LessonOptions& options, const std::vector<NumberedCell>& tasks) {
  DeviceOptions device_options = options.device_options;
  device_options.min_devices = 1;
  for (const NumberedCell& task : tasks) {
    device_options.min_devices =
        std::max(device_options.min_devices, task.lesson->devices);
  }
  const absl::Status made = InitializeDevices(options.devices, device_options);
  if (!made.ok()) return made;
  absl::StatusOr<std::optional<Topology>> links = LinksOf(options);
  if (!links.ok()) return links;
  if (options.launch_blocking) SetLaunchBlocking(true);
  if (options.allow_tf32) SetAllowTf32(true);
  const absl::Status gpus = RequireGpus(options.require_gpus);
  if (!gpus.ok()) return gpus;
  return links;
}

void PrintHelp(Program program) {
  std::cout << LessonHelp(program == Program::kCourse
                              ? "bazel run //:course"
                              : absl::StrCat("bazel run //chapters/",
                                             Lessons()[0]->name, ":lesson"));
}

// After PrepareDevices. links, profile: see Run.
Run MakeRun(Program program, const LessonOptions& options,
            const std::optional<Topology>& links, RunProfile* profile) {
  const bool course = program == Program::kCourse;
  const bool chosen = !options.cells.empty();
  const bool shows_program =
      !course && chosen && !options.no_code && IsOnTerminal();
  const bool text = !options.no_text;
  return {program,
          options.size,
          {shows_program, options.code, options.verbose, chosen, text,
           /*picture=*/text && !course && IsOnTerminal(),
           /*predict=*/text && !course},
          {options.pace, links, options.min_seconds},
          !course && !options.no_predict && text && CanAsk(),
          Circumstances(LaunchBlocking(), AllowTf32(), profile != nullptr,
                        options.device_options.stream, Devices(),
                        CpuBackend().Inventory().devices[0].cores),
          options.svg,
          profile};
}

// The lines below the last cell. seconds: of the run.
void PrintSummary(const std::vector<LessonResult>& lessons, const Run& run,
                  const Failures& failures, double seconds) {
  std::cout << "\n" << (run.detail.text ? Rule() : "");
  if (run.program == Program::kCourse) std::cout << CourseText(lessons) << "\n";
  const std::string load =
      LoadText(lessons, CoresNeeded(), !ProcessTimes::Read().waited.empty());
  if (!load.empty()) std::cout << Wrap(load);
  if (!run.detail.chosen) {
    std::cout << Wrap(
        Say("One cell, with its code and figures: --cell=%s --code --verbose",
            lessons.front().cells.front().number));
  }
  std::cout << Wrap(CountsText(lessons))
            << Say("%d wrong results, %d errors. %s.", failures.wrong_results,
                   failures.errors, FormatDuration(seconds))
            << "\n";
}

// Runs the cells, prints and writes the results; returns the exit code.
int RunTasks(Program program, const std::vector<NumberedCell>& tasks,
             const std::optional<Topology>& links, LessonOptions* options) {
  const bool profiled = options->trace || options->html;
  RunProfile recorded(static_cast<int>(tasks.size()),
                      std::max(RunProfile::kMaxCalls, options->trace_calls));
  const Run run =
      MakeRun(program, *options, links, profiled ? &recorded : nullptr);
  std::optional<RaceChecker> checker;
  if (options->check_races) checker.emplace();
  const Timer timer;
  Failures failures;
  double asking = 0;
  const std::vector<LessonResult> lessons =
      RunAll(tasks, run, &failures, &asking);
  PrintSummary(lessons, run, failures, timer.Seconds() - asking);
  if (checker.has_value()) std::cout << checker->Report();
  const bool races = checker.has_value() && !checker->races().empty();
  const bool written =
      WriteFiles(options,
                 program == Program::kCourse ? CourseJson(lessons)
                                             : LessonJson(lessons[0]),
                 recorded.Finish());
  const bool right = failures.wrong_results + failures.errors == 0;
  return written && right && !races ? 0 : 1;
}

}  // namespace

int LessonMain(int argc, char** argv, Program program) {
  CheckStdoutAtExit();
  if (const std::optional<int> exit_code = RunProbeIfAsked(argc, argv)) {
    return *exit_code;
  }
  StopOnSignals();
  if (Lessons().empty()) {
    return Complain(absl::FailedPreconditionError(
        "there is no lesson in this program: see common/lesson/lesson.bzl"));
  }
  absl::StatusOr<LessonOptions> options = ParseLessonFlags(
      argc, argv, program == Program::kCourse ? Size::kSmall : Size::kCourse);
  if (!options.ok()) return Complain(options.status());
  if (options->help) {
    PrintHelp(program);
    return 0;
  }
  const absl::Status texts = LoadTexts(Language());
  if (!texts.ok()) return Complain(texts);
  const absl::StatusOr<std::vector<NumberedCell>> tasks =
      Select(options->cells);
  if (!tasks.ok()) return Complain(tasks.status());
  const absl::StatusOr<std::optional<Topology>> links =
      PrepareDevices(*options, *tasks);
  if (!links.ok()) return Complain(links.status());
  return RunTasks(program, *tasks, *links, &*options);
}

}  // namespace d2l
