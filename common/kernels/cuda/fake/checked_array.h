// CheckedArray: global memory for kernels that are run by CheckedRun alone.
//
//   CheckedArray<float> x(n);
//   CheckedRun(kernel, {1, 32, [=] { Double(x.data(), n); }},
//   FindCheckedArray);
//
// Its elements are 1, 2, 3, … and begin at a multiple of 256 bytes. Arrays are
// made and destroyed in the order of a stack, on one thread.

#ifndef D2L_COMMON_KERNELS_CUDA_FAKE_CHECKED_ARRAY_H_
#define D2L_COMMON_KERNELS_CUDA_FAKE_CHECKED_ARRAY_H_

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "common/kernels/cuda/fake/check.h"

namespace d2l::kernels::cuda {

namespace internal {
inline std::vector<Memory>& CheckedArrays() {
  thread_local std::vector<Memory> all;
  return all;
}

// Before and behind each array, so that what a kernel does beyond its arrays is
// seen, and does no harm.
inline constexpr std::size_t kGuardBytes = 1 << 16;
}  // namespace internal

// A FindMemory.
inline Memory FindCheckedArray(const void* address) {
  using internal::kGuardBytes;
  for (const Memory& m : internal::CheckedArrays()) {
    const char* const begin = static_cast<const char*>(m.begin);
    if (address >= begin - kGuardBytes &&
        address < begin + m.bytes + kGuardBytes) {
      return m;
    }
  }
  return {nullptr, 0};
}

template <typename T>
class CheckedArray {
 public:
  explicit CheckedArray(std::size_t count)
      : store_(count + (2 * internal::kGuardBytes + kAlignment) / sizeof(T)),
        size_(count) {
    const auto address = reinterpret_cast<std::uintptr_t>(store_.data());
    data_ =
        store_.data() +
        (internal::kGuardBytes + kAlignment - address % kAlignment) / sizeof(T);
    internal::CheckedArrays().push_back({data_, count * sizeof(T)});
    std::iota(begin(), end(), T{1});
  }
  ~CheckedArray() { internal::CheckedArrays().pop_back(); }
  CheckedArray(const CheckedArray&) = delete;
  CheckedArray& operator=(const CheckedArray&) = delete;

  T* data() { return data_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }

 private:
  static constexpr std::size_t kAlignment = 256;

  std::vector<T> store_;
  std::size_t size_;
  T* data_;
};

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_FAKE_CHECKED_ARRAY_H_
