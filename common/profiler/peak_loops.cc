#include "common/profiler/peak_loops.h"

#include <cstddef>
#include <cstdint>

// Compiles what follows once for each kind of vector.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/profiler/peak_loops.cc"
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

constexpr int kChains = 12;  // a latency of four to six, two each cycle

// Returns a value, so that nothing is left out.
float MultiplyAddVectors(std::int64_t n) {
  const Tag d;
  const auto factor = hn::Set(d, 0.999f);
  const auto step = hn::Set(d, 0.001f);
  // All different, or a compiler would make them one.
  const auto from = [&](float x) { return hn::Set(d, x); };
  auto a = from(1), b = from(2), c = from(3), e = from(4), f = from(5),
       g = from(6), h = from(7), i = from(8), j = from(9), k = from(10),
       l = from(11), m = from(12);
  for (; n > 0; --n) {
    a = hn::MulAdd(a, factor, step);
    b = hn::MulAdd(b, factor, step);
    c = hn::MulAdd(c, factor, step);
    e = hn::MulAdd(e, factor, step);
    f = hn::MulAdd(f, factor, step);
    g = hn::MulAdd(g, factor, step);
    h = hn::MulAdd(h, factor, step);
    i = hn::MulAdd(i, factor, step);
    j = hn::MulAdd(j, factor, step);
    k = hn::MulAdd(k, factor, step);
    l = hn::MulAdd(l, factor, step);
    m = hn::MulAdd(m, factor, step);
  }
  a = hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, e)), hn::Add(f, g));
  h = hn::Add(hn::Add(hn::Add(h, i), hn::Add(j, k)), hn::Add(l, m));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(a, h)));
}

std::int64_t FlopOfRound() {
  return static_cast<std::int64_t>(2 * kChains * hn::Lanes(Tag()));
}

void TriadVectors(const float* b, const float* c, float* a, std::size_t n,
                  bool past_caches) {
  const Tag d;
  const auto factor = hn::Set(d, 3.0f);
  const auto at = [&](std::size_t i) {
    return hn::MulAdd(factor, hn::Load(d, c + i), hn::Load(d, b + i));
  };
  const std::size_t lanes = hn::Lanes(d);
  if (past_caches) {
    for (std::size_t i = 0; i < n; i += lanes) hn::Stream(at(i), d, a + i);
    hwy::FlushStream();
  } else {
    for (std::size_t i = 0; i < n; i += lanes) hn::Store(at(i), d, a + i);
  }
}

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

HWY_EXPORT(MultiplyAddVectors);
HWY_EXPORT(FlopOfRound);
HWY_EXPORT(TriadVectors);
HWY_EXPORT(CopyVectors);
HWY_EXPORT(ReadVectors);

std::int64_t MultiplyAdd(std::int64_t n) {
  volatile float sum = HWY_DYNAMIC_DISPATCH(MultiplyAddVectors)(n);
  static_cast<void>(sum);
  return n * HWY_DYNAMIC_DISPATCH(FlopOfRound)();
}

void Triad(const float* b, const float* c, float* a, std::size_t n,
           bool past_caches) {
  HWY_DYNAMIC_DISPATCH(TriadVectors)(b, c, a, n, past_caches);
}

void CopyPastCaches(const float* from, float* to, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(CopyVectors)(from, to, n);
}

float ReadAll(const float* from, std::size_t n) {
  return HWY_DYNAMIC_DISPATCH(ReadVectors)(from, n);
}

}  // namespace d2l

#endif  // HWY_ONCE
