#include "common/lesson/run/runner.h"

#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <optional>
#include <streambuf>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/console/command_line.h"
#include "common/base/console/format.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/base/files/atomic_file.h"
#include "common/base/mutex.h"
#include "common/base/source_location.h"
#include "common/base/timer.h"
#include "common/device/backend.h"
#include "common/device/device_table.h"
#include "common/device/failure.h"
#include "common/kernels/tf32.h"
#include "common/lesson/cell/cell.h"
#include "common/lesson/cell/other_load.h"
#include "common/lesson/run/flags.h"
#include "common/lesson/run/fresh_process.h"
#include "common/lesson/run/report.h"
#include "common/lesson/run/run_profile.h"
#include "common/lesson/text/lesson.h"
#include "common/lesson/text/source.h"
#include "common/profiler/export.h"
#include "common/profiler/profile.h"
#include "common/profiler/race_checker.h"

namespace d2l {
namespace {

// A cell to be run, with its lesson.
struct Task {
  const Lesson* lesson;
  const LessonCell* cell;
  std::string number;  // "2.1"
};

// What is the same for all cells of this run.
struct Run {
  Program program;
  Size size;
  bool chosen;  // some cells only
  bool code;
  bool verbose;
  bool what_if;
  bool asks;  // for predictions
  std::vector<std::string> circumstances;
  std::string svg;      // a directory, or ""
  RunProfile* profile;  // null: nothing is recorded
};

std::size_t Columns() { return static_cast<std::size_t>(TextWidth()); }

int Complain(const absl::Status& status) {
  std::cerr << Wrap(std::string(status.message()), Lead("Error:"))
            << std::flush;
  return 1;
}

std::vector<Task> AllTasks() {
  std::vector<Task> tasks;
  for (const Lesson* lesson : Lessons()) {
    int place = 0;
    for (const LessonCell& cell : lesson->cells) {
      tasks.push_back(
          {lesson, &cell, absl::StrCat(lesson->number, ".", ++place)});
    }
  }
  return tasks;
}

absl::StatusOr<std::vector<Task>> Select(const std::vector<std::string>& ids) {
  const std::vector<Task> all = AllTasks();
  if (ids.empty()) return all;
  const auto is_called = [](const Task& task, const std::string& id) {
    return task.number == id || task.cell->HasId(id);
  };
  for (const std::string& id : ids) {
    if (std::any_of(all.begin(), all.end(),
                    [&](const Task& task) { return is_called(task, id); })) {
      continue;
    }
    std::string nearest;
    std::vector<std::string> there;
    for (const Task& task : all) {
      std::vector<std::string> names = task.cell->text.also;
      names.insert(names.begin(), task.number);
      names.push_back(task.cell->id);
      for (const std::string& name : names) {
        if (nearest.empty() ||
            EditDistance(id, name) < EditDistance(id, nearest)) {
          nearest = name;
        }
      }
      there.push_back(absl::StrCat(task.number, " ", names.back()));
    }
    return absl::NotFoundError(
        Say("--cell=%s asked for; there are %s. Did you mean --cell=%s?", id,
            absl::StrJoin(there, ", "), nearest));
  }
  std::vector<Task> tasks;
  for (const Task& task : all) {
    if (std::any_of(ids.begin(), ids.end(), [&](const std::string& id) {
          return is_called(task, id);
        })) {
      tasks.push_back(task);
    }
  }
  return tasks;
}

// A heading and, below it, text as it stands.
void PrintBlock(const std::string& heading, const std::string& text) {
  const std::size_t used = TextColumns(heading) + 5;
  std::cout << "--- " << heading << " "
            << std::string(Columns() - std::min(Columns(), used), '-') << "\n"
            << absl::StripAsciiWhitespace(text) << "\n";
}

// `left` and, at the end of the line or on the next one, `right`.
std::string Apart(const std::string& left, const std::string& right) {
  const std::size_t used = TextColumns(left) + TextColumns(right);
  const bool fits = used + 2 <= Columns();
  const std::size_t spaces = fits ? Columns() - used
                             : TextColumns(right) < Columns()
                                 ? Columns() - TextColumns(right)
                                 : 0;
  return absl::StrCat(left, fits ? "" : "\n", std::string(spaces, ' '), right,
                      "\n");
}

void PrintLessonHead(const Lesson& lesson, const Run& run) {
  std::cout << std::string(Columns(), '=') << "\n"
            << lesson.title << "\n"
            << Wrap(lesson.section) << "\n"
            << Say("Devices, at size %s:", std::string(SizeName(run.size)))
            << "\n";
  for (const DeviceInfo& info : Devices()) {
    std::cout << Wrap(info.Describe(), "  ");
  }
  const std::string note =
      DevicesNote(lesson.devices, Devices(), CudaBackend().Inventory());
  if (!note.empty()) std::cout << Wrap(note, Lead("Note:"));
  for (const std::string& circumstance : run.circumstances) {
    std::cout << Wrap(circumstance, Lead("Note:"));
  }
}

// Says on stderr, if that is a terminal, that something still runs.
class SlownessNotice {
 public:
  explicit SlownessNotice(std::string what) : what_(std::move(what)) {
    if (isatty(STDERR_FILENO) == 1) thread_ = std::thread([this] { Run(); });
  }
  ~SlownessNotice() {
    {
      MutexLock lock(mutex_);
      done_ = true;
    }
    ended_.NotifyAll();
    if (thread_.joinable()) thread_.join();
  }
  SlownessNotice(const SlownessNotice&) = delete;
  SlownessNotice& operator=(const SlownessNotice&) = delete;

