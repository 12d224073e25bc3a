#include "common/base/console/command_line.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"

namespace d2l {
namespace {

std::string OfEnvironment() {
  for (const char* name : {"LC_ALL", "LC_MESSAGES", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    return absl::StartsWith(value, "zh") ? "zh" : "en";
  }
  return "en";
}

void CheckStdout() {
  // std::cout writes through stdout. Closing a copy reports the delayed errors
  // of a network file system.
  const bool lost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
  if (!lost && (close(dup(STDOUT_FILENO)) == 0 || errno == EBADF)) return;
  std::fputs(
      "Error: stdout cannot be written (the disk is full, or the stream is "
      "closed); output is lost.\n",
      stderr);
  _exit(EXIT_FAILURE);
}

}  // namespace

absl::Status SetLanguage(const std::string& language) {
  if (!language.empty() && language != "en" && language != "zh") {
    return absl::InvalidArgumentError(
        Say("--lang=%s asked for; there are en (English) and zh (Chinese). Say "
            "--lang=en.",
            language));
  }
  language_internal::Speak(language.empty() ? OfEnvironment() : language);
  return absl::OkStatus();
}

void SetLanguageOf(int argc, char** argv) {
  std::string language;
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (absl::ConsumePrefix(&argument, "-") &&
        (absl::ConsumePrefix(&argument, "-"), true) &&
        absl::ConsumePrefix(&argument, "lang=")) {
      language = std::string(argument);
    }
  }
  if (!SetLanguage(language).ok()) SetLanguage("").IgnoreError();
}

bool AsksForHelp(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--") return false;
    if (argument == "--help" || argument == "-help" || argument == "-h") {
      return true;
    }
  }
  return false;
}

absl::Status CheckFlagNames(int argc, char** argv,
                            const std::vector<const char*>& flags) {
  std::map<absl::string_view, absl::string_view> values;  // of flags before
  for (int i = 1; i < argc; ++i) {
    const absl::string_view argument = argv[i];
    if (argument == "--") break;
    absl::string_view name = argument;
    if (!absl::ConsumePrefix(&name, "-") || name.empty()) continue;
    absl::ConsumePrefix(&name, "-");
    const std::size_t equals = name.find('=');
    const absl::string_view value =
        equals == absl::string_view::npos ? "" : name.substr(equals);
    name = name.substr(0, equals);
    const absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
    absl::string_view set_to = value.empty() ? "true" : value.substr(1);
    absl::string_view positive = name;
    if (flag == nullptr && absl::ConsumePrefix(&positive, "no")) {
      flag = absl::FindCommandLineFlag(positive);
      set_to = "false";
    }
    if (flag != nullptr) {
      // Otherwise its value is the next argument.
      if (value.empty() && !flag->IsOfType<bool>() && ++i < argc) {
        set_to = argv[i];
      }
      const auto before = values.try_emplace(flag->Name(), set_to).first;
      if (before->second == set_to) continue;
      return absl::InvalidArgumentError(
          Say("--%s=%s and --%s=%s asked for; a flag has one value. Leave one "
              "of them out.",
              flag->Name(), before->second, flag->Name(), set_to));
    }
    const std::string nearest = NearestName(name, {flags.begin(), flags.end()});
    // Half of its letters may be wrong.
    const bool near = 2 * EditDistance(name, nearest) <= name.size();
    return absl::InvalidArgumentError(
        near ? Say("%s asked for; there is no such flag. Say --%s%s, or --help "
                   "for a list of all flags.",
                   argument, nearest, value)
             : Say("%s asked for; there is no such flag. Say --help for a list "
                   "of all flags.",
                   argument));
  }
  return absl::OkStatus();
}

std::vector<const char*> FlagNames(const std::vector<FlagGroup>& groups) {
  std::vector<const char*> names;
  for (const FlagGroup& group : groups) {
    names.insert(names.end(), group.flags.begin(), group.flags.end());
  }
  return names;
}

std::string FlagHelp(const std::string& command,
                     const std::vector<FlagGroup>& groups) {
  std::string text = Say("Usage: %s -- [flags]", command) + "\n";
  for (const FlagGroup& group : groups) {
    if (*group.title != '\0') {
      absl::StrAppend(&text, "\n", Translated(group.title), "\n");
    }
    for (const char* name : group.flags) {
      absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
      const std::string now = flag->CurrentValue();
      absl::StrAppend(&text, "\n",
                      Say("%s (default: %s)", absl::StrCat("--", name),
                          now.empty() ? Translated("none") : now),
                      "\n");
      const std::string help = Translated(flag->Help());
      for (const absl::string_view line : absl::StrSplit(help, '\n')) {
        absl::StrAppend(&text, Wrap(std::string(line), "    "));
      }
    }
  }
  return text;
}

absl::Status CheckNotRead(const FlagFile& file,
                          const std::vector<std::string>& read) {
  for (const std::string& path : read) {
    std::error_code none;
    if (std::filesystem::equivalent(path, UserPath(file.path), none)) {
      return absl::InvalidArgumentError(
          Say("--%s=%s names a file that is read, %s. Name another file.",
              std::string(file.flag), file.path, path));
    }
  }
  return absl::OkStatus();
}

absl::Status OpenFlagFiles(const std::vector<FlagFile>& files) {
  for (const FlagFile& file : files) {
    if (file.path.empty()) continue;
    absl::StatusOr<AtomicFile> opened = AtomicFile::Open(UserPath(file.path));
    if (!opened.ok()) {
      return absl::Status(opened.status().code(),
                          absl::StrCat("--", file.flag, ": ",
                                       std::string(opened.status().message())));
    }
    for (const FlagFile& other : files) {
      if (!*other.file || !(*other.file)->SameFile(*opened)) continue;
      return absl::InvalidArgumentError(
          Say("--%s=%s and --%s=%s name the same file. Name two files.",
              std::string(other.flag), other.path, std::string(file.flag),
              file.path));
    }
    *file.file = *std::move(opened);
  }
  return absl::OkStatus();
}

void CheckStdoutAtExit() {
  signal(SIGXFSZ, SIG_IGN);
  for (int file = STDIN_FILENO; file <= STDERR_FILENO; ++file) {
    if (fcntl(file, F_GETFD) >= 0) continue;
    // open takes the lowest free number, which is this one. It is opened in the
    // wrong direction, so that using it still fails.
    if (open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) {
      return;
    }
  }
  std::atexit(CheckStdout);
}

}  // namespace d2l
