// Functions that the files of cells share.
//
// Only the thread of the benchmarks calls them.

#ifndef D2L_TESTS_PEERS_MEASURE_H_
#define D2L_TESTS_PEERS_MEASURE_H_

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/timer.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/listener.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/record.h"
#include "common/profiler/peaks.h"

namespace d2l {

// The least time for the operations that this thread enqueues: the longest of
// the devices' times, each working by itself, and of the thread's own time to
// enqueue them and to wait for them.
class CostCounter : public OpListener, public DeviceListener {
 public:
  CostCounter() {
    for (const DeviceInfo& info : Devices()) RequestsOf(info.device);
  }

  void OnOp(const OpRecord& record) override {
    const Device device = record.output.device();
    const Peaks& peaks = PeaksOf(device);
    const RequestSeconds& requests = RequestsOf(device);
    if (record.view) requesting_ += requests.view;
    if (record.stream == nullptr) return;
    const OpCost cost = record.primitive->Cost(record.inputs, record.output);
    flop_ += static_cast<double>(cost.flop);
    requesting_ += record.in_place ? peaks.enqueue_seconds : requests.result;
    to_wait_ = requests.wait;
    working_[device] += BoundOf(cost, peaks).seconds;
  }
  // For operations that were just enqueued; a further wait finds them done.
  void OnWait(const WaitRecord& record) noexcept override {
    if (record.full_queue > 0) return;
    requesting_ += to_wait_;
    to_wait_ = 0;
  }

  double flop() const { return flop_; }
  // 0 if there are no operations.
  double bound_seconds() const {
    double longest = requesting_;
    for (const auto& [device, seconds] : working_) {
      longest = std::max(longest, seconds);
    }
    return longest;
  }

 private:
  // The time of the requesting thread for one of many other calls: an operation
  // that makes its result; a view; and the additional time to wait for one.
  struct RequestSeconds {
    double result = 0, view = 0, wait = 0;
  };

  // Measured once in a process.
  static const RequestSeconds& RequestsOf(Device device) {
    static auto& all = *new std::map<Device, RequestSeconds>;
    const auto [found, first] = all.try_emplace(device);
    if (!first) return found->second;
    const Tensor x = Ones({1, 1}, device), y = Ones({1, 1}, device);
    // The best of several runs of many requests, the cheapest of their kinds.
    const auto least = [&](const auto& request) {
      constexpr int kRequests = 500;
      double best = std::numeric_limits<double>::infinity();
      for (int run = 0; run < 20; ++run) {
        const Timer timer;
        for (int i = 0; i < kRequests; ++i) request();
        Synchronize(device);
        best = std::min(best, timer.Seconds() / kRequests);
      }
      return best;
    };
    const double waited = least([&] {
      CopyTo(y, x);
      CurrentStream(device).WaitFor(x.storage()->written_by());
    });
    return found->second = {least([&] { Clone(y); }),
                            least([&] { Unsqueeze(y, 0); }),
                            waited - PeaksOf(device).enqueue_seconds};
  }

  double flop_ = 0;
  double requesting_ = 0;
  double to_wait_ = 0;
  std::map<Device, double> working_;
};

inline Device FirstDevice() { return Devices().front().device; }

// The message of a benchmark that cannot run here; compare.py recognises it by
// the first word. (SkipWithMessage came with Google Benchmark 1.8.)
inline void Skip(benchmark::State& state, const std::string& why) {
  state.SkipWithError(absl::StrCat("skipped: ", why).c_str());
}

// Does the work, whose operations the result has counted.
template <typename F>
CostCounter CountCost(const F& work) {
  CostCounter counter;
  const ScopedOpListener listen(&counter);
  const ScopedDeviceListener waits(&counter, DeviceListener::kWaits);
  work();
  Synchronize(FirstDevice());
  return counter;
}

// Measures `work`, which is `units` of the cell's units. It is called once
// before the clock starts: the caches fill, memory is taken from the system,
// and the operations are counted.
template <typename F>
void Measure(benchmark::State& state, std::int64_t units, const F& work) {
  const Device device = FirstDevice();
  const CostCounter counter = CountCost(work);
  for (auto _ : state) {
    work();
    Synchronize(device);
  }
  state.SetItemsProcessed(state.iterations() * units);
  const auto each = static_cast<double>(units);
  state.counters["flop"] = counter.flop() / each;
  state.counters["bound_ns"] = 1e9 * counter.bound_seconds() / each;
}

template <typename F>
void MeasureLoop(benchmark::State& state, int count, const F& body) {
  Measure(state, count, [&] {
    for (int i = 0; i < count; ++i) body();
  });
}

}  // namespace d2l

#endif  // D2L_TESTS_PEERS_MEASURE_H_
