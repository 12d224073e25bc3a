#include "common/device/keep_until_passed.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "common/device/event.h"
#include "common/device/listener.h"

namespace d2l {
namespace {

struct Kept {
  std::shared_ptr<void> memory;
  std::vector<Event> passed;
  bool for_ever = false;  // a stream that cannot say when
};

struct All {
  std::mutex mutex;
  std::vector<Kept> kept;
};

// Never destroyed: a device may write until the process ends.
All& GetAll() {
  static All& all = *new All;
  return all;
}

bool Passed(const Kept& kept) {
  return !kept.for_ever &&
         std::all_of(kept.passed.begin(), kept.passed.end(),
                     [](const Event& event) { return event.Query(); });
}

}  // namespace

void KeepUntilPassed(std::shared_ptr<void> memory,
                     absl::Span<Stream* const> streams) {
  Kept kept;
  kept.memory = std::move(memory);
  try {
    const internal::PartOfRequest part;
    const std::set<Stream*> distinct(streams.begin(), streams.end());
    for (Stream* stream : distinct) kept.passed.push_back(stream->Record());
  } catch (const std::exception&) {
    kept.for_ever = true;
  }
  std::vector<Kept> passed;  // freed without the lock
  All& all = GetAll();
  std::lock_guard<std::mutex> lock(all.mutex);
  all.kept.push_back(std::move(kept));
  const auto first =
      std::partition(all.kept.begin(), all.kept.end(),
                     [](const Kept& one) { return !Passed(one); });
  passed.assign(std::make_move_iterator(first),
                std::make_move_iterator(all.kept.end()));
  all.kept.erase(first, all.kept.end());
}

}  // namespace d2l
