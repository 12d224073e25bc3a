// What the files of cells share.
//
// Functions for one thread: that of the benchmarks.

#ifndef D2L_TESTS_PEERS_MEASURE_H_
#define D2L_TESTS_PEERS_MEASURE_H_

#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/device/device.h"
#include "common/device/device_table.h"

namespace d2l {

inline Device FirstDevice() { return Devices().front().device; }

// The message of a benchmark that cannot run here; compare.py recognises it by
// the first word. (SkipWithMessage came with Google Benchmark 1.8.)
inline void Skip(benchmark::State& state, const std::string& why) {
  state.SkipWithError(absl::StrCat("skipped: ", why).c_str());
}

// `work` is `units` units of what the cell counts. It is called once before
// the clock starts: the caches fill, and memory is taken from the system.
template <typename F>
void Measure(benchmark::State& state, std::int64_t units, const F& work) {
  const Device device = FirstDevice();
  work();
  Synchronize(device);
  for (auto _ : state) {
    work();
    Synchronize(device);
  }
  state.SetItemsProcessed(state.iterations() * units);
}

template <typename F>
void MeasureLoop(benchmark::State& state, int count, const F& body) {
  Measure(state, count, [&] {
    for (int i = 0; i < count; ++i) body();
  });
}

}  // namespace d2l

#endif  // D2L_TESTS_PEERS_MEASURE_H_
