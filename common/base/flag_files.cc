#include "common/base/flag_files.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/atomic_file.h"
#include "common/base/language.h"

namespace d2l {

absl::Status OpenFlagFiles(const std::vector<FlagFile>& files) {
  for (const FlagFile& file : files) {
    if (file.path.empty()) continue;
    absl::StatusOr<AtomicFile> opened = AtomicFile::Open(UserPath(file.path));
    if (!opened.ok()) {
      return absl::Status(
          opened.status().code(),
          absl::StrCat(
              "--", file.flag, ": ",
              TranslatedMessage(std::string(opened.status().message()))));
    }
    for (const FlagFile& other : files) {
      if (!*other.file || !(*other.file)->SameFile(*opened)) continue;
      return absl::InvalidArgumentError(
          Say("--%s=%s and --%s=%s name the same file. Name two files.",
              other.flag, other.path, file.flag, file.path));
    }
    *file.file = *std::move(opened);
  }
  return absl::OkStatus();
}

}  // namespace d2l
