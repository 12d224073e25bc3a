#include "common/kernels/cpu/nn/winograd_tiles.h"

#include <cmath>
#include <cstdint>

#include "common/kernels/cpu/vector_targets.h"

// Compiles what follows once for each kind of vector.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/kernels/cpu/nn/winograd_tiles.cc"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace d2l::kernels::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, kTileLanes>;
using V = hn::Vec<D>;
constexpr int kStep = static_cast<int>(hn::MaxLanes(D()));

HWY_INLINE V Times(double factor, V v) {
  return hn::Mul(hn::Set(D(), static_cast<float>(factor)), v);
}

// ---- In one dimension, from a row to a row. The rows of the points a and -a
// are the sum and the difference of two terms, as are those of b and -b.

constexpr double kA = 0.625;
constexpr double kB = 1.5;
constexpr double kA2 = kA * kA;
constexpr double kB2 = kB * kB;
// The denominators of G, for 0, a and b.
constexpr double kN0 = kA2 * kB2;
constexpr double kNA = 2 * kA2 * (kA2 - kB2);
constexpr double kNB = 2 * kB2 * (kB2 - kA2);

struct Input {  // B^T
  static HWY_INLINE void Apply(const V* d, V* out) {
    const V a = hn::Sub(d[4], Times(kB2, d[2]));
    const V b = Times(kA, hn::Sub(d[3], Times(kB2, d[1])));
    const V c = hn::Sub(d[4], Times(kA2, d[2]));
    const V e = Times(kB, hn::Sub(d[3], Times(kA2, d[1])));
    out[0] = hn::Add(hn::Sub(Times(kN0, d[0]), Times(kA2 + kB2, d[2])), d[4]);
    out[1] = hn::Add(a, b);
    out[2] = hn::Sub(a, b);
    out[3] = hn::Add(c, e);
    out[4] = hn::Sub(c, e);
    out[5] = hn::Add(hn::Sub(Times(kN0, d[1]), Times(kA2 + kB2, d[3])), d[5]);
  }
};

struct Output {  // A^T
  static HWY_INLINE void Apply(const V* m, V* out) {
    const V a = hn::Add(m[1], m[2]);
    const V b = hn::Sub(m[1], m[2]);
    const V c = hn::Add(m[3], m[4]);
    const V e = hn::Sub(m[3], m[4]);
    out[0] = hn::Add(hn::Add(m[0], a), c);
    out[1] = hn::Add(Times(kA, b), Times(kB, e));
    out[2] = hn::Add(Times(kA2, a), Times(kB2, c));
    out[3] = hn::Add(hn::Add(Times(kA * kA2, b), Times(kB * kB2, e)), m[5]);
  }
};

struct Gradient {  // A
  static HWY_INLINE void Apply(const V* y, V* out) {
    const V a = hn::Add(y[0], Times(kA2, y[2]));
    const V b = hn::Add(Times(kA, y[1]), Times(kA * kA2, y[3]));
    const V c = hn::Add(y[0], Times(kB2, y[2]));
    const V e = hn::Add(Times(kB, y[1]), Times(kB * kB2, y[3]));
    out[0] = y[0];
    out[1] = hn::Add(a, b);
    out[2] = hn::Sub(a, b);
    out[3] = hn::Add(c, e);
    out[4] = hn::Sub(c, e);
    out[5] = y[3];
  }
};

struct Kernel {  // G
  static HWY_INLINE void Apply(const V* g, V* out) {
    const V a = hn::Add(Times(1 / kNA, g[0]), Times(kA2 / kNA, g[2]));
    const V b = Times(kA / kNA, g[1]);
    const V c = hn::Add(Times(1 / kNB, g[0]), Times(kB2 / kNB, g[2]));
    const V e = Times(kB / kNB, g[1]);
    out[0] = Times(1 / kN0, g[0]);
    out[1] = hn::Add(a, b);
    out[2] = hn::Sub(a, b);
    out[3] = hn::Add(c, e);
    out[4] = hn::Sub(c, e);
    out[5] = g[2];
  }
};

