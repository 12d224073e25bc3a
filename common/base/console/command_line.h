// The command line of a program: its language (--lang), the text of --help, the
// error for an unknown flag, and the files that flags name; and errors of its
// output. (Abseil's --help lists the flags of every library, and exits with an
// error in some versions.)
//
//   // Before ParseCommandLine:
//   if (AsksForHelp(argc, argv)) {
//     std::cout << FlagHelp("bazel run //:course", {{"", {"devices"}}});
//     return 0;
//   }
//   absl::Status status = CheckFlagNames(argc, argv, {"devices"});
//   std::optional<AtomicFile> json, svg;
//   status = OpenFlagFiles({{"json", "run.json", &json}, {"svg", "", &svg}});
//   if (json.has_value()) json->Write("{}");
//
// Thread-safe, except that the language is set before the first text.

#ifndef D2L_COMMON_BASE_CONSOLE_COMMAND_LINE_H_
#define D2L_COMMON_BASE_CONSOLE_COMMAND_LINE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/files/atomic_file.h"

namespace d2l {

// Sets the language of later texts: "en" or "zh"; "" takes it from LC_ALL,
// LC_MESSAGES or LANG, the first that is set. Before the first call it is
// English.
absl::Status SetLanguage(const std::string& language);

// Sets the language that a command line asks for, before its flags are parsed:
// --lang=zh.
void SetLanguageOf(int argc, char** argv);

bool AsksForHelp(int argc, char** argv);

// InvalidArgument if an argument looks like a flag but is unknown, for which
// ParseCommandLine would end the program, or if a flag is given two values, of
// which ParseCommandLine would drop the first. The message suggests the nearest
// of `flags`.
absl::Status CheckFlagNames(int argc, char** argv,
                            const std::vector<const char*>& flags);

// Flags below a title, an English text; "" for none.
struct FlagGroup {
  const char* title;
  std::vector<const char*> flags;
};
// The flags of all groups.
std::vector<const char*> FlagNames(const std::vector<FlagGroup>& groups);

// Each flag with its default and its text. command: how the program is run.
std::string FlagHelp(const std::string& command,
                     const std::vector<FlagGroup>& groups);

struct FlagFile {
  const char* flag;
  std::string path;  // as typed (UserPath); empty: no file
  std::optional<AtomicFile>* file;
};

// InvalidArgument if the flag names one of the files that are read, be it by
// another name or through a link.
absl::Status CheckNotRead(const FlagFile& file,
                          const std::vector<std::string>& read);

// Opens the files; call it before the work. An error names the flag; two flags
// that name one file are an error.
absl::Status OpenFlagFiles(const std::vector<FlagFile>& files);

// At exit (a return from main, or exit()), flushes stdout; if any output could
// not be written, says so on stderr and exits with code 1. Call it first in
// main, before anything opens a file: it opens closed standard streams so that
// files do not get their descriptors. From then on, a file at its size limit
// (ulimit -f) is a write error and does not end the program.
void CheckStdoutAtExit();

}  // namespace d2l

#endif  // D2L_COMMON_BASE_CONSOLE_COMMAND_LINE_H_
