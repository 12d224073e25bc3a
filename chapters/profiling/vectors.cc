// Cells: vector instructions, and the memory that feeds them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "chapters/profiling/hardware.h"
#include "chapters/profiling/latencies/sampling.h"
#include "chapters/profiling/profiled_runs.h"
#include "common/base/machine.h"
#include "common/base/undisturbed_timer.h"
#include "common/lesson/cell/benchmark.h"
#include "common/lesson/cell/cell.h"

// Compiles the code below once for each kind of vector.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "chapters/profiling/vectors.cc"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace d2l::profiling {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// %% d2l/hw-vectors
// y += a * x: each turn of the loop takes a vector of x, one of y, and puts one
// back. With one lane a vector is a number.
template <int kLanes>
void AddScaledIn(float a, const float* x, float* y, std::size_t n) {
  const hn::CappedTag<float, kLanes> d;
  for (std::size_t i = 0; i < n; i += hn::Lanes(d)) {
    const auto sum =
        hn::MulAdd(hn::Set(d, a), hn::LoadU(d, x + i), hn::LoadU(d, y + i));
    hn::StoreU(sum, d, y + i);
  }
}
// %%

void AddScaledBy(int lanes, float a, const float* x, float* y, std::size_t n) {
  switch (lanes) {
    case 1:
      return AddScaledIn<1>(a, x, y, n);
    case 2:
      return AddScaledIn<2>(a, x, y, n);
    case 4:
      return AddScaledIn<4>(a, x, y, n);
    case 8:
      return AddScaledIn<8>(a, x, y, n);
    default:
      return AddScaledIn<16>(a, x, y, n);
  }
}

std::size_t Lanes() { return hn::Lanes(hn::CappedTag<float, 16>()); }

