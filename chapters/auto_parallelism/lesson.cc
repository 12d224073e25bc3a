// Automatic parallelism: independent operations run at the same time.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "chapters/auto_parallelism/two_devices.h"
#include "common/d2l.h"
#include "common/lesson/cell/benchmark.h"
#include "common/lesson/cell/cell.h"
#include "common/lesson/cell/host_library.h"
#include "common/lesson/cell/trace_program.h"

namespace d2l::auto_parallelism {
namespace {

void CheckSquares(Cell& cell, const Tensor& x1, const Tensor& x2,
                  const std::pair<Tensor, Tensor>& y) {
  CheckSquare(cell, "x1 @ x1", x1, y.first);
  CheckSquare(cell, "x2 @ x2", x2, y.second);
}

// %% 000/In2
void In2(Cell& cell) {
  for (const DeviceInfo& info : Devices()) {
    std::cout << "  " << info.Describe() << "\n";
  }
  std::cout << Say("  GPU1 is %s, GPU2 is %s.\n", First().ToString(),
                   Second().ToString());
  const int count = static_cast<int>(Devices().size());
  cell.Claim("There are two devices: {}.",
             Counted(count >= 2, "needs 2", std::to_string(count)),
             OneDeviceOr(""));
}
// %%
D2L_CELL("000/In2", In2);

// %% 000/In3
// Prints how long it lived.
class Benchmark {
 public:
  explicit Benchmark(std::string prefix) : prefix_(std::move(prefix)) {}
  ~Benchmark() {
    std::cout << Say("%s time: %.4f sec\n", Translated(prefix_),
                     timer_.Seconds());
  }

