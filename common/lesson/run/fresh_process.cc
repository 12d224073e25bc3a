#include "common/lesson/run/fresh_process.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/child_process.h"

namespace d2l {
namespace {

// The variable holds the probe's name, and the process that waits for it.
constexpr char kProbeVariable[] = "D2L_PROBE";
constexpr char kParentVariable[] = "D2L_PROBE_PARENT";

// The kept part of a probe's output: its end, which has the errors.
constexpr std::size_t kKeptText = 4000;

// Set by LessonMain in a process that runs a lesson.
std::atomic<bool> in_lesson{false};
std::atomic<bool> in_probe{false};

// Never destroyed; made by the first registration.
std::map<std::string, Probe>& Probes() {
  static auto& probes = *new std::map<std::string, Probe>;
  return probes;
}

std::string UnknownProbe(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& [known, probe] : Probes()) names.push_back(known);
  return absl::StrFormat("there is no probe \"%s\"; there are: %s", name,
                         names.empty() ? "none" : absl::StrJoin(names, ", "));
}

// ---------------------------------------------------------------------------
// In the new process.

// Writes the count, then the numbers, a line each, so that the reader can tell
// whether all are there. Writes nothing if there are no numbers: another
// process may write some.
bool WriteNumbers(std::FILE* file, const std::vector<double>& numbers) {
  if (numbers.empty()) return true;
  std::fprintf(file, "%zu\n", numbers.size());
  // The reader wants a decimal point, whatever the locale's mark is.
  for (const double number : numbers) {
    char text[32];
    char* const end =
        std::to_chars(std::begin(text), std::end(text), number).ptr;
    std::fprintf(file, "%.*s\n", static_cast<int>(end - text), text);
  }
  return std::fflush(file) == 0 && std::ferror(file) == 0;
}

// Returns the exit code.
int RunProbe(const std::string& name,
             const std::vector<std::string>& arguments) {
  const auto probe = Probes().find(name);
  if (probe == Probes().end()) {
    std::cerr << UnknownProbe(name) << " (" << kProbeVariable
              << " is set; unset it to run the lesson)\n";
    return 1;
  }
  // The probe's own output must not get between the numbers.
  std::FILE* result = fdopen(dup(STDOUT_FILENO), "w");
  if (result == nullptr || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
    std::cerr << "no stdout: " << std::strerror(errno) << "\n";
    return 1;
  }
  try {
    const std::vector<double> numbers = probe->second(arguments);
    std::cout << std::flush;
    if (WriteNumbers(result, numbers)) return 0;
    std::cerr << "the numbers could not be written: " << std::strerror(errno)
              << "\n";
  } catch (const std::exception& e) {
    std::cerr << e.what() << "\n";
  } catch (...) {
    std::cerr << "something that is not a std::exception was thrown\n";
  }
  return 1;
}

// ---------------------------------------------------------------------------
// In the lesson's process.

absl::StatusOr<std::vector<double>> ParseNumbers(const std::string& text) {
  const std::vector<absl::string_view> lines =
      absl::StrSplit(text, '\n', absl::SkipEmpty());
  std::size_t count = 0;
  if (lines.empty() || !absl::SimpleAtoi(lines[0], &count) ||
      count != lines.size() - 1) {
    return absl::InternalError("ended before it returned its numbers");
  }
  std::vector<double> numbers(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (!absl::SimpleAtod(lines[i + 1], &numbers[i])) {
      return absl::InternalError(
          absl::StrCat("returned a line that is not a number: ", lines[i + 1]));
    }
  }
  return numbers;
}

std::string Message(const std::string& name, const std::string& what,
                    std::string printed) {
  if (printed.size() > kKeptText) {
    printed = "…" + printed.substr(printed.size() - kKeptText);
  }
  absl::StripAsciiWhitespace(&printed);
  return absl::StrFormat(
      "the process of the probe \"%s\" %s%s", name, what,
      printed.empty() ? "; it printed nothing" : "; it printed:\n" + printed);
}

}  // namespace

bool RegisterProbe(std::string name, Probe probe) {
  if (Probes().count(name) > 0) {
    throw std::logic_error(
        absl::StrCat("a probe \"", name, "\" is registered already"));
  }
  Probes().emplace(std::move(name), std::move(probe));
  return true;
}

absl::StatusOr<std::vector<double>> RunInFreshProcess(
    const std::string& name, const std::vector<std::string>& arguments,
    std::chrono::milliseconds limit, const std::vector<std::string>& launcher) {
  if (in_probe) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the probe \"%s\" was requested by a probe, whose process is fresh "
        "already; call the function instead",
        name));
  }
  if (!in_lesson) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the probe \"%s\" can be run in a fresh process by a lesson only: this "
        "program's main is not LessonMain",
        name));
  }
  if (Probes().count(name) == 0) {
    return absl::NotFoundError(UnknownProbe(name));
  }

  ProgramOptions options;
  options.time_limit = limit;
  options.separate_stderr = true;
  // This is the program itself, even if its file has been replaced.
  std::string program = "/proc/self/exe";
  std::vector<std::string> words = arguments;
  std::vector<std::string> environment = {
      absl::StrCat(kProbeVariable, "=", name)};
  if (launcher.empty()) {
    environment.push_back(absl::StrCat(kParentVariable, "=", getpid()));
  } else {
    words = launcher;
    words.push_back(std::filesystem::read_symlink(program));
    words.insert(words.end(), arguments.begin(), arguments.end());
    program = words[0];
    words.erase(words.begin());
  }
  const ProgramResult run = RunProgram(program, words, environment, options);
  if (run.timed_out) {
    return absl::DeadlineExceededError(
        Message(name, run.failure, run.error_output));
  }
  if (!run.failure.empty()) {
    return absl::InternalError(Message(name, run.failure, run.error_output));
  }
  absl::StatusOr<std::vector<double>> numbers = ParseNumbers(run.output);
  if (!numbers.ok()) {
    return absl::InternalError(Message(
        name, std::string(numbers.status().message()), run.error_output));
  }
  return numbers;
}

std::optional<int> RunProbeIfAsked(int argc, char** argv) {
  const char* name = std::getenv(kProbeVariable);
  if (name == nullptr) {
    in_lesson = true;
    return std::nullopt;
  }
  in_probe = true;
  // From here on the process ends if the lesson is killed. The lesson may have
  // ended before this line.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const char* parent = std::getenv(kParentVariable);
  if (parent != nullptr && parent != std::to_string(getppid())) return 1;
  const std::string probe = name;
  // A process that the probe starts is no probe.
  unsetenv(kProbeVariable);
  unsetenv(kParentVariable);
  return RunProbe(probe, std::vector<std::string>(argv + 1, argv + argc));
}

}  // namespace d2l
