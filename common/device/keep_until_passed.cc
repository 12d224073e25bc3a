#include "common/device/keep_until_passed.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <new>
#include <set>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"
#include "common/device/event.h"
#include "common/device/listener.h"

namespace d2l {
namespace {

struct Kept {
  std::shared_ptr<void> memory;
  std::vector<Event> passed;
};

struct All {
  Mutex mutex;
  std::vector<Kept> kept ABSL_GUARDED_BY(mutex);
};

// Never destroyed: a device may write until the process ends.
All& GetAll() {
  static All& all = *new All;
  return all;
}

bool Passed(const Kept& kept) {
  return std::all_of(kept.passed.begin(), kept.passed.end(),
                     [](const Event& event) { return event.Query(); });
}

void Keep(std::shared_ptr<void>& memory, absl::Span<Stream* const> streams) {
  const internal::PartOfRequest part;
  Kept kept;
  const std::set<Stream*> distinct(streams.begin(), streams.end());
  for (Stream* stream : distinct) kept.passed.push_back(stream->Record());
  std::vector<Kept> passed;  // freed without the lock
  All& all = GetAll();
  MutexLock lock(all.mutex);
  all.kept.push_back(std::move(kept));
  all.kept.back().memory = std::move(memory);
  const auto first =
      std::partition(all.kept.begin(), all.kept.end(),
                     [](const Kept& one) { return !Passed(one); });
  passed.assign(std::make_move_iterator(first),
                std::make_move_iterator(all.kept.end()));
  all.kept.erase(first, all.kept.end());
}

}  // namespace

void KeepUntilPassed(std::shared_ptr<void> memory,
                     absl::Span<Stream* const> streams) noexcept {
  try {
    Keep(memory, streams);
  } catch (...) {
    // A stream that cannot say when, or no memory for an event: for ever.
    using Pointer = std::shared_ptr<void>;
    alignas(Pointer) unsigned char never_destroyed[sizeof(Pointer)];
    new (never_destroyed) Pointer(std::move(memory));
  }
}

}  // namespace d2l