// %% d2l/hw-cache-starvation
// The sum of n numbers, after so many multiplications and additions with each.
// Four chains of the widest vectors keep the core's units at work.
float SumAfter(const float* x, std::size_t n, int operations) {
  const hn::CappedTag<float, 16> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto half = hn::Set(d, 0.5f);
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  for (std::size_t i = 0; i < n; i += 4 * lanes) {
    auto a = hn::LoadU(d, x + i), b = hn::LoadU(d, x + i + lanes);
    auto c = hn::LoadU(d, x + i + 2 * lanes);
    auto e = hn::LoadU(d, x + i + 3 * lanes);
    for (int k = 1; k < operations; ++k) {
      a = hn::MulAdd(a, half, half), b = hn::MulAdd(b, half, half);
      c = hn::MulAdd(c, half, half), e = hn::MulAdd(e, half, half);
    }
    s0 = hn::Add(s0, a), s1 = hn::Add(s1, b);
    s2 = hn::Add(s2, c), s3 = hn::Add(s3, e);
  }
  const auto sums = hn::Add(hn::Add(s0, s1), hn::Add(s2, s3));
  return hn::GetLane(hn::SumOfLanes(d, sums));
}
// %%

}  // namespace HWY_NAMESPACE
}  // namespace d2l::profiling
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace d2l::profiling {
namespace {

HWY_EXPORT(AddScaledBy);
HWY_EXPORT(Lanes);
HWY_EXPORT(SumAfter);

// How many floats the widest vector of this machine has.
int WidestVector() { return static_cast<int>(HWY_DYNAMIC_DISPATCH(Lanes)()); }

// y += a * x, with vectors of 1, 2, 4, 8 or 16 floats, at most the widest. n is
// a multiple of 16.
void AddScaled(int lanes, float a, const float* x, float* y, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(AddScaledBy)(lanes, a, x, y, n);
}

// A thread for each vector of x adds up its n numbers from `first` on, `times`
// times, with `operations` operations per number. n is a multiple of 64.
void SumInThreads(const std::vector<std::vector<float>>& x, std::size_t first,
                  std::size_t n, int times, int operations) {
  const auto sum = [&](const std::vector<float>& own) {
    for (int i = 0; i < times; ++i) {
      KeepValue(HWY_DYNAMIC_DISPATCH(SumAfter)(&own[first], n, operations));
    }
  };
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < x.size(); ++i) {
    others.emplace_back([&, i] {
      sum(x[i]);
      KeepWaits();  // for the clock
    });
  }
  sum(x[0]);
  for (std::thread& other : others) other.join();
}

// How many times as long memory takes as the cache.
Figure Wait(const Timings& t) {
  return RatioPerRepeat("memory / cache", t["memory"].completion,
                        t["cache"].completion);
}

// %% d2l/hw-vectors, measured
// Wait, of a place of the sweep: memory's time / the cache's.
void Vectors(Cell& cell) {
  constexpr std::size_t kNumbers = 2048;  // two times 8 KiB: in the L1 cache
  const std::size_t size = LargeBytes(cell) / 2 / sizeof(float);
  std::vector<float> x(size, 1), y(size), x1(kNumbers, 1), y1(kNumbers);
  const int times = cell.BySize(8, 40, 40), widest = WidestVector();
  std::size_t at = 0;  // goes on through memory, so that no cache has it
  std::vector<Timings> sweep;
  for (int lanes = 1; lanes <= widest; lanes *= 2) {
    const auto from_memory = [&, lanes] {
      at = at + 2 * kNumbers <= size ? at + kNumbers : 0;
      AddScaled(lanes, 0.5f, &x[at], &y[at], kNumbers);
    };
    const auto from_cache = [&, lanes] {
      AddScaled(lanes, 0.5f, x1.data(), y1.data(), kNumbers);
    };
    cell.At("numbers in a vector", lanes);
    sweep.push_back(
        cell.TimeInterleaved({{"memory", {}, Loop(times, from_memory)},
                              {"cache", {}, Loop(times, from_cache)}}));
  }
  cell.AtNoPlace();
  PrintSweep(sweep, static_cast<int>(kNumbers) * times, "time of a number");
  cell.Check(std::count(y1.begin(), y1.end(), y1[0]) == kNumbers, "y");
  const Timings &one = sweep.front(), &wide = sweep.back();
  cell.Claim(
      Worded(
          "In the L1 cache vectors of %d are faster than single numbers: {}.",
          widest),
      Faster(wide["cache"], one["cache"], kClearly),
      Say("%s and %s; the widest vector here has %d numbers.",
          Took(wide["cache"]), Took(one["cache"]), widest));
  cell.Claim(
      Worded("Memory takes longer than the L1 cache to feed vectors of %d: {}.",
             widest),
      Both(Faster(wide["cache"], wide["memory"], kClearly),
           Less(Wait(one), Wait(wide), kClearly), "than to feed single ones"),
      Say("From memory vectors take %s, single numbers %s.",
          Took(wide["memory"]), Took(one["memory"])));
}
// %%
D2L_CELL("d2l/hw-vectors", Vectors);

// Times sums in all cores with 1, 8 and 64 operations for each number. *numbers
// is set to how many numbers each core added up.
std::vector<Timings> SweepOperations(Cell& cell, int cores,
                                     std::size_t* numbers) {
  constexpr std::size_t kCached = 4096;  // 16 KiB: in each core's L1 cache
  const std::size_t size = std::max<std::size_t>(
      kCached, LargeBytes(cell) / cores / sizeof(float) / kCached * kCached);
  const std::size_t part =
      std::min<std::size_t>(size, cell.BySize(1 << 19, 1 << 23, 1 << 23));
  const auto make = [&](std::size_t n) {
    return std::vector<std::vector<float>>(cores, std::vector<float>(n, 1));
  };
  const std::vector<std::vector<float>> memory = make(size);
  const std::vector<std::vector<float>> caches = make(kCached);
  std::size_t at = 0;  // goes on through memory, so that no cache has it
  std::vector<Timings> sweep;
  for (const int operations : {1, 8, 64}) {
    cell.At("operations with a number", operations);
    const auto from_memory = [&] {
      at = at + 2 * part <= size ? at + part : 0;
      SumInThreads(memory, at, part, 1, operations);
    };
    const auto from_caches = [&] {
      const int times = static_cast<int>(part / kCached);
      SumInThreads(caches, 0, kCached, times, operations);
    };
    sweep.push_back(cell.TimeInterleaved(
        {{"memory", {}, from_memory}, {"cache", {}, from_caches}}));
  }
  cell.AtNoPlace();
  PrintSweep(sweep, static_cast<int>(part) * cores, "time of a number");
  *numbers = part;
  return sweep;
}

// %% d2l/hw-cache-starvation, measured
// SweepOperations and Wait stand above this cell.
void CacheStarvation(Cell& cell) {
  const int cores = UsableCores();
  std::size_t numbers = 0;
  const std::vector<Timings> sweep = SweepOperations(cell, cores, &numbers);
  const Timings &little = sweep.front(), &much = sweep.back();
  const auto rate = [&](const Timing& timing) {
    return FormatBytes(static_cast<std::int64_t>(
        static_cast<double>(numbers * cores * sizeof(float)) /
        timing.completion.value.median));
  };
  std::cout << Say(
      "  %d cores add up %s a second from memory, %s from caches.\n", cores,
      rate(little["memory"]), rate(little["cache"]));
  cell.Claim(
      "A sum takes all cores longer from memory than from caches: {}.",
      Both(Faster(little["cache"], little["memory"], kClearly),
           Less(Wait(much), Wait(little), kClearly), "than with 64 operations"),
      Say("With 64 operations for each number the memory takes %s, the "
          "caches %s.",
          Took(much["memory"]), Took(much["cache"])));
}
// %%
D2L_CELL("d2l/hw-cache-starvation", CacheStarvation);

// ---- Benchmarks, at the course's size.

MakeHostWork Scaled(int lanes) {
  return [lanes] {
    return [lanes, x = std::vector<float>(2048, 1),
            y = std::vector<float>(2048)]() mutable {
      AddScaled(lanes, 0.5f, x.data(), y.data(), x.size());
    };
  };
}

[[maybe_unused]] const bool benchmarks[] = {
    BenchmarkHost("BM_d2l_hw_vectors_One_Host", 2048, Scaled(1)),
    BenchmarkHost("BM_d2l_hw_vectors_Widest_Host", 2048, Scaled(16)),
    BenchmarkHost("BM_d2l_hw_cache_starvation_Sums_Host", 1 << 22,
                  [] {
                    return [x = std::vector<std::vector<float>>(
                                1, std::vector<float>(1 << 22, 1))] {
                      SumInThreads(x, 0, 1 << 22, 1, 1);
                    };
                  }),
};

}  // namespace
}  // namespace d2l::profiling

#endif  // HWY_ONCE
