#include "common/base/source_location.h"

#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"

namespace d2l {

std::string SourceLocation::ToString() const {
  if (!known()) return "an unknown place";
  return absl::StrCat(file_, ":", line_);
}

bool operator==(const SourceLocation& a, const SourceLocation& b) {
  return a.line_ == b.line_ && std::strcmp(a.file_, b.file_) == 0;
}

}  // namespace d2l
