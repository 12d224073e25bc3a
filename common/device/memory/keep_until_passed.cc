#include "common/device/memory/keep_until_passed.h"

#include <algorithm>
#include <list>
#include <memory>
#include <new>
#include <set>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/cleanup/cleanup.h"
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
  std::list<Kept> kept ABSL_GUARDED_BY(mutex);
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
  std::list<Kept> waiting;
  waiting.push_back(std::move(kept));
  waiting.back().memory = std::move(memory);
  All& all = GetAll();
  {
    MutexLock lock(all.mutex);
    waiting.splice(waiting.end(), all.kept);
  }
  // Without the lock: to ask an event and to free memory may let go of
  // something that comes here again.
  const absl::Cleanup keep = [&] {
    MutexLock lock(all.mutex);
    all.kept.splice(all.kept.end(), waiting);
  };
  waiting.remove_if(Passed);
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
