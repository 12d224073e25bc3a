// What a block of random words becomes: the elements that one thread makes.
//
//   NormalNumbers<float> normals;
//   float z[NormalNumbers<float>::kElements];
//   normals(Philox(seed, offset + b), z);  // elements 4 b to 4 b + 3
//
// philox.h says which number each element is, cpu/random.h the same for whole
// numbers; the bits are the CPU's. Thread-safe.

#ifndef D2L_COMMON_KERNELS_CUDA_INDEX_RANDOM_BLOCKS_H_
#define D2L_COMMON_KERNELS_CUDA_INDEX_RANDOM_BLOCKS_H_

#include <cstdint>

#include "common/kernels/host_device.h"
#include "common/kernels/philox.h"

namespace d2l::kernels::cuda {

template <typename Element>
struct UniformNumbers {
  using T = Element;
  static constexpr int kElements = kElementsPerBlock<T>;

  D2L_HOST_DEVICE void operator()(const PhiloxBlock& block, T* out) const {
    Uniforms(block, out);
  }
};

template <typename Element>
struct NormalNumbers {
  using T = Element;
  static constexpr int kElements = kElementsPerBlock<T>;

  D2L_HOST_DEVICE void operator()(const PhiloxBlock& block, T* out) const {
    Normals(block, out);
  }
};

// The upper half of the 128 bits of a * b.
D2L_HOST_DEVICE inline std::uint64_t MultiplyHigh(std::uint64_t a,
                                                  std::uint64_t b) {
#ifdef __CUDA_ARCH__
  return __umul64hi(a, b);
#else
  const std::uint64_t a0 = a & 0xFFFFFFFF, a1 = a >> 32;
  const std::uint64_t b0 = b & 0xFFFFFFFF, b1 = b >> 32;
  const std::uint64_t middle = a1 * b0 + (a0 * b0 >> 32);
  const std::uint64_t low = a0 * b1 + (middle & 0xFFFFFFFF);
  return a1 * b1 + (middle >> 32) + (low >> 32);
#endif
}

// low + k, k in [0, range). kWide: for a range beyond 2^32, an element takes
// two words.
template <typename Element, bool kWide>
struct IntegerNumbers {
  using T = Element;
  static constexpr int kElements = kWide ? 2 : 4;
  std::int64_t low;
  std::uint64_t range;

  D2L_HOST_DEVICE void operator()(const PhiloxBlock& block, T* out) const {
    for (int i = 0; i < kElements; ++i) {
      std::uint64_t k;
      if constexpr (kWide) {
        k = MultiplyHigh(
            std::uint64_t{block.word[2 * i]} << 32 | block.word[2 * i + 1],
            range);
      } else {
        k = (block.word[i] * range) >> 32;
      }
      out[i] = static_cast<T>(
          static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + k));
    }
  }
};

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_INDEX_RANDOM_BLOCKS_H_
