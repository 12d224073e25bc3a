#include "common/base/flag_help.h"

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/text.h"

namespace d2l {

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

std::string FlagHelp(const std::string& command,
                     const std::vector<const char*>& flags) {
  std::string text = absl::StrCat("Usage: ", command, " -- [flags]\n");
  for (const char* name : flags) {
    absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
    const std::string now = flag->CurrentValue();
    absl::StrAppend(&text, "\n--", name,
                    " (default: ", now.empty() ? "none" : now, ")\n");
    for (const absl::string_view line : absl::StrSplit(flag->Help(), '\n')) {
      absl::StrAppend(&text, Wrap(std::string(line), "    "));
    }
  }
  return text;
}

}  // namespace d2l
