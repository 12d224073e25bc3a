// CUDA's words for the threads of a warp, which wait for each other and hand
// each other values:
//
//   for (int delta = 16; delta > 0; delta /= 2) {
//     sum += __shfl_down_sync(0xffffffff, sum, delta);
//   }
//
// A mask names the lanes that take part. All of them that have not ended must
// come to the same word with the same mask, and a lane that is not in its mask
// must not; otherwise the check finds it (check.h), and a GPU's result is
// undefined. What the lanes did to memory before is done for all of them.
// Included by words.h.

#ifndef D2L_COMMON_KERNELS_CUDA_FAKE_WARP_H_
#define D2L_COMMON_KERNELS_CUDA_FAKE_WARP_H_

#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

// The caller of a word is known by a return address: see check.h.
#define D2L_IN_CALLER inline __attribute__((always_inline))

namespace d2l::kernels::cuda::internal {

enum class WarpWord {
  kSync,
  kShuffle,
  kShuffleUp,
  kShuffleDown,
  kShuffleXor,
  kBallot,
  kAny,
  kAll,
  kMatch,
  kReduce
};

// What lanes have handed over.
struct Handed {
  unsigned lanes = 0;  // the lanes that have
  std::array<std::uint64_t, 32> values{};
};

// Waits for the lanes of `mask`; returns what they have handed over, valid up
// to the thread's next word. `from` is the lane whose value is used; -1: all.
const Handed& Exchange(WarpWord word, unsigned mask, std::uint64_t value,
                       int from = -1);
unsigned ActiveMask();
int LaneOfThread();

template <typename T>
std::uint64_t AsWord(T value) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8,
                "lanes hand over at most 8 bytes");
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}
template <typename T>
T FromWord(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

// The value of a lane that takes no part is undefined on a GPU. Here it is
// -1, or NaN, so that a kernel that uses it is wrong.
template <typename T>
D2L_IN_CALLER T Shuffle(WarpWord word, unsigned mask, T value, int from) {
  const Handed& handed = Exchange(word, mask, AsWord(value), from);
  return FromWord<T>((handed.lanes >> from & 1) != 0
                         ? handed.values[static_cast<std::size_t>(from)]
                         : ~std::uint64_t{0});
}

template <typename T, typename Join>
D2L_IN_CALLER T Reduce(unsigned mask, T value, Join join) {
  const Handed& handed = Exchange(WarpWord::kReduce, mask, AsWord(value));
  T sum = value;
  const int this_lane = LaneOfThread();
  for (int lane = 0; lane < 32; ++lane) {
    if (lane == this_lane || (handed.lanes >> lane & 1) == 0) continue;
    sum = join(sum, FromWord<T>(handed.values[static_cast<std::size_t>(lane)]));
  }
  return sum;
}

// The lanes whose value is `bits`.
D2L_IN_CALLER unsigned LanesWith(const Handed& handed, std::uint64_t bits) {
  unsigned lanes = 0;
  for (int lane = 0; lane < 32; ++lane) {
    const bool alike = handed.values[static_cast<std::size_t>(lane)] == bits;
    if ((handed.lanes >> lane & 1) != 0 && alike) lanes |= 1u << lane;
  }
  return lanes;
}

}  // namespace d2l::kernels::cuda::internal

D2L_IN_CALLER void __syncwarp(unsigned mask = 0xffffffffu) {
  using namespace d2l::kernels::cuda::internal;  // NOLINT
  Exchange(WarpWord::kSync, mask, 0);
}

