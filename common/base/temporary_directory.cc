#include "common/base/temporary_directory.h"

#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <system_error>

namespace d2l {

namespace fs = std::filesystem;

TemporaryDirectory::TemporaryDirectory() {
  path_ = (fs::temp_directory_path() / "d2l_XXXXXX").string();
  if (mkdtemp(path_.data()) == nullptr) {
    throw std::runtime_error("Cannot make a directory in " +
                             fs::temp_directory_path().string() +
                             ". Set TMPDIR to a folder that can be written.");
  }
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace d2l
