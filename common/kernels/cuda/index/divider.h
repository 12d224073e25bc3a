// Division of 32-bit numbers by a divisor known beforehand, without a division
// instruction, which takes a GPU some twenty instructions.
//
//   const Divider by_seven(7);          // on the host
//   by_seven.Quotient(100);             // 14, on the host or on the device
//
// Splitter uses this for numbers of any size, if they are small enough.
//
// q = (n * m / 2^32 + n) / 2^s, where 2^s is the divisor rounded up to a power
// of two and m = 2^32 (2^s - d) / d + 1 (T. Granlund, P. L. Montgomery,
// "Division by invariant integers using multiplication", PLDI'94). Exact for
// n < 2^31 and 1 <= d <= 2^31; the sum then stays below 2^32.
//
// A trivially copyable value. Thread-safe, cannot fail.

#ifndef D2L_COMMON_KERNELS_CUDA_INDEX_DIVIDER_H_
#define D2L_COMMON_KERNELS_CUDA_INDEX_DIVIDER_H_

#include <cstdint>
#include <limits>

#include "common/kernels/host_device.h"

namespace d2l::kernels::cuda {

class Divider {
 public:
  Divider() = default;  // by 1
  explicit Divider(std::uint32_t divisor) : divisor_(divisor) {
    while (shift_ < 31 && (std::uint32_t{1} << shift_) < divisor) ++shift_;
    const std::uint64_t power = std::uint64_t{1} << shift_;
    multiplier_ =
        static_cast<std::uint32_t>(((power - divisor) << 32) / divisor + 1);
  }

  D2L_HOST_DEVICE std::uint32_t divisor() const { return divisor_; }

  D2L_HOST_DEVICE std::uint32_t Quotient(std::uint32_t n) const {
    const std::uint32_t high = static_cast<std::uint32_t>(
        (static_cast<std::uint64_t>(n) * multiplier_) >> 32);
    return (high + n) >> shift_;
  }

 private:
  std::uint32_t divisor_ = 1;
  std::uint32_t multiplier_ = 1;
  std::uint32_t shift_ = 0;
};

// Quotient and remainder by a size, for numbers below `end`: fast if they fit
// a Divider.
class Splitter {
 public:
  Splitter() = default;
  Splitter(std::int64_t size, std::int64_t end) : size_(size) {
    if (end <= std::numeric_limits<std::int32_t>::max() && size > 0 &&
        size <= end) {
      divider_ = Divider(static_cast<std::uint32_t>(size));
      fast_ = true;
    }
  }

  D2L_HOST_DEVICE std::int64_t Split(std::int64_t n,
                                     std::int64_t* remainder) const {
    const std::int64_t quotient =
        fast_ ? divider_.Quotient(static_cast<std::uint32_t>(n)) : n / size_;
    *remainder = n - quotient * size_;
    return quotient;
  }

 private:
  std::int64_t size_ = 1;
  Divider divider_;
  bool fast_ = false;
};

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_INDEX_DIVIDER_H_