struct KernelGradient {  // G^T
  static HWY_INLINE void Apply(const V* m, V* out) {
    const V a = hn::Add(m[1], m[2]);
    const V b = hn::Sub(m[1], m[2]);
    const V c = hn::Add(m[3], m[4]);
    const V e = hn::Sub(m[3], m[4]);
    out[0] = hn::Add(Times(1 / kN0, m[0]),
                     hn::Add(Times(1 / kNA, a), Times(1 / kNB, c)));
    out[1] = hn::Add(Times(kA / kNA, b), Times(kB / kNB, e));
    out[2] = hn::Add(hn::Add(Times(kA2 / kNA, a), Times(kB2 / kNB, c)), m[5]);
  }
};

// ---- In two dimensions: over the rows, then over the columns.

template <typename Transform, int kIn, int kOut>
HWY_INLINE void ApplyTwice(const V (&in)[kIn][kIn], V (&out)[kOut][kOut]) {
  V turned[kOut][kIn];
  HWY_UNROLL(6)
  for (int i = 0; i < kIn; ++i) {
    V row[kOut];
    Transform::Apply(in[i], row);
    HWY_UNROLL(6)
    for (int j = 0; j < kOut; ++j) turned[j][i] = row[j];
  }
  HWY_UNROLL(6)
  for (int j = 0; j < kOut; ++j) {
    V column[kOut];
    Transform::Apply(turned[j], column);
    HWY_UNROLL(6)
    for (int i = 0; i < kOut; ++i) out[i][j] = column[i];
  }
}

// Transformed tiles.
HWY_INLINE void LoadNumbers(const float* from, std::int64_t step,
                            V (&to)[6][6]) {
  for (int i = 0; i < kTileNumbers; ++i) {
    to[i / 6][i % 6] = hn::LoadU(D(), from + i * step);
  }
}
HWY_INLINE void StoreNumbers(const V (&from)[6][6], float* to,
                             std::int64_t step) {
  for (int i = 0; i < kTileNumbers; ++i) {
    hn::StoreU(from[i / 6][i % 6], D(), to + i * step);
  }
}

bool AllBelow(float bound, const float* numbers, std::int64_t count) {
  const V least = hn::Set(D(), bound);
  auto below = hn::Eq(least, least);
  std::int64_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    const V number = hn::Abs(hn::LoadU(D(), numbers + i));
    below = hn::And(below, hn::Lt(number, least));
  }
  bool all = hn::AllTrue(D(), below);
  for (; i < count; ++i) all = all && std::fabs(numbers[i]) < bound;
  return all;
}

void RaiseToMagnitudes(const float* numbers, std::int64_t count,
                       float* largest) {
  // The bits of numbers that are not negative have the order of the numbers.
  const hn::RebindToSigned<D> bits;
  std::int64_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    const auto number = hn::BitCast(bits, hn::Abs(hn::LoadU(D(), numbers + i)));
    const auto most = hn::BitCast(bits, hn::LoadU(D(), largest + i));
    hn::StoreU(hn::BitCast(D(), hn::Max(number, most)), D(), largest + i);
  }
  for (; i < count; ++i) {
    const float number = std::fabs(numbers[i]);
    if (!std::isnan(largest[i]) && !(number <= largest[i])) {
      largest[i] = number;
    }
  }
}

void TransformInput(const InputTiles& tiles, float* out, std::int64_t step) {
  for (int l = 0; l < kTileLanes; l += kStep) {
    V d[6][6], v[6][6];
    for (int i = 0; i < 6; ++i) {
      hn::LoadInterleaved4(D(), tiles.quads[i] + 4 * l, d[i][0], d[i][1],
                           d[i][2], d[i][3]);
      hn::LoadInterleaved2(D(), tiles.pairs[i] + 2 * l, d[i][4], d[i][5]);
    }
    ApplyTwice<Input>(d, v);
    StoreNumbers(v, out + l, step);
  }
}

