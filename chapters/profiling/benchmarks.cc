// The programs of the lesson's cells as benchmarks, at the course's size.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "chapters/profiling/hardware.h"
#include "chapters/profiling/latencies/cores.h"
#include "chapters/profiling/latencies/pointer_chase.h"
#include "chapters/profiling/product_ladder.h"
#include "chapters/profiling/programs.h"
#include "common/d2l.h"
#include "common/lesson/cell/benchmark.h"
#include "common/lesson/cell/host_library.h"

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
          KeepValue(HostProducts(x, x, n, products));
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

// The programs of hardware.h; each call of `make` sets up one.
MakeHostWork Bursts(int burst) {
  return [burst] {
    std::vector<std::uint64_t> x(std::size_t{1} << 23);  // 64 MiB
    std::uint64_t word = 1;
    for (std::uint64_t& number : x) {
      word = word * 6364136223846793005 + 1442695040888963407;  // Knuth's
      number = word;
    }
    return
        [burst, x = std::move(x)] { KeepValue(SumBursts(x, burst, 1 << 12)); };
  };
}

MakeHostWork Chain(int chains) {
  return [chains] {
    return [chains, x = std::vector<float>(4096, 1)] {
      KeepValue(Product(x, chains));
    };
  };
}

MakeHostWork Scaled(int lanes) {
  return [lanes] {
    return [lanes, x = std::vector<float>(2048, 1),
            y = std::vector<float>(2048)]() mutable {
      AddScaled(lanes, 0.5f, x.data(), y.data(), x.size());
    };
  };
}

MakeHostWork LadderStep(std::size_t i) {
  return [i] {
    constexpr std::size_t n = 250;
    return [multiply = ProductSteps()[i].multiply,
            a = std::vector<float>(n * n, 0.5f),
            c = std::vector<float>(n * n)]() mutable {
      multiply(n, n, n, a.data(), a.data(), c.data());
    };
  };
}

MakeHostWork LargeOnes(bool branch) {
  return [branch] {
    std::vector<std::uint8_t> x(1 << 18);
    std::uint32_t word = 1;
    for (std::uint8_t& number : x) {
      word = word * 1664525 + 1013904223;
      number = static_cast<std::uint8_t>(word >> 24);
    }
    return [branch, x = std::move(x)] {
      KeepValue(branch ? SumOfLarge(x) : SumOfLargeUnbranched(x));
    };
  };
}

MakeHostWork Counting(int apart) {
  return [apart] {
    struct alignas(128) Line {
      std::atomic<std::int64_t> counters[32];
    };
    return [apart, line = std::make_shared<Line>(), cpus = AllowedCores()] {
      CountInTwo(line->counters, apart, 100000, cpus);
    };
  };
}

MakeHostWork Exchanges(Loopback::Protocol protocol) {
  return [protocol] {
    return [loopback = std::make_shared<Loopback>(protocol)] {
      loopback->Exchange(1 << 10, 1 << 10);
    };
  };
}

MakeHostWork Reads(int at_a_time) {
  return [at_a_time] {
    return [at_a_time, file = std::make_shared<TemporaryFile>(
                           MakeTemporaryFile(std::int64_t{64} << 20))] {
      const bool direct = file->direct.get() >= 0;
      ReadBlocks((direct ? file->direct : file->cached).get(), file->bytes, 64,
                 at_a_time);
    };
  };
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
    BenchmarkHost("BM_d2l_latencies_64MiB_Host", 1000,
                  [] {
                    return [chase = std::make_shared<PointerChase>(
                                std::int64_t{1} << 26, /*seed=*/1)] {
                      KeepValue(chase->Walk(1000));
                    };
                  }),
    BenchmarkHost("BM_d2l_hw_bandwidth_Alone_Host", 1 << 12, Bursts(1)),
    BenchmarkHost("BM_d2l_hw_bandwidth_Bursts_Host", 1 << 12, Bursts(1 << 12)),
    BenchmarkHost("BM_d2l_hw_chains_One_Host", 4096, Chain(1)),
    BenchmarkHost("BM_d2l_hw_chains_Eight_Host", 4096, Chain(8)),
    BenchmarkHost("BM_d2l_hw_vectors_One_Host", 2048, Scaled(1)),
    BenchmarkHost("BM_d2l_hw_vectors_Widest_Host", 2048, Scaled(16)),
    BenchmarkHost("BM_d2l_hw_branches_Branch_Host", 1 << 18, LargeOnes(true)),
    BenchmarkHost("BM_d2l_hw_branches_None_Host", 1 << 18, LargeOnes(false)),
    BenchmarkHost("BM_d2l_hw_cache_starvation_Sums_Host", 1 << 22,
                  [] {
                    return [x = std::vector<std::vector<float>>(
                                1, std::vector<float>(1 << 22, 1))] {
                      SumInThreads(x, 0, 1 << 22, 1, 1);
                    };
                  }),
    BenchmarkHost("BM_d2l_hw_false_sharing_OneLine_Host", 200000, Counting(1)),
    BenchmarkHost("BM_d2l_hw_false_sharing_TwoLines_Host", 200000,
                  Counting(16)),
    BenchmarkHost("BM_d2l_product_ladder_ThreeLoops_Host", 2 * 250 * 250 * 250,
                  LadderStep(0)),
    BenchmarkHost("BM_d2l_product_ladder_Gemm_Host", 2 * 250 * 250 * 250,
                  LadderStep(4)),
    BenchmarkHost("BM_d2l_hw_packets_Tcp_Host", 1,
                  Exchanges(Loopback::Protocol::kTcp)),
    BenchmarkHost("BM_d2l_hw_packets_Udp_Host", 1,
                  Exchanges(Loopback::Protocol::kUdp)),
    BenchmarkHost("BM_d2l_hw_storage_One_Host", 64, Reads(1)),
    BenchmarkHost("BM_d2l_hw_storage_Eight_Host", 64, Reads(8)),
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
