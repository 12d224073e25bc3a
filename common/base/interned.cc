#include "common/base/interned.h"

#include <string>
#include <string_view>
#include <unordered_set>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"

namespace d2l {
namespace {

struct Table {
  Mutex mutex;
  // Its nodes stay where they are.
  std::unordered_set<std::string> texts ABSL_GUARDED_BY(mutex);
};

}  // namespace

const char* Intern(std::string_view text) {
  static Table& table = *new Table;
  MutexLock lock(table.mutex);
  return table.texts.emplace(text).first->c_str();
}

}  // namespace d2l
