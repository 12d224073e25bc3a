#include "common/device/parked_blocks.h"

#include <utility>

namespace d2l {

void ParkedBlocks::Push(Storage* block) {
  block->next_ = nullptr;
  (first_ == nullptr ? first_ : last_->next_) = block;
  last_ = block;
  if (!block->recorded_) ++unrecorded_;
}

Storage* ParkedBlocks::TakeUnrecorded() {
  Storage* taken = nullptr;
  Storage* block = std::exchange(first_, nullptr);
  unrecorded_ = 0;
  while (block != nullptr) {
    Storage* const next = block->next_;
    if (block->recorded_) {
      Push(block);
    } else {
      block->next_ = std::exchange(taken, block);
    }
    block = next;
  }
  return taken;
}

Event ParkedBlocks::NextEvent() const {
  if (first_ == nullptr || !first_->recorded_) return Event();
  return first_->users_.back().passed;
}

Storage* ParkedBlocks::TakePassed(const Event& passed) {
  Storage* const oldest = first_;
  // Another thread may have been here.
  if (passed.state() != NextEvent().state()) return nullptr;
  oldest->users_.pop_back();
  if (!oldest->users_.empty()) return nullptr;
  first_ = oldest->next_;
  return oldest;
}

}  // namespace d2l