 private:
  void Run() {
    const Timer timer;
    double next = 2;
    MutexLock lock(mutex_);
    while (!done_) {
      const double left = next - timer.Seconds();
      if (left > 0) {
        ended_.WaitFor(mutex_, std::chrono::milliseconds(
                                   1 + static_cast<int>(1000 * left)));
        continue;
      }
      std::cerr << Say("%s: %.0f s ...", what_, next) << "\n" << std::flush;
      next = next < 10 ? 10 : next + 10;
    }
  }

  const std::string what_;
  Mutex mutex_;
  CondVar ended_;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// measuring: whether to print how the program is measured too.
void PrintCode(const Task& task, bool measuring) {
  const CellText& text = task.cell->text;
  if (!text.python.empty()) PrintBlock(Say("The course (Python)"), text.python);
  const absl::StatusOr<SourceExcerpt> source =
      CellSource(task.lesson->file, text.id);
  if (source.ok()) {
    PrintBlock(
        Say("Here (C++), %s:%d", std::string(source->file), source->line),
        source->text);
  } else {
    PrintBlock(Say("Here (C++)"), std::string(source.status().message()));
  }
  const absl::StatusOr<SourceExcerpt> measured =
      CellSource(task.lesson->file, text.id, CodePart::kMeasured);
  if (measured.ok()) {
    const std::string where = Say("How it is measured, %s:%d",
                                  std::string(measured->file), measured->line);
    if (measuring) {
      PrintBlock(where, measured->text);
    } else {
      std::cout << "\n" << Wrap(where + Say(" (printed with --verbose)"));
    }
  }
  std::cout << "\n";
}

void PrintCellHead(const Task& task, const Run& run) {
  const CellText& text = task.cell->text;
  std::string place = text.section;
  if (!text.exercises.empty()) {
    absl::StrAppend(&place, ", ", Say("exercise %s", text.exercises));
  }
  absl::StrAppend(&place, place.empty() ? "[" : " [", text.id, "]");
  std::cout << "\n"
            << std::string(Columns(), '=') << "\n"
            << Apart(absl::StrCat(task.number, "  ", text.title), place) << "\n"
            << Wrap(text.context) << "\n";
  if (run.code) PrintCode(task, run.verbose);
  if (!text.predict.empty()) {
    std::cout << WrapWords(text.predict, Lead("Predict:"), "", Columns());
  }
}

// Whether a person can be asked. In the background a program that reads is
// stopped.
bool CanAsk() {
  return isatty(STDOUT_FILENO) == 1 && tcgetpgrp(STDIN_FILENO) == getpgrp();
}

// The terminal's settings before ReadKey, while it waits.
termios settings_before;
volatile sig_atomic_t settings_changed = 0;

// For signal handlers, too.
void RestoreTerminal() {
  if (settings_changed != 0) {
    tcsetattr(STDIN_FILENO, TCSANOW, &settings_before);
  }
  settings_changed = 0;
}

// Waits for a key, without Enter: "3"; "" for Enter; more for an arrow key or
// what is pasted; nothing for Ctrl-D. Keys before the prompt do not count.
std::optional<std::string> ReadKey(const std::string& prompt) {
  if (tcgetattr(STDIN_FILENO, &settings_before) != 0) return std::nullopt;
  termios settings = settings_before;
  settings.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  settings.c_cc[VMIN] = 1;
  settings.c_cc[VTIME] = 0;
  settings_changed = 1;
  tcsetattr(STDIN_FILENO, TCSAFLUSH, &settings);
  // Only now: a key that follows the prompt is not flushed.
  std::cout << prompt << std::flush;
  char typed[64];
  const ssize_t size = read(STDIN_FILENO, typed, sizeof(typed));
  RestoreTerminal();
  std::string key(typed, typed + std::max<ssize_t>(size, 0));
  if (absl::EndsWith(key, "\n")) key.pop_back();
  const bool shown = key.size() == 1 && absl::ascii_isprint(key[0]);
  std::cout << (shown ? key : "") << "\n";
  const bool end =
      size <= 0 || key == std::string(1, settings_before.c_cc[VEOF]);
  return end ? std::nullopt : std::optional(key);
}

// The learner's choice, from 1; 0 if the question is skipped, nothing if all
// further ones are.
std::optional<int> AskForChoice(const std::vector<std::string>& choices) {
  const int count = static_cast<int>(choices.size());
  for (int i = 0; i < count; ++i) {
    std::cout << Wrap(choices[i], absl::StrCat("  ", i + 1, "  "));
  }
  const std::string prompt =
      Lead(Say("Your answer (1-%d, Enter to skip):", count));
  while (const std::optional<std::string> key = ReadKey(prompt)) {
    if (key->empty()) return 0;
    const int digit = key->front() - '0';
    if (key->size() == 1 && digit >= 1 && digit <= count) return digit;
    std::cout << Wrap(Say("%s is none of 1-%d. Ctrl-D skips all questions.",
                          QuotedText(*key), count));
  }
  return std::nullopt;
}

// What to do about a lack of memory.
std::string SmallerSize(Size size) {
  switch (size) {
    case Size::kLarge:
      return Say("Run the lesson with --size=course or --size=small.");
    case Size::kCourse:
      return Say("Run the lesson with --size=small.");
    case Size::kSmall:
      break;
  }
  return Say(
      "This is the smallest size; end other programs, or lower "
      "--max_queued_operations and --max_bytes_in_flight.");
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

// While it lives, what is written to std::cout is kept as well. Not
// thread-safe; nor is the order of what several threads print.
class KeepOutput : private std::streambuf {
 public:
  KeepOutput() : out_(std::cout.rdbuf(this)) {}
  ~KeepOutput() override { std::cout.rdbuf(out_); }
  KeepOutput(const KeepOutput&) = delete;
  KeepOutput& operator=(const KeepOutput&) = delete;

  const std::string& text() const { return text_; }

 private:
  int_type overflow(int_type c) override {
    const char one = traits_type::to_char_type(c);
    return xsputn(&one, 1) == 1 ? c : traits_type::eof();
  }
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    text_.append(text, static_cast<std::size_t>(size));
    return out_->sputn(text, size);
  }
  int sync() override { return out_->pubsync(); }

  std::streambuf* const out_;
  std::string text_;
};

// False if an error was thrown.
bool RunCell(const Task& task, const Run& run, CellResult* result) {
  Cell cell(run.size, result, run.verbose, {run.svg, task.lesson->name},
            run.what_if);
  std::string& error = result->error;
  const KeepOutput kept;
  const Timer timer;
  const auto end = [&] {
    result->seconds = timer.Seconds();
    result->output = kept.text();
  };
  try {
    task.cell->run(cell);
    // An operation whose result was not read may still fail: here, not later.
    WaitForAllDevices();
    cell.ShowFigures();
    end();
    return true;
  } catch (const OutOfMemoryError& e) {
    error = absl::StrCat(e.what(), " ", SmallerSize(run.size));
  } catch (const std::exception& e) {
    error = e.what();
  } catch (...) {
    error = "something that is not a std::exception was thrown";
  }
  end();
  std::cout << std::flush;
  std::cerr << Wrap(error, Say("Error in %s:", result->text.id) + " ")
            << std::flush;
  ForgetFailures();
  return false;
}

bool RunAndRecordCell(const Task& task, const Run& run, CellResult* result) {
  if (run.profile == nullptr) return RunCell(task, run, result);
  const std::string& id = task.cell->id;
  bool ran = false;
  run.profile->Record(run.program == Program::kCourse
                          ? absl::StrCat(task.lesson->name, " ", id)
                          : id,
                      {result->source.file, result->source.line},
                      [&] { ran = RunCell(task, run, result); });
  return ran;
}

// next: the number of the cell that follows, or "".
void PrintCellResult(const CellResult& result, const Run& run,
                     const std::string& next) {
  const CellText& text = result.text;
  for (const Shown& drawing : result.drawings) {
    if (!drawing.file.empty()) {
      std::cout << Say("Written: %s", drawing.file) << "\n";
    }
  }
  const std::string course = OneLine(text.course_printed);
  if (!course.empty()) {
    std::cout << WrapWords(course, Lead("The course:"), "", Columns());
  }
  const std::string claims = ClaimsText(result);
  if (!claims.empty()) std::cout << "\n" << claims;
  const std::string prediction = PredictionText(result);
  if (!prediction.empty()) {
    std::cout << (claims.empty() ? "\n" : "") << prediction;
  }
  const std::string figures = FiguresText(result);
  if (run.verbose && !figures.empty()) std::cout << "\n" << figures;
  std::string learn;
  if (!text.learn.empty()) {
    learn = WrapWords(text.learn, Lead("You learn:"), "", Columns());
    learn.pop_back();  // the end of the line
  }
  // What else there is to see, if this is all that was asked for.
  std::vector<std::string> more;
  if (run.chosen && !run.code) more.push_back(Say("Code: --code"));
  if (run.chosen && !run.verbose) more.push_back(Say("Figures: --verbose"));
  if (run.chosen && !next.empty()) {
    more.push_back(Say("Next: --cell=%s", next));
  }
  if (!learn.empty() || !more.empty()) std::cout << "\n";
  const std::size_t last = learn.rfind('\n') + 1;  // npos + 1 is 0
  std::cout << learn.substr(0, last);
  if (!more.empty()) {
    std::cout << Apart(learn.substr(last), absl::StrJoin(more, "   "));
  } else if (!learn.empty()) {
    std::cout << learn.substr(last) << "\n";
  }
  std::cout << std::flush;
}

// The number of the cell behind this one in its lesson, or "".
std::string Next(const Task& task) {
  const std::vector<Task> all = AllTasks();
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    if (all[i].number == task.number && all[i + 1].lesson == task.lesson) {
      return all[i + 1].number;
    }
  }
  return "";
}

// What went wrong, for the last line.
struct Failures {
  int wrong_results = 0;
  int errors = 0;
};

// asking: adds the seconds for which predictions were waited for.
std::vector<LessonResult> RunAll(const std::vector<Task>& tasks, const Run& run,
                                 Failures* failures, double* asking) {
  std::vector<LessonResult> lessons;
  const Lesson* current = nullptr;
  bool asks = run.asks;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const Task& task = tasks[i];
    if (task.lesson != current) {
      current = task.lesson;
      lessons.push_back({current->name,
                         Devices(),
                         {},
                         run.circumstances,
                         current->number,
                         current->title,
                         current->section,
                         run.size});
      PrintLessonHead(*current, run);
    }
    PrintCellHead(task, run);
    CellResult result = {task.cell->text, task.number};
    if (asks && !result.text.choices.empty()) {
      const Timer timer;
      const std::optional<int> answer = AskForChoice(result.text.choices);
      *asking += timer.Seconds();
      asks = answer.has_value();
      result.predicted = answer.value_or(0);
    }
    std::cout << (result.text.predict.empty() ? "" : "\n") << std::flush;
    const auto code = [&](CodePart part) {
      return CellSource(task.lesson->file, result.text.id, part)
          .value_or(SourceExcerpt());
    };
    result.source = code(CodePart::kTaught);
    result.measured = code(CodePart::kMeasured);
    const LoadWatch watch;
    {
      const SlownessNotice notice(
          Say("%s (cell %d of %d)", task.number, i + 1, tasks.size()));
      if (!RunAndRecordCell(task, run, &result)) ++failures->errors;
    }
    result.load = watch.Seen();
    JudgeLoad(CoresNeeded(), &result);
    failures->wrong_results += result.wrong_results;
    PrintCellResult(result, run, Next(task));
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
      std::cout << Say("Written: %s", file->path()) << std::endl;
    } else {
      Complain(written);
      all_written = false;
    }
  };
  write(options->json, [&] { return json; });
  ExportOptions as;
  as.title = absl::StrJoin(
      Lessons(), ", ",
      [](std::string* out, const Lesson* lesson) { *out += lesson->title; });
  as.max_spans = options->trace_calls;
  as.more_spans = Say("--trace_calls=%d holds all.", profile.spans.size());
  write(options->trace, [&] { return ToChromeTrace(profile, as); });
  write(options->html, [&] { return ToHtmlTimeline(profile, as); });
  if (options->trace || options->html) {
    const std::string note = FitSpans(profile, as).note;
    if (!note.empty()) std::cout << Wrap(note, Lead("Note:"));
  }
  for (const std::string& note : profile.notes) {
    std::cout << Wrap(note, Lead("Note:"));
  }
  std::cout << std::flush;
  return all_written;
}

