// What --help prints, and what is said of a flag that is none: of a program's
// own flags. (Abseil's --help lists the flags of every library, and exits with
// an error in some versions.)
//
//   if (AsksForHelp(argc, argv)) {  // before ParseCommandLine
//     std::cout << FlagHelp("bazel run //:course", {"devices", "size"});
//     return 0;
//   }
//   absl::Status status = CheckFlagNames(argc, argv, {"devices", "size"});
//
// Thread-safe.

#ifndef D2L_COMMON_BASE_FLAG_HELP_H_
#define D2L_COMMON_BASE_FLAG_HELP_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace d2l {

bool AsksForHelp(int argc, char** argv);

// InvalidArgument if an argument looks like a flag and is none;
// ParseCommandLine would end the program. The message has the nearest of
// `flags`.
absl::Status CheckFlagNames(int argc, char** argv,
                            const std::vector<const char*>& flags);

// Each flag with its default and its text. command: how the program is run.
std::string FlagHelp(const std::string& command,
                     const std::vector<const char*>& flags);

}  // namespace d2l

#endif  // D2L_COMMON_BASE_FLAG_HELP_H_
