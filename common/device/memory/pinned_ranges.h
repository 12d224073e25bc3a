// The pinned host memory of all back ends.
//
//   if (IsPinned(host, bytes)) return;  // the copy is asynchronous
//
// Thread-safe.

#ifndef D2L_COMMON_DEVICE_MEMORY_PINNED_RANGES_H_
#define D2L_COMMON_DEVICE_MEMORY_PINNED_RANGES_H_

#include <cstddef>

namespace d2l {

// True if [data, data + bytes) lies in one range.
bool IsPinned(const void* data, std::size_t bytes);

namespace internal {

// Adds a range, which begins where no other does; std::bad_alloc.
void AddPinnedRange(const void* data, std::size_t bytes);
void RemovePinnedRange(const void* data) noexcept;

}  // namespace internal
}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_MEMORY_PINNED_RANGES_H_
