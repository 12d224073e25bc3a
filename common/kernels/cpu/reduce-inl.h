// The inner loops of reductions and softmax, compiled once for each kind of
// vector: included by files that include hwy/foreach_target.h.
//
//   double total = 0;
//   for (…) total += BlockSum(x + i, kBlock<float>);  // a contiguous row
//
// Floating-point sums are the same bits with any kind of vector, because the
// order of additions is written down here and not left to the vectors' width:
//   - along a row, a block of 8 KiB is added into 256 bytes of lanes, lane l
//     taking every element whose place in the block is l modulo the number of
//     lanes; then the lanes are added as a tree. The elements beyond the last
//     full set of lanes go into 8 lanes, and then one by one. The blocks'
//     sums are added in double precision;
//   - down the columns, strips of 64 rows are added 8 rows at a time, as a
//     tree; the strips' sums are added in double precision.
// Thus a float takes part in at most about 40 roundings to float.
//
// The loops are plain: over arrays that are as long as the lanes, the compiler
// makes vectors of them and keeps the arrays in registers.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "common/kernels/cpu/vector_targets.h"
#include "common/kernels/functors.h"
#include "common/kernels/reductions.h"
#include "hwy/highway.h"

#if defined(D2L_COMMON_KERNELS_CPU_REDUCE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef D2L_COMMON_KERNELS_CPU_REDUCE_INL_H_
#undef D2L_COMMON_KERNELS_CPU_REDUCE_INL_H_
#else
#define D2L_COMMON_KERNELS_CPU_REDUCE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace d2l::kernels::cpu {
namespace HWY_NAMESPACE {

// The block of a contiguous row, in elements.
template <typename T>
constexpr std::int64_t kBlock = 8192 / sizeof(T);
template <typename T>
constexpr int kLanes = 256 / sizeof(T);

// The strip and the tile of columns.
constexpr int kStrip = 64;           // rows
constexpr std::int64_t kTile = 512;  // columns, at most

// Adds the lanes as a tree; they are overwritten.
template <int kCount, typename T>
HWY_INLINE T SumLanes(T* lanes) {
  if constexpr (kCount == 1) {
    return lanes[0];
  } else {
    for (int j = 0; j < kCount / 2; ++j) lanes[j] += lanes[j + kCount / 2];
    return SumLanes<kCount / 2>(lanes);
  }
}

// x[0] + … + x[n - 1], n <= kBlock.
template <typename T>
HWY_INLINE typename Sum<T>::State BlockSum(const T* x, std::int64_t n) {
  if constexpr (std::is_integral_v<T>) {
    typename Sum<T>::Part sum = 0;
    for (std::int64_t i = 0; i < n; ++i)
      sum += static_cast<typename Sum<T>::Part>(x[i]);
    return sum;
  } else {
    constexpr int kWide = kLanes<T>;
    constexpr int kNarrow = 8;
    T sum = 0;
    std::int64_t i = 0;
    if (n >= kWide) {
      T lanes[kWide] = {};
      for (; i + kWide <= n; i += kWide) {
        for (int j = 0; j < kWide; ++j) lanes[j] += x[i + j];
      }
      sum = SumLanes<kWide>(lanes);
    }
    if (n - i >= kNarrow) {
      T lanes[kNarrow] = {};
      for (; i + kNarrow <= n; i += kNarrow) {
        for (int j = 0; j < kNarrow; ++j) lanes[j] += x[i + j];
      }
      sum += SumLanes<kNarrow>(lanes);
    }
    for (; i < n; ++i) sum += x[i];
    return sum;
  }
}

// total[j] += the sum over r of x[offsets[r] + j], rows <= kStrip,
// width <= kTile.
template <typename T>
HWY_INLINE void StripSum(const T* x, const std::int64_t* offsets, int rows,
                         std::int64_t width,
                         typename Sum<T>::State* HWY_RESTRICT total) {
  using Lane = typename Sum<T>::Part;
  Lane sum[kTile];
  for (std::int64_t j = 0; j < width; ++j) sum[j] = 0;
  int r = 0;
  for (; r + 8 <= rows; r += 8) {
    const T* const x0 = x + offsets[r];
    const T* const x1 = x + offsets[r + 1];
    const T* const x2 = x + offsets[r + 2];
    const T* const x3 = x + offsets[r + 3];
    const T* const x4 = x + offsets[r + 4];
    const T* const x5 = x + offsets[r + 5];
    const T* const x6 = x + offsets[r + 6];
    const T* const x7 = x + offsets[r + 7];
    for (std::int64_t j = 0; j < width; ++j) {
      const Lane a = static_cast<Lane>(x0[j]) + static_cast<Lane>(x1[j]);
      const Lane b = static_cast<Lane>(x2[j]) + static_cast<Lane>(x3[j]);
      const Lane c = static_cast<Lane>(x4[j]) + static_cast<Lane>(x5[j]);
      const Lane d = static_cast<Lane>(x6[j]) + static_cast<Lane>(x7[j]);
      sum[j] += (a + b) + (c + d);
    }
  }
  for (; r < rows; ++r) {
    const T* const row = x + offsets[r];
    for (std::int64_t j = 0; j < width; ++j) {
      sum[j] += static_cast<Lane>(row[j]);
    }
  }
  for (std::int64_t j = 0; j < width; ++j) total[j] += sum[j];
}

// Merges the lanes as SumLanes does; no lane is NaN.
template <class Order, int kCount, typename T>
HWY_INLINE T FirstOfLanes(T* lanes) {
  if constexpr (kCount == 1) {
    return lanes[0];
  } else {
    for (int j = 0; j < kCount / 2; ++j) {
      const T y = lanes[j + kCount / 2];
      lanes[j] = Order::Before(y, lanes[j]) ? y : lanes[j];
    }
    return FirstOfLanes<Order, kCount / 2>(lanes);
  }
}

// The first in the order of x[0], …, x[n - 1], or NaN if one is; n <= kBlock.
template <class Order, typename T>
HWY_INLINE T BlockFirst(const T* x, std::int64_t n) {
  T first = Order::template Last<T>();
  if constexpr (std::is_integral_v<T>) {
    for (std::int64_t i = 0; i < n; ++i) {
      first = Order::Before(x[i], first) ? x[i] : first;
    }
    return first;
  } else {
    constexpr int kWide = kLanes<T>;
    bool nan = false;
    if (n >= kWide) {
      // NaN is recorded separately: then the selection is one instruction.
      T lanes[kWide];
      BitsOf<T> nans[kWide] = {};
      for (int j = 0; j < kWide; ++j) lanes[j] = first;
      for (std::int64_t i = 0; i < n; i += kWide) {
        // The last step reads some elements twice, instead of single ones.
        const T* const from = x + std::min<std::int64_t>(i, n - kWide);
        for (int j = 0; j < kWide; ++j) {
          const T y = from[j];
          lanes[j] = Order::Before(y, lanes[j]) ? y : lanes[j];
          nans[j] |= IsNan(y) ? 1 : 0;
        }
      }
      first = FirstOfLanes<Order, kWide>(lanes);
      BitsOf<T> any = 0;
      for (int j = 0; j < kWide; ++j) any |= nans[j];
      nan = any != 0;
    } else {
      for (std::int64_t i = 0; i < n; ++i) {
        first = Order::Before(x[i], first) ? x[i] : first;
        nan |= IsNan(x[i]);
      }
    }
    return nan ? std::numeric_limits<T>::quiet_NaN() : first;
  }
}

// first[j] becomes the first in the order of itself and of x[offsets[r] + j].
template <class Order, typename T>
HWY_INLINE void StripFirst(const T* x, const std::int64_t* offsets, int rows,
                           std::int64_t width, T* HWY_RESTRICT first) {
  int r = 0;
  for (; r + 4 <= rows; r += 4) {
    const T* const x0 = x + offsets[r];
    const T* const x1 = x + offsets[r + 1];
    const T* const x2 = x + offsets[r + 2];
    const T* const x3 = x + offsets[r + 3];
    for (std::int64_t j = 0; j < width; ++j) {
      T y = First<Order>(first[j], x0[j]);
      y = First<Order>(y, x1[j]);
      y = First<Order>(y, x2[j]);
      first[j] = First<Order>(y, x3[j]);
    }
  }
  for (; r < rows; ++r) {
    const T* const row = x + offsets[r];
    for (std::int64_t j = 0; j < width; ++j) {
      first[j] = First<Order>(first[j], row[j]);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace d2l::kernels::cpu
HWY_AFTER_NAMESPACE();

#endif  // the toggled include guard
