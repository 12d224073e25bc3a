#include "common/lesson/fresh_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <map>
#include <stdexcept>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace d2l {
namespace {

using Clock = std::chrono::steady_clock;

// The probe's name, and the process that waits for it.
constexpr char kProbeVariable[] = "D2L_PROBE";
constexpr char kParentVariable[] = "D2L_PROBE_PARENT";

// What is kept of the text that a probe printed: the end, where errors stand.
constexpr std::size_t kKeptText = 4000;

// Set by LessonMain, in a process that is there for a lesson.
std::atomic<bool> in_lesson{false};
std::atomic<bool> in_probe{false};

// Never destroyed, and made by whoever registers first.
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

// The count, then the numbers, a line each: who reads it can tell that nothing
// is missing.
bool WriteNumbers(int file, const std::vector<double>& numbers) {
  std::string text = absl::StrCat(numbers.size(), "\n");
  for (const double number : numbers) {
    absl::StrAppendFormat(&text, "%.17g\n", number);
  }
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = write(file, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
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
  // What the probe prints must not stand between the numbers.
  const int result = dup(STDOUT_FILENO);
  if (result < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
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

class File {
 public:
  File() = default;
  ~File() { Close(); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void Close() {
    if (number >= 0) close(number);
    number = -1;
  }

  int number = -1;
};

struct Pipe {
  File read;
  File write;

  bool Open() {
    int ends[2];
    // Not inherited by what other threads start at the same time.
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    read.number = ends[0];
    write.number = ends[1];
    return true;
  }
};

std::vector<std::string> Environment(const std::string& name) {
  std::vector<std::string> settings;
  for (char** setting = environ; *setting != nullptr; ++setting) {
    if (absl::StartsWith(*setting, kProbeVariable)) continue;
    settings.push_back(*setting);
  }
  settings.push_back(absl::StrCat(kProbeVariable, "=", name));
  settings.push_back(absl::StrCat(kParentVariable, "=", getpid()));
  return settings;
}

// Refers to the texts, which stay the owner's.
std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// 0, or an errno.
int Spawn(const std::string& name, const std::vector<std::string>& arguments,
          const Pipe& result, const Pipe& text, pid_t* child) {
  std::vector<std::string> command = {name};
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::vector<std::string> environment = Environment(name);

  posix_spawn_file_actions_t actions;
  if (const int error = posix_spawn_file_actions_init(&actions)) return error;
  int error = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO,
                                               "/dev/null", O_RDONLY, 0);
  if (error == 0) {
    error = posix_spawn_file_actions_adddup2(&actions, result.write.number,
                                             STDOUT_FILENO);
  }
  if (error == 0) {
    error = posix_spawn_file_actions_adddup2(&actions, text.write.number,
                                             STDERR_FILENO);
  }
  if (error == 0) {
    // The program itself, even if its file has been replaced meanwhile.
    error = posix_spawn(child, "/proc/self/exe", &actions, nullptr,
                        Pointers(command).data(), Pointers(environment).data());
  }
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

int MillisecondsUntil(Clock::time_point end) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
  return left.count() < 0 ? 0 : static_cast<int>(left.count());
}

// Reads what is there. At the end of the stream it closes the file.
void ReadSome(File* file, std::string* text) {
  std::array<char, 4096> buffer;
  const ssize_t n = read(file->number, buffer.data(), buffer.size());
  if (n < 0 && errno == EINTR) return;
  if (n <= 0) return file->Close();
  text->append(buffer.data(), static_cast<std::size_t>(n));
}

// Reads both to their ends; false if it is `end` before that.
bool ReadBoth(File* result, std::string* numbers, File* text,
              std::string* printed, Clock::time_point end) {
  while (result->number >= 0 || text->number >= 0) {
    // poll passes over negative ones.
    pollfd files[] = {{result->number, POLLIN, 0}, {text->number, POLLIN, 0}};
    const int ready = poll(files, 2, MillisecondsUntil(end));
    if (ready == 0) return false;
    if (ready < 0) continue;  // a signal
    if (files[0].revents != 0) ReadSome(result, numbers);
    if (files[1].revents != 0) ReadSome(text, printed);
    if (printed->size() > 2 * kKeptText) {
      printed->erase(0, printed->size() - kKeptText);
    }
  }
  return true;
}

// Whether the process ended before `end`; then *status is its.
bool WaitUntil(pid_t child, Clock::time_point end, int* status) {
  while (true) {
    const pid_t ended = waitpid(child, status, WNOHANG);
    if (ended == child) return true;
    if (ended < 0 && errno != EINTR) return true;
    if (Clock::now() >= end) return false;
    // Its output has ended, so it will too; nothing tells us when.
    poll(nullptr, 0, 1);
  }
}

void Kill(pid_t child, int* status) {
  kill(child, SIGKILL);
  while (waitpid(child, status, 0) < 0 && errno == EINTR) {
  }
}

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
          absl::StrCat("returned what is no number: ", lines[i + 1]));
    }
  }
  return numbers;
}

// What the status of a process says, as the end of a sentence; "" if all is
// well.
std::string HowItEnded(int status) {
  if (WIFSIGNALED(status)) {
    return absl::StrFormat("was ended by signal %d (%s)", WTERMSIG(status),
                           strsignal(WTERMSIG(status)));
  }
  if (WEXITSTATUS(status) == 0) return "";
  return absl::StrFormat("ended with exit code %d", WEXITSTATUS(status));
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
    std::chrono::milliseconds limit) {
  if (in_probe) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the probe \"%s\" was asked for by a probe, whose process is fresh "
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

  Pipe result;
  Pipe text;
  if (!result.Open() || !text.Open()) {
    return absl::InternalError(
        absl::StrCat("no pipe to a new process: ", std::strerror(errno)));
  }
  const Clock::time_point end = Clock::now() + limit;
  pid_t child = -1;
  if (const int error = Spawn(name, arguments, result, text, &child)) {
    return absl::InternalError(absl::StrFormat(
        "no new process for the probe \"%s\": %s", name, std::strerror(error)));
  }
  // Else the pipes would never end.
  result.write.Close();
  text.write.Close();

  std::string numbers;
  std::string printed;
  int status = 0;
  const bool ended =
      ReadBoth(&result.read, &numbers, &text.read, &printed, end) &&
      WaitUntil(child, end, &status);
  if (!ended) {
    Kill(child, &status);
    return absl::DeadlineExceededError(
        Message(name,
                absl::StrFormat("was stopped after its limit of %.3g s",
                                std::chrono::duration<double>(limit).count()),
                printed));
  }
  const std::string failure = HowItEnded(status);
  if (!failure.empty()) {
    return absl::InternalError(Message(name, failure, printed));
  }
  absl::StatusOr<std::vector<double>> parsed = ParseNumbers(numbers);
  if (!parsed.ok()) {
    return absl::InternalError(
        Message(name, std::string(parsed.status().message()), printed));
  }
  return parsed;
}

std::optional<int> RunProbeIfAsked(int argc, char** argv) {
  const char* name = std::getenv(kProbeVariable);
  if (name == nullptr) {
    in_lesson = true;
    return std::nullopt;
  }
  in_probe = true;
  // The lesson, if it is killed, cannot end this process any more. It may have
  // gone before this line.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const char* parent = std::getenv(kParentVariable);
  if (parent != nullptr && parent != std::to_string(getppid())) return 1;
  const std::string probe = name;
  // What the probe starts is no probe.
  unsetenv(kProbeVariable);
  unsetenv(kParentVariable);
  return RunProbe(probe, std::vector<std::string>(argv + 1, argv + argc));
}

}  // namespace d2l