// Does not wait for work in flight. Only calls that are safe in a signal
// handler. The program ends by the signal, so that a loop of the shell stops.
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
  const absl::Status texts = LoadTexts(Language());
  if (!texts.ok()) return Complain(texts);
  const absl::StatusOr<std::vector<Task>> tasks = Select(options->cells);
  if (!tasks.ok()) return Complain(tasks.status());
  const absl::Status devices = PrepareDevices(*options, *tasks);
  if (!devices.ok()) return Complain(devices);

  const bool profiled = options->trace || options->html;
  RunProfile recorded(static_cast<int>(tasks->size()),
                      std::max(RunProfile::kMaxCalls, options->trace_calls));
  const Run run = {program,
                   options->size,
                   !options->cells.empty(),
                   options->code,
                   options->verbose,
                   options->what_if,
                   !course && !options->no_predict && CanAsk(),
                   Circumstances(LaunchBlocking(), AllowTf32(), profiled,
                                 options->device_options.stream, Devices(),
                                 CpuBackend().Inventory().devices[0].cores),
                   options->svg,
                   profiled ? &recorded : nullptr};
  std::optional<RaceChecker> checker;
  if (options->check_races) checker.emplace();
  const Timer timer;
  Failures failures;
  double asking = 0;
  const std::vector<LessonResult> lessons =
      RunAll(*tasks, run, &failures, &asking);

  std::cout << "\n" << std::string(Columns(), '=') << "\n";
  if (course) std::cout << CourseText(lessons) << "\n";
  if (!run.chosen) {
    std::cout << Wrap(
        Say("One cell, with its code and figures: --cell=%s --code --verbose",
            tasks->front().number));
  }
  std::cout << Wrap(CountsText(lessons))
            << Say("%d wrong results, %d errors. %s.", failures.wrong_results,
                   failures.errors, FormatDuration(timer.Seconds() - asking))
            << "\n";
  if (checker.has_value()) std::cout << checker->Report();
  const bool races = checker.has_value() && !checker->races().empty();
  const bool written = WriteFiles(
      &*options, course ? CourseJson(lessons) : LessonJson(lessons[0]),
      recorded.Finish());
  const bool right = failures.wrong_results + failures.errors == 0;
  return written && right && !races ? 0 : 1;
}

}  // namespace d2l
