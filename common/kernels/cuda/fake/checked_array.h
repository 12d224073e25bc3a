// CheckedArray: global memory for kernels that only CheckedRun runs.
//
//   CheckedArray<float> x(n);
//   CheckedRun(kernel, {1, 32, [=] { Double(x.data(), n); }},
//   FindCheckedArray);
//
// The elements are 1, 2, 3, … and begin at a multiple of 256 bytes. Arrays are
// made and destroyed in the order of a stack, on one thread.

#ifndef D2L_COMMON_KERNELS_CUDA_FAKE_CHECKED_ARRAY_H_
#define D2L_COMMON_KERNELS_CUDA_FAKE_CHECKED_ARRAY_H_

#include <cstddef>
#include <numeric>
#include <vector>

#include "common/kernels/cuda/fake/check.h"

namespace d2l::kernels::cuda {

namespace internal {
struct GuardedMemory {
  Memory memory;
  // `memory` and the bytes around it: a kernel's accesses there are found, and
  // do no harm.
  Memory guarded;
};
inline thread_local std::vector<GuardedMemory> checked_arrays;
}  // namespace internal

// A FindMemory.
inline Memory FindCheckedArray(const void* address) {
  for (const auto& [memory, guarded] : internal::checked_arrays) {
    if (guarded.Contains(address, 1)) return memory;
  }
  return {};
}

template <typename T>
class CheckedArray {
 public:
  explicit CheckedArray(std::size_t count)
      : lines_(2 * kGuardLines + count * sizeof(T) / kLineBytes + 1),
        data_(reinterpret_cast<T*>(&lines_[kGuardLines])),
        size_(count) {
    internal::checked_arrays.push_back(
        {{data_, count * sizeof(T)},
         {lines_.data(), lines_.size() * kLineBytes}});
    std::iota(begin(), end(), T{1});
  }
  ~CheckedArray() { internal::checked_arrays.pop_back(); }
  CheckedArray(const CheckedArray&) = delete;
  CheckedArray& operator=(const CheckedArray&) = delete;

  T* data() { return data_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }

 private:
  static constexpr std::size_t kLineBytes = 256, kGuardLines = 256;
  struct alignas(kLineBytes) Line {
    char bytes[kLineBytes];
  };

  std::vector<Line> lines_;
  T* data_;
  std::size_t size_;
};

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_FAKE_CHECKED_ARRAY_H_
