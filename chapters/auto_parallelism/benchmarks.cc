// The programs of the lesson's cells as benchmarks, at the course's size.
// Compare the rate of a pair of devices with twice the rate of one:
// BM_000_In7_... with BM_000_In6_....

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "chapters/auto_parallelism/programs.h"
#include "common/d2l.h"
#include "common/lesson/cell/benchmark.h"

namespace d2l::auto_parallelism {
namespace {

constexpr int kSmall = 100;
constexpr int kSmallProducts = 20000;
constexpr int kLarge = 1000;
constexpr int kLargeProducts = 10;

// The device's first `count` streams, with room for all operations here. They
// are made once: streams live as long as the process, and a benchmark is called
// several times.
std::vector<Stream*> Streams(Device device, std::size_t count) {
  static auto& streams = *new std::map<Device, std::vector<Stream*>>;
  std::vector<Stream*>& made = streams[device];
  while (made.size() < count) made.push_back(&NewStream(device, 1 << 16));
  return {made.begin(), made.begin() + count};
}

double Flop(double n, int products) { return products * 2 * n * n * n; }

// Products of n x n matrices.
bool OneDevice(const std::string& name, int n, int products) {
  return BenchmarkWork(
      name, products,
      [=](Device device) {
        return [=, x = Rand({n, n}, device)] { Run(x, products); };
      },
      Flop(n, products));
}

// work(x1, x2, products) enqueues `products` products on each device.
template <typename Work>
bool TwoDevices(const std::string& name, int n, int products, Work work) {
  return BenchmarkPairWork(
      name, 2 * products,
      [=](Device first, Device second) {
        return [=, x1 = Rand({n, n}, first), x2 = Rand({n, n}, second)] {
          work(x1, x2, products);
        };
      },
      Flop(n, 2 * products));
}

std::function<void()> Keep(Device device) {
  return [x = Rand({kLarge, kLarge}, device),
          y = std::vector<Tensor>()]() mutable {
    RunAndKeep(x, kLargeProducts, &y);
  };
}

enum class Copies { kNone, kOnly, kSameStream, kOwnStream };

// 20 products (1000, 32) @ (32, 1000), and their copies to the host.
bool Overlap(const std::string& name, Copies copies, bool to_pinned = true) {
  constexpr int kSteps = 20;
  return BenchmarkWork(
      name, kSteps, [=](Device device) -> std::function<void()> {
        const auto p =
            std::make_shared<ThinProducts>(device, kSteps, kLarge, 32);
        float* const host = to_pinned ? p->pinned : p->pageable;
        Stream& stream = copies == Copies::kOwnStream ? *Streams(device, 1)[0]
                                                      : CurrentStream(device);
        const auto both = [=, &stream] { MultiplyAndCopy(*p, stream, host); };
        both();
        if (copies != Copies::kNone && copies != Copies::kOnly) return both;
        return [=, &stream] {
          for (int i = 0; i < kSteps; ++i) {
            if (copies == Copies::kNone) p->y[i] = MatMul(p->a[i], p->b);
            if (copies == Copies::kOnly) CopyToHost(*p, i, stream, host);
          }
        };
      });
}

std::function<void()> GradientOn(Device first, Device second) {
  const Mlp mlp = {Randn({4096, 784}, first), Randn({4096, 10}, first),
                   Randn({784, 512}, first), Randn({512, 10}, first)};
  return [=] { WaitToRead(Gradient(mlp, {first, second})); };
}

bool OnStreams(const std::string& name, int n, int products, int streams) {
  return BenchmarkWork(
      name, products,
      [=](Device device) {
        const Tensor x = Rand({n, n}, device);
        Synchronize(device);  // these streams do not wait for the default one
        return [=] { RunOn(Streams(device, streams), x, products); };
      },
      Flop(n, products));
}

[[maybe_unused]] const bool registered[] = {
    BenchmarkCalls(
        "BM_000_In3_Products_Enqueue", 1000,
        [](Device device) {
          return [x = Rand({kSmall, kSmall}, device)] { Run(x, 1000); };
        },
        /*iterations=*/50),
    OneDevice("BM_000_In3_Products_Synchronized", kSmall, 1000),
    OneDevice("BM_000_In6_MatMul", kSmall, kSmallProducts),
    TwoDevices("BM_000_In7_MatMul_CourseOrder", kSmall, kSmallProducts,
               RunInOrder),
    TwoDevices("BM_000_In7_MatMul_InTurn", kSmall, kSmallProducts, RunInTurn),
    BenchmarkWork("BM_d2l_mm_4000_OneDevice", kLargeProducts, Keep,
                  Flop(kLarge, kLargeProducts)),
    BenchmarkPairWork(
        "BM_d2l_mm_4000_TwoDevices", 2 * kLargeProducts,
        [](Device first, Device second) {
          return [run1 = Keep(first), run2 = Keep(second)] {
            run1();
            run2();
          };
        },
        Flop(kLarge, 2 * kLargeProducts)),
    Overlap("BM_d2l_overlap_Products", Copies::kNone),
    Overlap("BM_d2l_overlap_Copies", Copies::kOnly),
    Overlap("BM_d2l_overlap_OneStream", Copies::kSameStream),
    Overlap("BM_d2l_overlap_TwoStreams", Copies::kOwnStream),
    Overlap("BM_d2l_overlap_TwoStreamsPageable", Copies::kOwnStream,
            /*to_pinned=*/false),
    BenchmarkWork("BM_002_two_device_graph_OneDevice", 1,
                  [](Device device) { return GradientOn(device, device); }),
    BenchmarkPairWork("BM_002_two_device_graph_TwoDevices", 1, GradientOn),
    OnStreams("BM_d2l_streams_SmallOneStream", 64, 1000, 1),
    OnStreams("BM_d2l_streams_SmallFour", 64, 1000, 4),
    OnStreams("BM_d2l_streams_LargeOneStream", kLarge, 8, 1),
    OnStreams("BM_d2l_streams_LargeFour", kLarge, 8, 4),
    OneDevice("BM_d2l_size_sweep_8_OneDevice", 8, 4000),
    TwoDevices("BM_d2l_size_sweep_8_TwoDevices", 8, 2000, RunInTurn),
    OneDevice("BM_d2l_size_sweep_64_OneDevice", 64, 760),
    TwoDevices("BM_d2l_size_sweep_64_TwoDevices", 64, 380, RunInTurn),
    OneDevice("BM_d2l_size_sweep_512_OneDevice", 512, 4),
    TwoDevices("BM_d2l_size_sweep_512_TwoDevices", 512, 2, RunInTurn),
};

}  // namespace
}  // namespace d2l::auto_parallelism
