#include "common/profiler/peaks.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/console/format.h"
#include "common/base/console/language.h"
#include "common/base/machine.h"
#include "common/base/mutex.h"
#include "common/base/timer.h"
#include "common/device/cpu/cpu_stream.h"
#include "common/device/cpu/parallel_for.h"
#include "common/device/device_table.h"
#include "common/ops/ops.h"

// Compiles the code below once for each kind of vector.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/profiler/peaks.cc"
#include "hwy/foreach_target.h"
//
#include "hwy/aligned_allocator.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace d2l {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// At most 16 floats.
using Tag = hn::CappedTag<float, 16>;

constexpr std::size_t kChains = 12;  // a latency of 4 to 6 cycles, 2 per cycle

// Does n rounds of a multiplication and an addition in each of kChains vectors,
// which begin with different values, or a compiler would make them one. Returns
// the number of these operations.
template <class... Chain>
HWY_INLINE double MultiplyAdd(std::int64_t n, Chain... chain) {
  const Tag d;
  if constexpr (sizeof...(chain) < kChains) {
    return MultiplyAdd(n, chain..., hn::Set(d, 1.0f + sizeof...(chain)));
  } else {
    const auto factor = hn::Set(d, 0.999f), step = hn::Set(d, 0.001f);
    for (std::int64_t i = 0; i < n; ++i) {
      ((chain = hn::MulAdd(chain, factor, step)), ...);
    }
    auto sum = hn::Zero(d);
    ((sum = hn::Add(sum, chain)), ...);
    [[maybe_unused]] volatile float used = hn::GetLane(hn::SumOfLanes(d, sum));
    return 2.0 * kChains * hn::Lanes(d) * n;
  }
}
double MultiplyAdds(std::int64_t n) { return MultiplyAdd(n); }

