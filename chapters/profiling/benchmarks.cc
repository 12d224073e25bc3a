// The programs of the lesson's cells as benchmarks, at the course's size.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "chapters/profiling/programs.h"
#include "common/d2l.h"
#include "common/lesson/cell/host_library.h"
#include "common/lesson/testing/benchmark_devices.h"

namespace d2l::profiling {
namespace {

constexpr int kSmallProducts = 10000;
constexpr int kLarge = 1000;
constexpr int kRows = 1000;
constexpr int kTimes = 20;

double Flop(double n, int products) { return 2 * n * n * n * products; }

bool BenchmarkProducts(const std::string& name, int n, int products) {
  return BenchmarkWork(
      name, products,
      [=](Device device) {
        return [=, x = Rand({n, n}, device)] { Products(x, products); };
      },
      Flop(n, products));
}

bool BenchmarkOnTheHost(const std::string& name, int n, int products) {
  return BenchmarkHost(
      name, products,
      [=] {
        return [=, x = HostRandn(std::int64_t{n} * n)] {
          benchmark::DoNotOptimize(HostProducts(x, x, n, products));
        };
      },
      Flop(n, products));
}

// `work` on a random tensor, with a profiler if `profiled`.
template <typename Work>
bool BenchmarkProfiled(const std::string& name, int operations, bool profiled,
                       Work work) {
  return BenchmarkWork(name, operations,
                       [=](Device device) -> std::function<void()> {
                         const Tensor x = Rand({3, 3}, device);
                         if (!profiled) return [=] { work(x); };
                         return [=] {
                           Profiler profiler;
                           Profiled(profiler, [&] { work(x); });
                         };
                       });
}

bool BenchmarkHundreds(const std::string& name,
                       const std::function<void(Hundreds& h)>& work) {
  return BenchmarkWork(name, 20000, [work](Device device) {
    return [work, h = std::make_shared<Hundreds>(200, device)] { work(*h); };
  });
}

std::vector<Tensor> ListOfRows(const Tensor& all) {
  std::vector<Tensor> list;
  for (int i = 0; i < kRows; ++i) list.push_back(Clone(all[i]));
  return list;
}

[[maybe_unused]] const bool registered[] = {
    BenchmarkOnTheHost("BM_003_c5_SmallProducts_Host", 3, kSmallProducts),
    BenchmarkOnTheHost("BM_003_c12_LargeProducts_Host", kLarge, 10),
    BenchmarkProducts("BM_003_c1_Products_Alone", 300, 10),
    BenchmarkProfiled("BM_003_c2_Operations_Unprofiled", 300, false,
                      HundredTimes),
    BenchmarkProfiled("BM_003_c2_Operations_Profiled", 300, true, HundredTimes),
    BenchmarkProducts("BM_003_c9_SmallProducts", 3, kSmallProducts),
    BenchmarkProfiled("BM_003_c9_SmallProducts_Profiled", kSmallProducts, true,
                      [](const Tensor& x) {
                        Products(x, kSmallProducts);
                        Synchronize(x.device());
                      }),
    BenchmarkProducts("BM_003_c16_LargeProducts", kLarge, 10),
    BenchmarkWork("BM_003_c18_RandMultiply", kTimes* kRows,
                  [](Device device) {
                    return
                        [device] { RandAndMultiply(kTimes * kRows, device); };
                  }),
    BenchmarkWork("BM_003_c20_FilledRowByRow", kTimes* kRows,
                  [](Device device) {
                    return [vec = Zeros({kRows, 10, 10}, device)]() mutable {
                      FillOnTheDevice(kTimes, vec);
                    };
                  }),
    BenchmarkHundreds("BM_003_c21_Hundreds_Stacked",
                      [](Hundreds& h) { Stacked(h, /*to_host=*/false); }),
    BenchmarkHundreds("BM_003_c21_Hundreds_Loop",
                      [](Hundreds& h) { DoubleLoop(h, /*to_host=*/false); }),
    // The request of an operation that has next to nothing to do, and its end.
    BenchmarkWork(
        "BM_d2l_latencies_OneElement", 1,
        [](Device device) { return [x = Ones({1}, device)] { x + 1; }; }),
    BenchmarkProducts("BM_d2l_roofline_Product", kLarge, 1),
    BenchmarkWork(
        "BM_d2l_roofline_Addition", 1,
        [](Device device) {
          return [x = Rand({kLarge, kLarge}, device)] { x + x; };
        },
        /*flop=*/kLarge* kLarge),
    BenchmarkWork(
        "BM_003_summary_Sum_Tensor", kRows,
        [](Device device) {
          return [all = Rand({kRows, 100}, device)] { SumOfRows(all); };
        }),
    BenchmarkWork("BM_003_summary_Sum_List", kRows,
                  [](Device device) {
                    return [list = ListOfRows(Rand({kRows, 100}, device))] {
                      SumOfRows(list);
                    };
                  }),
};

}  // namespace
}  // namespace d2l::profiling
