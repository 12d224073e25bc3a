#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "common/kernels/cpu/matmul/gemm.h"
#include "common/kernels/cpu/vector_targets.h"

// Compiles what follows once for each kind of vector.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/kernels/cpu/matmul/gemv.cc"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace d2l::kernels::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
using Tag = hn::CappedTag<T, kGemvParts<T>>;
template <typename T>
constexpr int kLanes = static_cast<int>(hn::MaxLanes(Tag<T>()));
// The number of vectors that hold the partial sums of one product.
template <typename T>
constexpr int kVecs = kGemvParts<T> / kLanes<T>;
// The number of products computed together, which share each loaded vector of
// `a`: as many as the registers hold.
template <typename T>
constexpr int kAtOnce = kVecs<T> <= 2 ? 4 : 2;

template <typename T, int kColumns>
HWY_INLINE void Dot(const T* HWY_RESTRICT a, const T* HWY_RESTRICT b,
                    std::int64_t ldb, std::int64_t k, T* c,
                    std::int64_t c_column) {
  const Tag<T> d;
  hn::Vec<Tag<T>> sum[kColumns][kVecs<T>];
  for (int j = 0; j < kColumns; ++j) {
    for (int v = 0; v < kVecs<T>; ++v) sum[j][v] = hn::Zero(d);
  }
  const std::int64_t whole = k / kGemvParts<T> * kGemvParts<T>;
  for (std::int64_t p = 0; p < whole; p += kGemvParts<T>) {
    for (int v = 0; v < kVecs<T>; ++v) {
      const auto x = hn::LoadU(d, a + p + v * kLanes<T>);
      for (int j = 0; j < kColumns; ++j) {
        const auto y = hn::LoadU(d, b + j * ldb + p + v * kLanes<T>);
        sum[j][v] = hn::MulAdd(x, y, sum[j][v]);
      }
    }
  }
  if (whole < k) {
    // The last elements, filled up with zeros.
    HWY_ALIGN T x[kGemvParts<T>] = {};
    std::copy(a + whole, a + k, x);
    for (int j = 0; j < kColumns; ++j) {
      HWY_ALIGN T y[kGemvParts<T>] = {};
      std::copy(b + j * ldb + whole, b + j * ldb + k, y);
      for (int v = 0; v < kVecs<T>; ++v) {
        sum[j][v] = hn::MulAdd(hn::Load(d, x + v * kLanes<T>),
                               hn::Load(d, y + v * kLanes<T>), sum[j][v]);
      }
    }
  }
  for (int j = 0; j < kColumns; ++j) {
    for (int n = kVecs<T> / 2; n > 0; n /= 2) {
      for (int v = 0; v < n; ++v) sum[j][v] = hn::Add(sum[j][v], sum[j][v + n]);
    }
    HWY_ALIGN T lanes[kLanes<T>];
    hn::Store(sum[j][0], d, lanes);
    for (int n = kLanes<T> / 2; n > 0; n /= 2) {
      for (int i = 0; i < n; ++i) lanes[i] += lanes[i + n];
    }
    c[j * c_column] = lanes[0];
  }
}

template <typename T>
HWY_INLINE void GemvOf(const GemvArgs<T>& args, std::int64_t begin,
                       std::int64_t end) {
  for (std::int64_t j = begin; j < end; j += kAtOnce<T>) {
    const std::int64_t columns = std::min<std::int64_t>(kAtOnce<T>, end - j);
    for (std::int64_t i = 0; i < args.rows; ++i) {
      const T* a = args.a + i * args.lda;
      const T* b = args.b + j * args.ldb;
      T* c = args.c + i * args.c_row + j * args.c_column;
      if (columns == kAtOnce<T>) {
        Dot<T, kAtOnce<T>>(a, b, args.ldb, args.k, c, args.c_column);
        continue;
      }
      for (std::int64_t rest = 0; rest < columns; ++rest) {
        Dot<T, 1>(a, b + rest * args.ldb, args.ldb, args.k,
                  c + rest * args.c_column, args.c_column);
      }
    }
  }
}

void GemvOfFloats(const GemvArgs<float>& args, std::int64_t begin,
                  std::int64_t end) {
  GemvOf(args, begin, end);
}
void GemvOfDoubles(const GemvArgs<double>& args, std::int64_t begin,
                   std::int64_t end) {
  GemvOf(args, begin, end);
}

}  // namespace HWY_NAMESPACE
}  // namespace d2l::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace d2l::kernels::cpu {

HWY_EXPORT(GemvOfFloats);
HWY_EXPORT(GemvOfDoubles);

template <typename T>
void Gemv(const GemvArgs<T>& args, std::int64_t begin, std::int64_t end) {
  if constexpr (std::is_same_v<T, float>) {
    HWY_DYNAMIC_DISPATCH(GemvOfFloats)(args, begin, end);
  } else {
    HWY_DYNAMIC_DISPATCH(GemvOfDoubles)(args, begin, end);
  }
}

template void Gemv(const GemvArgs<float>&, std::int64_t, std::int64_t);
template void Gemv(const GemvArgs<double>&, std::int64_t, std::int64_t);

}  // namespace d2l::kernels::cpu

#endif  // HWY_ONCE