 private:
  const std::string prefix_;
  const Timer timer_;
};
// %% 000/In3, 000/In6, 000/In7, d2l/size-sweep
Tensor Run(const Tensor& x, int products) {
  Tensor y;
  for (int i = 0; i < products; ++i) y = MatMul(x, x);
  return y;
}
// %% 000/In3
void TimeProducts(const Tensor& x) {
  Synchronize(x.device());
  {
    const Benchmark benchmark("1000 products, not waited for,");
    Run(x, 1000);
  }
  Synchronize(x.device());
  {
    const Benchmark benchmark("1000 products, waited for,");
    Run(x, 1000);
    Synchronize(x.device());
  }
}
// %% 000/In3, measured
void In3(Cell& cell) {
  const Tensor x = Rand({100, 100}, First());
  Tensor y = MatMul(x, x);  // warm-up: the first call starts threads
  TimeProducts(x);
  // Time() takes both, many times: enqueue is the first, completion the second.
  cell.Time("1000 products", First(), [&] { y = Run(x, 1000); });
  CheckSquare(cell, "x @ x", x, y);
}
// %%
D2L_CELL("000/In3", In3);

// %% 000/In6
// After the wait for `waited_for`: how many operations of `working` are still
// queued, whose time a clock would not show.
std::int64_t LeftAfterWaitingFor(Device waited_for, Device working) {
  Synchronize(waited_for);
  return CurrentStream(working).QueuedOperations();
}
// %%

struct Products {
  int count;
  Tensor x1, x2;
};
Products SmallProducts(const Cell& cell, int count) {
  const int n = cell.BySize(64, 100, 1000);
  return {count, Rand({n, n}, First()), Rand({n, n}, Second())};
}

// %% 000/In6, measured
void In6(Cell& cell) {
  const Products p = SmallProducts(cell, cell.BySize(100, 20000, 20000));
  Tensor y1, y2;
  const auto run1 = [&] { y1 = Run(p.x1, p.count); };
  const auto run2 = [&] { y2 = Run(p.x2, p.count); };
  std::int64_t left = 0;  // of GPU2's products, when the clock is read
  const auto wait_for_gpu1 = [&] {
    left = LeftAfterWaitingFor(First(), Second());
  };
  const Timings t = cell.TimeInterleaved(
      {{"GPU1", {First()}, run1},
       {"GPU2", {Second()}, run2},
       {"GPU2, waiting for GPU1", {Second()}, run2, wait_for_gpu1}});
  cell.PrintTimes(t);
  CheckSquares(cell, p.x1, p.x2, {y1, y2});
  std::cout << Say(
      "  After the wait for GPU1, %d of GPU2's %d products were still in the "
      "queue.\n",
      left, p.count);
  cell.Claim(
      "GPU2 takes longer than the clock shows after a wait for GPU1: {}.",
      Faster(t["GPU2, waiting for GPU1"], t["GPU2"], kGain),
      OneDeviceOr(Say("When the clock was read, %d of GPU2's %d products were "
                      "still in the queue.",
                      left, p.count)));
}
// %%
D2L_CELL("000/In6", In6);

// %% 000/In7
// The notebook's order: GPU2 has no work until the calls for GPU1 return, and
// these wait for room in its queue.
double RunInOrder(const Tensor& x1, const Tensor& x2, int products) {
  const Timer timer;
  Run(x1, products);
  const double calls = timer.Seconds();
  Run(x2, products);
  return calls;
}
// %% 000/In7, d2l/size-sweep
std::pair<Tensor, Tensor> RunInTurn(const Tensor& x1, const Tensor& x2,
                                    int products) {
  Tensor y1, y2;
  for (int i = 0; i < products; ++i) {
    y1 = MatMul(x1, x1);
    y2 = MatMul(x2, x2);
  }
  return {y1, y2};
}
// %%

// The time of a call that finds room in the queue.
double RequestSeconds(Cell& cell, const Tensor& x) {
  constexpr int kRequests = 250;  // for which a GPU's queue has room
  Stream& stream = NewStream(x.device(), StreamOptions::kUnbounded);
  Synchronize(x.device());  // this stream does not wait for the one of x
  const auto enqueue = [&] {
    const StreamGuard guard(stream);
    Run(x, kRequests);
  };
  const Timing t = cell.Time("250 requests", x.device(), enqueue);
  return t.enqueue.value.median / kRequests;
}

// At a pace, and twice as many as a queue of a virtual device holds; on GPUs
// the notebook's.
Products TwoQueues(Cell& cell) {
  cell.PaceDevices();
  if (First().type() == DeviceType::kCuda) return SmallProducts(cell, 20000);
  const int n = cell.BySize(48, 100, 100);
  return {8192, Rand({n, n}, First()), Rand({n, n}, Second())};
}

void PrintPredictionOf(const Products& p, const Timings& t) {
  Run(p.x1, p.count);
  PrintPrediction(t, p.count, CurrentStream(First()).QueuedOperations());
  Synchronize(First());
}

// %% 000/In7, measured
// The functions that print and count stand above; ClaimHeldUp: two_devices.cc
void In7(Cell& cell) {
  const Products p = TwoQueues(cell);
  const double requests = p.count * RequestSeconds(cell, p.x1);
  std::vector<double> calls;  // how long those for GPU1 took
  std::pair<Tensor, Tensor> y;
  const auto one_by_one = [&] {
    Run(p.x1, p.count);
    Synchronize(First());
    Run(p.x2, p.count);
  };
  const auto notebook = [&] {
    calls.push_back(RunInOrder(p.x1, p.x2, p.count));
  };
  const auto in_turn = [&] { y = RunInTurn(p.x1, p.x2, p.count); };
  const Timings t =
      cell.TimeInterleaved({{"GPU1, then GPU2", Both(), one_by_one},
                            {"both, the notebook's order", Both(), notebook},
                            {"both, enqueued in turn", Both(), in_turn}});
  cell.PrintTimes(t);
  CheckSquares(cell, p.x1, p.x2, y);
  const Judgement gain = Faster(t[2], t[0], kGain);
  cell.Claim("Two devices are faster than one after the other: {}.", gain,
             WhyNoGain(2 * requests, t[2], gain));
  PrintPredictionOf(p, t);
  ClaimHeldUp(cell, t, gain, calls, requests);
  cell.Show(
      DrawTimelines("both orders", {{"notebook", ProfileProgram(notebook)},
                                    {"in turn", ProfileProgram(in_turn)}}));
}
// %%
D2L_CELL("000/In7", In7);

// %% d2l/mm-4000
void RunAndKeep(const Tensor& x, int products, std::vector<Tensor>* y) {
  y->clear();  // so that their memory can be used again
  for (int i = 0; i < products; ++i) y->push_back(MatMul(x, x));
}
// %% d2l/mm-4000, measured
void Mm4000(Cell& cell) {
  cell.PaceDevices();
  const int n = cell.BySize(128, 1000, 4000);
  const int products = cell.BySize(10, 4, 50);
  const Tensor x1 = Rand({n, n}, First());
  const Tensor x2 = Rand({n, n}, Second());
  std::vector<Tensor> y1, y2;
  const auto run1 = [&] { RunAndKeep(x1, products, &y1); };
  const auto run2 = [&] { RunAndKeep(x2, products, &y2); };
  const auto run_both = [&] {
    run1();
    run2();
  };
  // Each is run once before it counts, and waits for its devices.
  const Timings t = cell.TimeInterleaved({{"GPU1", {First()}, run1},
                                          {"GPU2", {Second()}, run2},
                                          {"GPU1 & GPU2", Both(), run_both}});
  cell.PrintTimes(t);
  CheckSquare(cell, "the first x1 @ x1", x1, y1.front());
  CheckSquare(cell, "the last x1 @ x1", x1, y1.back());
  CheckSquare(cell, "the last x2 @ x2", x2, y2.back());

  const Timing& both = t["GPU1 & GPU2"];
  const Figure sum = PerRepeat("GPU1 + GPU2", "s", t["GPU1"].completion,
                               t["GPU2"].completion, std::plus<double>());
  const Judgement gain = Less(both.completion, sum, kGain);
  cell.Claim("Both devices together are faster than one after the other: {}.",
             gain, WhyNoGain(both.enqueue.value.median, both, gain));
}
// %%
D2L_CELL("d2l/mm-4000", Mm4000);

void PrintSureFrom(const std::vector<SweepPoint>& sweep) {
  std::cout << Wrap(Say("Two devices are reliably faster from this size on: "
                        "%s.",
                        SureFrom("n", sweep, kGain).number),
                    "  ");
}

// %% d2l/size-sweep, measured
// Enough products to keep a core busy for some 10 ms (1 ms with small sizes),
// but no more than a queue has room for.
int ProductsOf(const Cell& cell, int n) {
  const double most = cell.BySize(200, 2000, 2000);
  return static_cast<int>(std::clamp(5e5 * most / n / n / n, 2.0, most));
}

void SizeSweep(Cell& cell) {
  const std::vector<int> sizes = cell.BySize<std::vector<int>>(
      {4, 16, 64, 256}, {2, 4, 8, 16, 32, 64, 128, 256, 512},
      {16, 64, 256, 1024, 4096});
  std::vector<SweepPoint> sweep;
  Judgement largest;
  std::string why;
  for (const int n : sizes) {
    cell.At("n", n);
    // A pace stretches computing, and the sizes before show when it takes
    // longer than the calls.
    if (n == sizes.back()) cell.PaceDevices();
    const Tensor x1 = Rand({n, n}, First());
    const Tensor x2 = Rand({n, n}, Second());
    const int k = ProductsOf(cell, n);
    std::pair<Tensor, Tensor> y;
    const auto on_one = [&] { Run(x1, 2 * k); };
    const auto on_two = [&] { y = RunInTurn(x1, x2, k); };
    const Timings t = cell.TimeInterleaved(
        {{"one", {First()}, on_one}, {"two", Both(), on_two}});
    CheckSquares(cell, x1, x2, y);
    const Timing &one = t[0], &two = t[1];
    sweep.push_back({1.0 * n, Speedup(cell, two, one)});
    std::cout << Say("  n = %-4d  two devices take %8s a product: %s as fast\n",
                     n, FormatDuration(two.completion.value.median / (2 * k)),
                     FormatFactor(sweep.back().ratio.value.median));
    largest = Above(sweep.back().ratio, kGain);
    why = WhyNoGain(two.enqueue.value.median, two, largest);
  }
  PrintSureFrom(sweep);
  cell.Claim(Worded("With n = %d, two devices are faster: {}.", sizes.back()),
             largest, why);
}
// %%
D2L_CELL("d2l/size-sweep", SizeSweep);

// Benchmarks, at the course's size.

constexpr int kSmall = 100;
constexpr int kSmallProducts = 20000;
constexpr int kLarge = 1000;
constexpr int kLargeProducts = 10;

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

[[maybe_unused]] const bool benchmarks[] = {
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
    OneDevice("BM_d2l_size_sweep_8_OneDevice", 8, 4000),
    TwoDevices("BM_d2l_size_sweep_8_TwoDevices", 8, 2000, RunInTurn),
    OneDevice("BM_d2l_size_sweep_64_OneDevice", 64, 760),
    TwoDevices("BM_d2l_size_sweep_64_TwoDevices", 64, 380, RunInTurn),
    OneDevice("BM_d2l_size_sweep_512_OneDevice", 512, 4),
    TwoDevices("BM_d2l_size_sweep_512_TwoDevices", 512, 2, RunInTurn),
};

}  // namespace
}  // namespace d2l::auto_parallelism
