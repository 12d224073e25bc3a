#include "common/device/event.h"

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/device/listener.h"

namespace d2l {

std::uint64_t EventState::id() {
  static std::atomic<std::uint64_t> last{0};
  std::uint64_t id = id_.load(std::memory_order_relaxed);
  if (id != 0) return id;
  const std::uint64_t next = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return id_.compare_exchange_strong(id, next) ? next : id;
}

Event::Event(std::shared_ptr<EventState> state) : state_(std::move(state)) {}

bool Event::Query() const {
  if (state_ == nullptr) return true;
  if (!state_->Query()) return false;
  internal::TellOrder(OrderRecord::Kind::kHostWait, nullptr, state_.get());
  return true;
}

void Event::Synchronize(SourceLocation noticed_at) const {
  if (state_ == nullptr) return;
  const internal::WaitScope scope("event_synchronize", noticed_at);
  state_->Block();
  internal::TellOrder(OrderRecord::Kind::kHostWait, nullptr, state_.get());
  FailurePtr failure = state_->failure();
  // At the end of the program a thread that only waits gets no exception.
  if (failure == nullptr || failure->end_of_program) return;
  state_->MarkReported();
  throw AsyncError(std::move(failure), "Event::Synchronize", noticed_at, -1);
}

FailurePtr Event::failure() const {
  if (state_ == nullptr || !state_->Query()) return nullptr;
  return state_->failure();
}

double ElapsedTime(const Event& begin, const Event& end) {
  if (begin.state() == nullptr || end.state() == nullptr) {
    throw std::invalid_argument(
        "[elapsed_time] an event that no stream recorded has no time");
  }
  if (begin.state()->type() != end.state()->type()) {
    throw std::invalid_argument(
        absl::StrCat("[elapsed_time] the events are of two back ends, ",
                     DeviceTypeName(begin.state()->type()), " and ",
                     DeviceTypeName(end.state()->type()),
                     ", whose clocks cannot be compared"));
  }
  if (!begin.Query() || !end.Query()) {
    throw std::invalid_argument(
        "[elapsed_time] an event has not completed yet; call Synchronize() "
        "on it first");
  }
  return 1e-6 * end.state()->NanosSince(*begin.state());
}

}  // namespace d2l