// A pass over the arrays a, b and c of n, one behind the other: reads them, or
// writes the copy of b or the triad of b and c to a. The loops with "Past"
// write past the caches.
enum Loop { kRead, kCopy, kCopyPast, kTriad, kTriadPast };
template <Loop kLoop>
void PassOf(float* a, std::size_t n) {
  constexpr bool kCopies = kLoop == kCopy || kLoop == kCopyPast;
  constexpr bool kPast = kLoop == kCopyPast || kLoop == kTriadPast;
  const Tag d;
  const auto factor = hn::Set(d, 3.0f);
  auto seen = hn::Zero(d);
  for (float* const end = a + n; a < end; a += hn::Lanes(d)) {
    auto x = hn::Load(d, a + n);
    if (!kCopies) x = hn::MulAdd(factor, hn::Load(d, a + 2 * n), x);
    if constexpr (kLoop == kRead) {
      seen = hn::Or(hn::Or(seen, hn::Load(d, a)), x);
    } else {
      kPast ? hn::Stream(x, d, a) : hn::Store(x, d, a);
    }
  }
  if (kPast) hwy::FlushStream();
  [[maybe_unused]] volatile float used = hn::GetLane(seen);
}
void Pass(int loop, float* a, std::size_t n) {
  constexpr void (*kLoops[])(float*, std::size_t) = {
      PassOf<kRead>, PassOf<kCopy>, PassOf<kCopyPast>, PassOf<kTriad>,
      PassOf<kTriadPast>};
  kLoops[loop](a, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace d2l
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace d2l {

HWY_EXPORT(MultiplyAdds);
HWY_EXPORT(Pass);

namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

template <typename F>
double Best(int runs, const F& work) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < runs; ++i) {
    const Timer timer;
    work();
    best = std::min(best, timer.Seconds());
  }
  return best;
}

// ---- A CPU device, within a task of its.

// The best time of work(part) for all parts at once, each on its own core.
template <typename F>
double BestOfCores(int cores, int runs, const F& work) {
  return Best(runs, [&] {
    ParallelFor(cores, 1, [&](std::int64_t part, std::int64_t end) {
      for (; part < end; ++part) work(part);
    });
  });
}

// `memory` with the rates of the fastest loops, on three arrays that have
// `used` bytes together; 0 if there is no room for them.
Bandwidth Measured(Bandwidth memory, int cores, std::int64_t used) {
  constexpr std::size_t kUnit = 64;  // whole vectors
  const std::size_t n =
      std::max<std::size_t>(used / 12 / cores / kUnit, 1) * kUnit;
  const auto arrays = hwy::AllocateAligned<float>(3 * n * cores);
  if (arrays == nullptr) return memory;
  std::fill_n(arrays.get(), 3 * n * cores, 1.0f);
  const auto array = static_cast<double>(4 * n * cores);
  const int passes = static_cast<int>(std::max(kMiB / array, 1.0));
  for (const int loop : {0, 1, 2, 3, 4}) {
    const double seconds =
        BestOfCores(cores, array < 16 * kMiB ? 20 : 6, [&](std::int64_t part) {
          for (int pass = 0; pass < passes; ++pass) {
            HWY_DYNAMIC_DISPATCH(Pass)(loop, arrays.get() + 3 * n * part, n);
          }
        });
    const bool copies = loop == 1 || loop == 2;
    const double rate = (copies ? 2 : 3) * array * passes / seconds;
    const auto raise = [rate](double& best) { best = std::max(best, rate); };
    raise(memory.bytes_per_second);
    if (copies) raise(memory.copied_per_second);
  }
  return memory;
}

void MeasureCpu(int cores, Peaks* peaks) {
  // The arrays use half of each cache, so that they fit; and at most eight
  // times the cache before, since others use the last cache as well.
  std::int64_t largest = 0;
  for (const int level : {1, 2, 3}) {
    const std::int64_t bytes =
        CacheBytes(level).value_or(0) * (level < 3 ? cores : 1);
    if (bytes <= largest) continue;
    const std::int64_t used =
        largest == 0 ? bytes / 2 : std::min(bytes / 2, 8 * largest);
    peaks->bandwidths.push_back(
        Measured({absl::StrCat("L", level), bytes}, cores, used));
    largest = bytes;
  }
  peaks->bandwidths.push_back(
      Measured({"memory", std::numeric_limits<std::int64_t>::max()}, cores,
               std::min(std::clamp(2 * largest, 48 * kMiB, 192 * kMiB),
                        FreeHostMemory(/*promised=*/0) / 4)));
  // Without room for the arrays there are no peaks.
  if (peaks->bandwidths.back().bytes_per_second == 0) return;
  std::vector<double> flop(cores);
  const double seconds = BestOfCores(cores, 10, [&](std::int64_t part) {
    flop[part] = HWY_DYNAMIC_DISPATCH(MultiplyAdds)(50'000);
  });
  peaks->flop_per_second = cores * flop[0] / seconds;
}

// ---- Any device: the time of one of `count` requests, from the first until x
// has been written behind them.
template <typename F>
double EachSeconds(const Tensor& x, int count, const F& request) {
  Stream& stream = CurrentStream(x.device());
  return Best(20,
              [&] {
                for (int i = 0; i < count; ++i) request();
                FillInPlace(x, 1);
                stream.WaitFor(x.storage()->written_by());
              }) /
         count;
}

void MeasureGpu(const Tensor& one, Peaks* peaks) {
  constexpr std::int64_t kSize = 4096;
  const Tensor x = Rand({kSize, kSize}, one.device());
  peaks->flop_per_second =
      2.0 * kSize * kSize * kSize / EachSeconds(one, 2, [&] { MatMul(x, x); });
  for (const std::int64_t mib : {8, 64, 512}) {
    const Tensor from = Zeros({mib * kMiB / 8}, one.device());
    const double copied = static_cast<double>(mib * kMiB) /
                          EachSeconds(one, 50, [&] { Clone(from); });
    peaks->bandwidths.push_back(
        {FormatBytes(mib * kMiB), mib * kMiB, copied, copied});
  }
}

Peaks Measure(Device device) {
  Peaks peaks;
  const DeviceInfo& info = GetDeviceInfo(device);
  if (info.kind == DeviceKind::kModelled) return peaks;
  const Tensor x = Ones({1, 1}, device);
  if (device.type() == DeviceType::kCpu) {
    auto& stream = static_cast<CpuStream&>(CurrentStream(device));
    stream.WaitFor(stream.Enqueue(OpLabel("peaks"), [&] {
      MeasureCpu(std::max(info.cores, 1), &peaks);
    }));
  } else {
    MeasureGpu(x, &peaks);
  }
  // A stream that has failed skips the work.
  if (!peaks.measured()) return {};
  const Tensor y = Ones({1, 1}, device);
  peaks.enqueue_seconds = EachSeconds(x, 500, [&] { CopyTo(y, x); });
  return peaks;
}

}  // namespace

const Peaks& PeaksOf(Device device) {
  static Mutex& mutex = *new Mutex;
  static auto& all = *new std::map<Device, Peaks>;
  const MutexLock lock(mutex);
  Peaks& peaks = all[device];
  if (!peaks.measured()) peaks = Measure(device);
  return peaks;
}

const Bandwidth& Peaks::BandwidthOf(std::int64_t bytes) const {
  return *std::find_if(
      bandwidths.begin(), bandwidths.end() - 1,
      [bytes](const Bandwidth& one) { return bytes <= one.bytes; });
}

std::string Peaks::ToText(const std::string& name) const {
  if (!measured()) return Say("%s: its peaks were not measured.", name);
  return Say("%s: %s GFLOP/s; GB/s: %s; %s to enqueue.", name,
             FormatNumber(flop_per_second / 1e9),
             absl::StrJoin(bandwidths, ", ",
                           [](std::string* out, const Bandwidth& one) {
                             absl::StrAppend(
                                 out, Translated(one.name), " ",
                                 FormatNumber(one.bytes_per_second / 1e9));
                           }),
             FormatDuration(enqueue_seconds));
}

Bound BoundOf(const OpCost& cost, const Peaks& peaks) {
  if (!peaks.measured() || (cost.flop == 0 && cost.bytes == 0)) return {};
  const double arithmetic =
      static_cast<double>(cost.least_flop()) / peaks.flop_per_second;
  const Bandwidth& from = peaks.BandwidthOf(cost.bytes);
  const std::int64_t copied =
      2 * std::min(cost.written, cost.bytes - cost.written);
  const double memory =
      std::max(static_cast<double>(cost.bytes) / from.bytes_per_second,
               static_cast<double>(copied) / from.copied_per_second);
  const double longer = std::max(arithmetic, memory);
  if (longer < peaks.enqueue_seconds) return {longer, BoundKind::kEnqueueing};
  return {longer,
          arithmetic > memory ? BoundKind::kArithmetic : BoundKind::kMemory};
}

}  // namespace d2l

#endif  // HWY_ONCE
