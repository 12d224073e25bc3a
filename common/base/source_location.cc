#include "common/base/source_location.h"

#include <cstring>
#include <string>
#include <string_view>
#include <unordered_set>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"

namespace d2l {
namespace {

struct Table {
  Mutex mutex;
  // The nodes of this set stay where they are.
  std::unordered_set<std::string> texts ABSL_GUARDED_BY(mutex);
};

}  // namespace

std::string SourceLocation::ToString() const {
  if (!known()) return "an unknown place";
  return absl::StrCat(file_, ":", line_);
}

bool operator==(const SourceLocation& a, const SourceLocation& b) {
  return a.line_ == b.line_ && std::strcmp(a.file_, b.file_) == 0;
}

const char* Intern(std::string_view text) {
  static Table& table = *new Table;
  MutexLock lock(table.mutex);
  return table.texts.emplace(text).first->c_str();
}

}  // namespace d2l
