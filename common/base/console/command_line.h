// What a program does with its own flags: the language that --lang names, what
// --help prints, what is said of a flag that is none, and files that flags
// name; and with its output. (Abseil's --help lists the flags of every library,
// and exits with an error in some versions.)
//
//   // Before ParseCommandLine:
//   if (AsksForHelp(argc, argv)) {
//     std::cout << FlagHelp("bazel run //:course", {"devices", "size"});
//     return 0;
//   }
//   absl::Status status = CheckFlagNames(argc, argv, {"devices", "size"});
//   std::optional<AtomicFile> json, svg;
//   status = OpenFlagFiles({{"json", "run.json", &json}, {"svg", "", &svg}});
//   if (json.has_value()) json->Write("{}");
//
// Thread-safe, but for the language, which is set before anything is said.

#ifndef D2L_COMMON_BASE_CONSOLE_COMMAND_LINE_H_
#define D2L_COMMON_BASE_CONSOLE_COMMAND_LINE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/files/atomic_file.h"

namespace d2l {

// Sets the language of what is said from now on: "en" or "zh"; "" is what
// LC_ALL, LC_MESSAGES or LANG say, the first that is set. Before the first call
// it is English.
absl::Status SetLanguage(const std::string& language);

// The same for a command line, before its flags are parsed: --lang=zh.
void SetLanguageOf(int argc, char** argv);

bool AsksForHelp(int argc, char** argv);

// InvalidArgument if an argument looks like a flag and is none;
// ParseCommandLine would end the program. The message has the nearest of
// `flags`.
absl::Status CheckFlagNames(int argc, char** argv,
                            const std::vector<const char*>& flags);

// Each flag with its default and its text. command: how the program is run.
std::string FlagHelp(const std::string& command,
                     const std::vector<const char*>& flags);

struct FlagFile {
  const char* flag;
  std::string path;  // as typed (UserPath); empty: no file
  std::optional<AtomicFile>* file;
};

// Opens them, before the work and not after it. An error names the flag, and
// says so if two flags name one file.
absl::Status OpenFlagFiles(const std::vector<FlagFile>& files);

// At exit, by return from main or by exit(), flushes stdout; if any output
// could not be written, prints so on stderr and exits with code 1. Call it
// first in main, before anything opens a file: it opens closed standard streams
// so that files do not get their descriptors. A file that may not grow any
// larger (ulimit -f) is an error of writing from then on, and not the end of
// the program.
void CheckStdoutAtExit();

}  // namespace d2l

#endif  // D2L_COMMON_BASE_CONSOLE_COMMAND_LINE_H_
