// OpenFlagFiles: opens the files that flags name, before the work and not after
// it.
//
//   std::optional<AtomicFile> json, svg;
//   absl::Status status =
//       OpenFlagFiles({{"json", "run.json", &json}, {"svg", "", &svg}});
//   if (json.has_value()) json->Write("{}");
//
// Thread-safe.

#ifndef D2L_COMMON_BASE_FLAG_FILES_H_
#define D2L_COMMON_BASE_FLAG_FILES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/atomic_file.h"

namespace d2l {

struct FlagFile {
  const char* flag;
  std::string path;  // as typed (UserPath); empty: no file
  std::optional<AtomicFile>* file;
};

// An error names the flag, and says so if two flags name one file.
absl::Status OpenFlagFiles(const std::vector<FlagFile>& files);

}  // namespace d2l

#endif  // D2L_COMMON_BASE_FLAG_FILES_H_
