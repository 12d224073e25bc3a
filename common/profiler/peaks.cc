#include "common/profiler/peaks.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>
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

// Compiles what follows once for each kind of vector.
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

// Reads only. A sum for each load in flight.
float ReadVectors(const float* x, std::size_t n) {
  const Tag d;
  const std::size_t lanes = hn::Lanes(d);
  auto a = hn::Zero(d), b = a, c = a, e = a;
  for (std::size_t i = 0; i < n; i += 4 * lanes) {
    a = hn::Add(a, hn::Load(d, x + i));
    b = hn::Add(b, hn::Load(d, x + i + lanes));
    c = hn::Add(c, hn::Load(d, x + i + 2 * lanes));
    e = hn::Add(e, hn::Load(d, x + i + 3 * lanes));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
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

}  // namespace HWY_NAMESPACE
}  // namespace d2l
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace d2l {

HWY_EXPORT(MultiplyAddVectors);
HWY_EXPORT(FlopOfRound);
HWY_EXPORT(ReadVectors);
HWY_EXPORT(TriadVectors);

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::int64_t kMiB = std::int64_t{1} << 20;

double Best(int runs, const std::function<void()>& work) {
  double best = kNever;
  for (int i = 0; i < runs; ++i) {
    const Timer timer;
    work();
    best = std::min(best, timer.Seconds());
  }
  return best;
}

void WaitForWriter(const Tensor& x) {
  CurrentStream(x.device()).WaitFor(x.storage()->written_by());
}

// ---- A CPU device. `cores` parts at the same time, within a task of its.

double FlopPerSecond(int cores) {
  constexpr std::int64_t kRounds = 50'000;
  const double seconds = Best(10, [&] {
    ParallelFor(cores, 1, [](std::int64_t begin, std::int64_t end) {
      for (; begin < end; ++begin) {
        volatile float sum = HWY_DYNAMIC_DISPATCH(MultiplyAddVectors)(kRounds);
        static_cast<void>(sum);
      }
    });
  });
  return static_cast<double>(cores * kRounds *
                             HWY_DYNAMIC_DISPATCH(FlopOfRound)()) /
         seconds;
}

// Of the triad or of reading, whichever is faster, on three arrays that have
// `bytes` bytes together.
double BytesPerSecond(int cores, std::int64_t bytes) {
  constexpr std::size_t kUnit = 64;  // whole vectors
  const std::size_t n =
      std::max<std::size_t>(bytes / 12 / cores / kUnit, 1) * kUnit;
  const std::size_t all = n * cores;
  const auto memory = hwy::AllocateAligned<float>(3 * all);
  if (memory == nullptr) return 0;
  std::fill_n(memory.get(), 3 * all, 1.0f);
  const double per_pass = 12.0 * static_cast<double>(all);
  const int passes =
      static_cast<int>(std::max(1.0, 4 * static_cast<double>(kMiB) / per_pass));
  double best = kNever;
  enum { kTriad, kTriadPastCaches, kRead };
  for (const auto loop : {kTriad, kTriadPastCaches, kRead}) {
    const double seconds = Best(passes > 1 ? 20 : 4, [&] {
      ParallelFor(cores, 1, [&](std::int64_t part, std::int64_t end) {
        for (; part < end; ++part) {
          float* const a = memory.get() + 3 * n * part;
          for (int pass = 0; pass < passes; ++pass) {
            if (loop == kRead) {
              volatile float sum = HWY_DYNAMIC_DISPATCH(ReadVectors)(a, 3 * n);
              static_cast<void>(sum);
            } else {
              HWY_DYNAMIC_DISPATCH(TriadVectors)
              (a + n, a + 2 * n, a, n, loop == kTriadPastCaches);
            }
          }
        }
      });
    });
    best = std::min(best, seconds);
  }
  return per_pass * passes / best;
}

// Of each cache half is used, so that it holds all; of the last, which others
// use as well, no more than the one before cannot hold.
std::vector<Bandwidth> Bandwidths(int cores) {
  std::vector<Bandwidth> all;
  std::int64_t largest = 0;
  for (const int level : {1, 2, 3}) {
    const std::int64_t each = CacheBytes(level).value_or(0);
    const std::int64_t bytes = level < 3 ? each * cores : each;
    if (bytes <= largest) continue;
    const std::int64_t most = largest == 0 ? bytes : 8 * largest;
    all.push_back({absl::StrCat("L", level), bytes,
                   BytesPerSecond(cores, std::min(bytes / 2, most))});
    largest = bytes;
  }
  const std::int64_t room = FreeHostMemory(/*promised=*/0) / 4;
  all.push_back(
      {"memory", std::numeric_limits<std::int64_t>::max(),
       BytesPerSecond(
           cores,
           std::min(std::clamp(2 * largest, 48 * kMiB, 192 * kMiB), room))});
  return all;
}

void MeasureCpu(Device device, Peaks* peaks) {
  const int cores = std::max(GetDeviceInfo(device).cores, 1);
  auto& stream = static_cast<CpuStream&>(CurrentStream(device));
  stream.WaitFor(stream.Enqueue(OpLabel("peaks"), [=] {
    peaks->bandwidths = Bandwidths(cores);
    // Without room for the arrays there are no peaks.
    if (peaks->bandwidths.back().bytes_per_second == 0) return;
    peaks->flop_per_second = FlopPerSecond(cores);
  }));
}

// ---- A GPU.

void MeasureGpu(Device device, Peaks* peaks) {
  constexpr std::int64_t kSize = 4096;
  const auto best = [&](const std::function<Tensor()>& work, int count) {
    return Best(5,
                [&] {
                  Tensor last;
                  for (int i = 0; i < count; ++i) last = work();
                  WaitForWriter(last);
                }) /
           count;
  };
  const Tensor x = Rand({kSize, kSize}, device);
  peaks->flop_per_second =
      2.0 * kSize * kSize * kSize / best([&] { return MatMul(x, x); }, 2);
  for (const std::int64_t mib : {8, 64, 512}) {
    const Tensor from = Zeros({mib * kMiB / 8}, device);
    peaks->bandwidths.push_back({FormatBytes(mib * kMiB), mib * kMiB,
                                 static_cast<double>(mib * kMiB) /
                                     best([&] { return Clone(from); }, 50)});
  }
}

double EnqueueSeconds(Device device) {
  constexpr int kRequests = 1000;
  const Tensor x = Empty({1}, device);
  return Best(20,
              [&] {
                for (int i = 0; i < kRequests; ++i) FillInPlace(x, 1);
                WaitForWriter(x);
              }) /
         kRequests;
}

Peaks Measure(Device device) {
  Peaks peaks;
  if (GetDeviceInfo(device).kind == DeviceKind::kModelled) return peaks;
  if (device.type() == DeviceType::kCpu) {
    MeasureCpu(device, &peaks);
  } else {
    MeasureGpu(device, &peaks);
  }
  // A stream that has failed skips the work.
  if (!peaks.measured()) return {};
  peaks.enqueue_seconds = EnqueueSeconds(device);
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

const char* BoundName(BoundKind kind) {
  constexpr const char* kNames[kBoundKinds] = {"", "arithmetic", "memory",
                                               "enqueueing"};
  return kNames[static_cast<int>(kind)];
}

Bound BoundOf(const OpCost& cost, const Peaks& peaks) {
  if (!peaks.measured() || (cost.flop == 0 && cost.bytes == 0)) return {};
  const double arithmetic =
      static_cast<double>(cost.flop) / peaks.flop_per_second;
  const double memory = static_cast<double>(cost.bytes) /
                        peaks.BandwidthOf(cost.bytes).bytes_per_second;
  const double longer = std::max(arithmetic, memory);
  if (longer < peaks.enqueue_seconds) return {longer, BoundKind::kEnqueueing};
  return {longer,
          arithmetic > memory ? BoundKind::kArithmetic : BoundKind::kMemory};
}

}  // namespace d2l

#endif  // HWY_ONCE