void TransformOutput(const float* m, std::int64_t step, float bias,
                     OutputTiles& tiles) {
  const V shift = hn::Set(D(), bias);
  for (int l = 0; l < kTileLanes; l += kStep) {
    V in[6][6], y[4][4];
    LoadNumbers(m + l, step, in);
    ApplyTwice<Output>(in, y);
    for (int i = 0; i < 4; ++i) {
      hn::StoreInterleaved4(hn::Add(y[i][0], shift), hn::Add(y[i][1], shift),
                            hn::Add(y[i][2], shift), hn::Add(y[i][3], shift),
                            D(), tiles.quads[i] + 4 * l);
    }
  }
}

void TransformGradient(const OutputTiles& tiles, float* out,
                       std::int64_t step) {
  for (int l = 0; l < kTileLanes; l += kStep) {
    V y[4][4], m[6][6];
    for (int i = 0; i < 4; ++i) {
      hn::LoadInterleaved4(D(), tiles.quads[i] + 4 * l, y[i][0], y[i][1],
                           y[i][2], y[i][3]);
    }
    ApplyTwice<Gradient>(y, m);
    StoreNumbers(m, out + l, step);
  }
}

void TransformKernel(const KernelTiles& tiles, float* out, std::int64_t step) {
  for (int l = 0; l < kTileLanes; l += kStep) {
    V g[3][3], u[6][6];
    for (int i = 0; i < 9; ++i) {
      g[i / 3][i % 3] = hn::Load(D(), tiles.taps[i] + l);
    }
    ApplyTwice<Kernel>(g, u);
    StoreNumbers(u, out + l, step);
  }
}

void TransformKernelGradient(const float* m, std::int64_t step,
                             KernelTiles& tiles) {
  for (int l = 0; l < kTileLanes; l += kStep) {
    V in[6][6], g[3][3];
    LoadNumbers(m + l, step, in);
    ApplyTwice<KernelGradient>(in, g);
    for (int i = 0; i < 9; ++i) {
      hn::Store(g[i / 3][i % 3], D(), tiles.taps[i] + l);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace d2l::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace d2l::kernels::cpu {
namespace {

HWY_EXPORT(AllBelow);
HWY_EXPORT(RaiseToMagnitudes);
HWY_EXPORT(TransformInput);
HWY_EXPORT(TransformOutput);
HWY_EXPORT(TransformGradient);
HWY_EXPORT(TransformKernel);
HWY_EXPORT(TransformKernelGradient);

}  // namespace

bool AllBelow(float bound, const float* numbers, std::int64_t count) {
  return HWY_DYNAMIC_DISPATCH(AllBelow)(bound, numbers, count);
}
void RaiseToMagnitudes(const float* numbers, std::int64_t count,
                       float* largest) {
  HWY_DYNAMIC_DISPATCH(RaiseToMagnitudes)(numbers, count, largest);
}
void TransformInput(const InputTiles& tiles, float* out, std::int64_t step) {
  HWY_DYNAMIC_DISPATCH(TransformInput)(tiles, out, step);
}
void TransformOutput(const float* m, std::int64_t step, float bias,
                     OutputTiles& tiles) {
  HWY_DYNAMIC_DISPATCH(TransformOutput)(m, step, bias, tiles);
}
void TransformGradient(const OutputTiles& tiles, float* out,
                       std::int64_t step) {
  HWY_DYNAMIC_DISPATCH(TransformGradient)(tiles, out, step);
}
void TransformKernel(const KernelTiles& tiles, float* out, std::int64_t step) {
  HWY_DYNAMIC_DISPATCH(TransformKernel)(tiles, out, step);
}
void TransformKernelGradient(const float* m, std::int64_t step,
                             KernelTiles& tiles) {
  HWY_DYNAMIC_DISPATCH(TransformKernelGradient)(m, step, tiles);
}

}  // namespace d2l::kernels::cpu

#endif  // HWY_ONCE
