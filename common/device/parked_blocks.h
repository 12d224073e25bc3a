// ParkedBlocks: returned blocks that queued work may still use.
//
//   parked.Push(block);  // its users_ are set; recorded_ if their events are
//   const Event next = parked.NextEvent();
//   if (next.Query()) Storage* const done = parked.TakePassed(next);
//
// An intrusive queue, linked through next_, as are the lists that it returns.
// Not thread-safe; nothing throws. It asks no event and destroys none, so that
// its owner's lock is held for neither.

#ifndef D2L_COMMON_DEVICE_PARKED_BLOCKS_H_
#define D2L_COMMON_DEVICE_PARKED_BLOCKS_H_

#include "common/device/event.h"
#include "common/device/storage.h"

namespace d2l {

class ParkedBlocks {
 public:
  bool empty() const { return first_ == nullptr; }
  bool any_unrecorded() const { return unrecorded_ > 0; }

  void Push(Storage* block);

  // Takes out the blocks that are not recorded.
  Storage* TakeUnrecorded();
  // An event that the oldest block waits for. It is empty if there is no block
  // or no event yet. With several streams a younger block's may have passed,
  // too; its turn comes.
  Event NextEvent() const;
  // `passed` has. Takes out the oldest block if it waited for that alone, or
  // else null.
  Storage* TakePassed(const Event& passed);

 private:
  Storage* first_ = nullptr;
  Storage* last_ = nullptr;  // if there is a first one
  int unrecorded_ = 0;
};

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_PARKED_BLOCKS_H_
