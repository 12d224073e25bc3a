// How DeviceMemory gives free blocks back to the device.

#include <malloc.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <stdexcept>

#include "common/device/event.h"
#include "common/device/listener.h"
#include "common/device/memory.h"

namespace d2l {
namespace {

constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();

// Waits for all that is queued on a stream; null is none. False if it cannot.
bool WaitFor(Stream* stream) {
  if (stream == nullptr || stream->Query()) return true;
  try {
    stream->Record().state()->Block();
    return true;
  } catch (...) {  // no memory for an event, or no GPU any more
    return false;
  }
}

}  // namespace

Storage* DeviceMemory::TakePieces(std::size_t stream, std::int64_t bytes) {
  Storage* const pieces = free_.TakePieces(stream, bytes);
  for (Storage* piece = pieces; piece != nullptr; piece = piece->next_) {
    leaving_ += static_cast<std::int64_t>(piece->size_);
  }
  return pieces;
}

void DeviceMemory::KeepPieces(Storage* pieces) {
  ForEach(pieces, [this](Storage* piece) {
    std::lock_guard<SpinLock> lock(lock_);
    leaving_ -= static_cast<std::int64_t>(piece->size_);
    PutFree(piece);
  });
}

void DeviceMemory::GiveBack(Storage* pieces) {
  // In a host callback of CUDA nothing can be given back to it.
  if (internal::enqueue_mode && backend_.FreeWaits()) {
    KeepPieces(pieces);
    return;
  }
  ForEach(pieces, [this](Storage* piece) {
    if (kind_ == Kind::kPinned) {
      internal::RemovePinnedRange(piece->data_);
      backend_.FreePinned(piece->data_, piece->size_);
    } else {
      backend_.Free(physical_index_, piece->data_, piece->size_);
    }
    {
      std::lock_guard<SpinLock> lock(lock_);
      leaving_ -= static_cast<std::int64_t>(piece->size_);
      stats_.reserved -= static_cast<std::int64_t>(piece->size_);
    }
    delete piece;
  });
}

bool DeviceMemory::MayGiveBack() {
  if (internal::enqueue_mode) return false;  // it may ask no stream
  if (!backend_.FreeWaits()) return true;
  if (kind_ == Kind::kPinned) return false;  // whose streams are unknown
  for (std::size_t i = 0;; ++i) {
    Stream* stream;
    {
      std::lock_guard<SpinLock> lock(lock_);
      if (i == free_.streams()) return true;
      stream = free_.stream(i);
    }
    if (stream != nullptr && !stream->Query()) return false;
  }
}

Storage* DeviceMemory::MakeRoom(Request& request) {
  if (!MayGiveBack()) return nullptr;
  for (std::size_t i = 0;; ++i) {
    Storage* pieces;
    Stream* stream;
    {
      std::lock_guard<SpinLock> lock(lock_);
      const std::int64_t reserved =
          stats_.reserved - leaving_ + static_cast<std::int64_t>(request.size);
      const std::int64_t used = stats_.in_use + stats_.in_flight +
                                static_cast<std::int64_t>(request.size);
      const std::int64_t beyond =
          reserved - used - std::max(used / 2, free_limit_);
      if (beyond <= 0 || i == free_.streams()) return nullptr;
      pieces = TakePieces(i, beyond);
      stream = free_.stream(i);
    }
    if (pieces == nullptr) continue;
    // Work queued on its stream may still use a free block.
    if (stream == nullptr || stream->Query()) {
      if (Storage* block = TakeOrGiveBack(request, pieces)) return block;
    } else {
      GiveBackLater(*stream, pieces);
    }
  }
}

Storage* DeviceMemory::TakeOrGiveBack(Request& request, Storage* pieces) {
  Storage* block = nullptr;
  ForEach(pieces, [&](Storage* piece) {
    piece->next_ = nullptr;
    if (block != nullptr || !FreeBlocks::Holds(*piece, request.size)) {
      GiveBack(piece);
      return;
    }
    piece->home_ = request.home;  // from a stream that does not use it
    KeepPieces(piece);
    std::lock_guard<SpinLock> lock(lock_);
    block = TakeFree(request);
  });
  return block;
}

void DeviceMemory::GiveBackLater(Stream& stream, Storage* pieces) {
  Event passed;
  try {
    passed = stream.Record();
  } catch (...) {  // no memory for an event
    KeepPieces(pieces);
    return;
  }
  ForEach(pieces, [&](Storage* piece) {
    piece->users_.push_back({&stream, passed});  // there is room for one
    piece->recorded_ = piece->give_back_ = true;
    std::lock_guard<SpinLock> lock(lock_);
    parked_.Push(piece);
  });
}

void DeviceMemory::GiveBackAll() {
  for (std::size_t i = 0;; ++i) {
    Storage* pieces;
    Stream* stream;
    {
      std::lock_guard<SpinLock> lock(lock_);
      if (i == free_.streams()) break;
      pieces = TakePieces(i, kAll);
      stream = free_.stream(i);
    }
    if (pieces == nullptr) continue;
    // Work queued on its stream may still use a free block.
    if (WaitFor(stream)) {
      GiveBack(pieces);
    } else {
      KeepPieces(pieces);
    }
  }
  Storage* spares;
  {
    std::lock_guard<SpinLock> lock(lock_);
    spares = free_.TakeSpares();
  }
  FreeBlocks::Delete(spares);
  // The C library keeps what small blocks and a million Storages took.
  malloc_trim(0);
}

void DeviceMemory::EmptyCache() {
  if (internal::enqueue_mode) {
    throw std::logic_error(
        "[empty_cache] called from work that runs on a stream, which cannot "
        "wait for streams");
  }
  const internal::PartOfRequest part;
  WaitForParked();
  GiveBackAll();
}

}  // namespace d2l