// `width` is 32, 16, 8, 4 or 2: each group of so many lanes is a warp of its
// own, except that __shfl_xor_sync reads from groups before the caller's.
template <typename T>
D2L_IN_CALLER T __shfl_sync(unsigned mask, T value, int lane, int width = 32) {
  using namespace d2l::kernels::cuda::internal;  // NOLINT
  const int first = LaneOfThread() & -width;
  return Shuffle(WarpWord::kShuffle, mask, value, first + (lane & (width - 1)));
}
template <typename T>
D2L_IN_CALLER T __shfl_up_sync(unsigned mask, T value, unsigned delta,
                               int width = 32) {
  using namespace d2l::kernels::cuda::internal;  // NOLINT
  const int lane = LaneOfThread(), from = lane - static_cast<int>(delta);
  return Shuffle(WarpWord::kShuffleUp, mask, value,
                 from >= (lane & -width) ? from : lane);
}
template <typename T>
D2L_IN_CALLER T __shfl_down_sync(unsigned mask, T value, unsigned delta,
                                 int width = 32) {
  using namespace d2l::kernels::cuda::internal;  // NOLINT
  const int lane = LaneOfThread(), from = lane + static_cast<int>(delta);
  return Shuffle(WarpWord::kShuffleDown, mask, value,
                 from < (lane & -width) + width ? from : lane);
}
template <typename T>
D2L_IN_CALLER T __shfl_xor_sync(unsigned mask, T value, int lanes,
                                int width = 32) {
  using namespace d2l::kernels::cuda::internal;  // NOLINT
  const int lane = LaneOfThread(), from = lane ^ lanes;
  return Shuffle(WarpWord::kShuffleXor, mask, value,
                 from < (lane & -width) + width ? from : lane);
}

D2L_IN_CALLER unsigned __ballot_sync(unsigned mask, int predicate) {
  using namespace d2l::kernels::cuda::internal;  // NOLINT
  return LanesWith(Exchange(WarpWord::kBallot, mask, predicate != 0), 1);
}
D2L_IN_CALLER int __any_sync(unsigned mask, int predicate) {
  using namespace d2l::kernels::cuda::internal;  // NOLINT
  return LanesWith(Exchange(WarpWord::kAny, mask, predicate != 0), 1) != 0;
}
D2L_IN_CALLER int __all_sync(unsigned mask, int predicate) {
  using namespace d2l::kernels::cuda::internal;  // NOLINT
  return LanesWith(Exchange(WarpWord::kAll, mask, predicate != 0), 0) == 0;
}
// The lanes that have come to this line together. As on a GPU, this need not be
// all that will come.
D2L_IN_CALLER unsigned __activemask() {
  return d2l::kernels::cuda::internal::ActiveMask();
}

// The lanes that have the caller's value.
template <typename T>
D2L_IN_CALLER unsigned __match_any_sync(unsigned mask, T value) {
  using namespace d2l::kernels::cuda::internal;  // NOLINT
  return LanesWith(Exchange(WarpWord::kMatch, mask, AsWord(value)),
                   AsWord(value));
}
// All lanes if they have the same value, otherwise none.
template <typename T>
D2L_IN_CALLER unsigned __match_all_sync(unsigned mask, T value, int* alike) {
  using namespace d2l::kernels::cuda::internal;  // NOLINT
  const Handed& handed = Exchange(WarpWord::kMatch, mask, AsWord(value));
  *alike = LanesWith(handed, AsWord(value)) == handed.lanes;
  return *alike ? handed.lanes : 0;
}

// Of int and unsigned; a GPU has them from compute capability 8.0 on.
#define D2L_REDUCTION(name, T, joined)                                 \
  D2L_IN_CALLER T __reduce_##name##_sync(unsigned mask, T value) {     \
    return d2l::kernels::cuda::internal::Reduce(                       \
        mask, value, [](T a, T b) { return static_cast<T>(joined); }); \
  }
D2L_REDUCTION(add, unsigned, a + b)
D2L_REDUCTION(add, int, static_cast<unsigned>(a) + static_cast<unsigned>(b))
D2L_REDUCTION(min, unsigned, a < b ? a : b)
D2L_REDUCTION(min, int, a < b ? a : b)
D2L_REDUCTION(max, unsigned, a < b ? b : a)
D2L_REDUCTION(max, int, a < b ? b : a)
D2L_REDUCTION(and, unsigned, a& b)
D2L_REDUCTION(or, unsigned, a | b)
D2L_REDUCTION(xor, unsigned, a ^ b)
#undef D2L_REDUCTION

#endif  // D2L_COMMON_KERNELS_CUDA_FAKE_WARP_H_
