#include "tests/peers/bandwidth.h"

#include <cstddef>

// Compiles what follows once for each kind of vector.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/peers/bandwidth.cc"
#include "hwy/foreach_target.h"
//
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace d2l {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// At most 16 floats, so that n is a multiple of four vectors.
using Tag = hn::CappedTag<float, 16>;

void CopyVectors(const float* from, float* to, std::size_t n) {
  const Tag d;
  for (std::size_t i = 0; i < n; i += hn::Lanes(d)) {
    hn::Stream(hn::Load(d, from + i), d, to + i);
  }
  hwy::FlushStream();
}

float ReadVectors(const float* from, std::size_t n) {
  const Tag d;
  const std::size_t lanes = hn::Lanes(d);
  // Several sums: one would wait for its last addition.
  auto a = hn::Zero(d);
  auto b = hn::Zero(d);
  auto c = hn::Zero(d);
  auto e = hn::Zero(d);
  for (std::size_t i = 0; i < n; i += 4 * lanes) {
    a = hn::Add(a, hn::Load(d, from + i));
    b = hn::Add(b, hn::Load(d, from + i + lanes));
    c = hn::Add(c, hn::Load(d, from + i + 2 * lanes));
    e = hn::Add(e, hn::Load(d, from + i + 3 * lanes));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
}

}  // namespace HWY_NAMESPACE
}  // namespace d2l
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace d2l {

HWY_EXPORT(CopyVectors);
HWY_EXPORT(ReadVectors);

void CopyPastCaches(const float* from, float* to, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(CopyVectors)(from, to, n);
}

float ReadAll(const float* from, std::size_t n) {
  return HWY_DYNAMIC_DISPATCH(ReadVectors)(from, n);
}

}  // namespace d2l

#endif  // HWY_ONCE
