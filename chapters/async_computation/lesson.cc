// Asynchronous computation: the calls return before the work is done.

#include <cstdint>
#include <functional>
#include <iostream>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/d2l.h"
#include "common/device/stream_stall.h"
#include "common/lesson/cell/benchmark.h"
#include "common/lesson/cell/cell.h"
#include "common/lesson/cell/host_library.h"
#include "common/lesson/cell/trace_program.h"
#include "common/lesson/text/source.h"

namespace d2l::async_computation {
namespace {

// %% 004/In2
// Ten random matrices, each multiplied by itself. HostRandn and HostMatMul
// return when they are done: common/lesson/cell/host_library.h
void TenProductsOnTheHost(int n) {
  for (int i = 0; i < 10; ++i) {
    const std::vector<float> a = HostRandn(n * n);
    const std::vector<float> b = HostMatMul(a, a, n);
  }
}
// %% 004/In2, 004/In4
// Ten random matrices, each multiplied by itself. Each call enqueues its
// operation, and returns.
std::pair<Tensor, Tensor> TenProducts(int n, Device device) {
  Tensor a, b;
  for (int i = 0; i < 10; ++i) {
    a = Randn({n, n}, device);
    b = MatMul(a, a);
  }
  return {a, b};
}
// %%

// Checks that b is the product of a with itself.
void CheckSquare(Cell& cell, const std::string& what, const Tensor& a,
                 const Tensor& b, double tolerance) {
  const std::vector<float> values = ToVector<float>(a);
  const int n = static_cast<int>(a.size(0));
  cell.CheckClose(what, ToVector<float>(b), HostMatMul(values, values, n),
                  tolerance);
}

// Does the work, and waits until it is done.
std::function<void()> Done(Device device, const std::function<void()>& work) {
  return [device, work] {
    work();
    Synchronize(device);
  };
}

// Why calls may not return before the work is done.
std::string WhyLate(const Timing& timing) {
  if (LaunchBlocking()) return Say("Launch blocking is on: every call waits.");
  const double percent =
      100 * timing.enqueue.value.median / timing.completion.value.median;
  if (percent < 50) return Say("Enqueueing took %.0f %% of the time.", percent);
  return Say(
      "Enqueueing took %.0f %% of the time: the device works nearly as fast as "
      "the front end enqueues, or its queue was full.",
      percent);
}

// %% 004/In2, measured
void In2(Cell& cell) {
  const int n = cell.BySize(100, 1000, 2000);
  const Device device = TryGpu();
  std::pair<Tensor, Tensor> last;
  // In turn: host, tensors, host, tensors, and so on.
  const Timings t = cell.TimeInterleaved(
      {{"host library", {}, [&] { TenProductsOnTheHost(n); }},
       {"tensors", {device}, [&] { last = TenProducts(n, device); }}});
  cell.PrintTimes(t);
  CheckSquare(cell, "a @ a", last.first, last.second, 1e-3);

  const Figure& host = t["host library"].completion;
  const Timing& tensors = t["tensors"];
  const Figure gap = cell.Report(
      RatioPerRepeat("host / tensors, enqueued", host, tensors.enqueue));
  const Figure hardware = cell.Report(
      RatioPerRepeat("host / tensors, done", host, tensors.completion));
  std::cout << Say("  The tensors seem %s as fast as the host; they are %s.\n",
                   FormatFactor(gap.value.median),
                   FormatFactor(hardware.value.median));
  cell.Claim("The clock showed a larger speed-up than the real one: {}.",
             Less(hardware, gap, kClearly), WhyLate(tensors));
}
// %%
D2L_CELL("004/In2", In2);

// %% 004/In4
// Waits for the products, too.
std::pair<Tensor, Tensor> TenProductsDone(int n, Device device) {
  auto last = TenProducts(n, device);
  Synchronize(device);
  return last;
}
// %% 004/In4, measured
void In4(Cell& cell) {
  const int n = cell.BySize(100, 1000, 2000);
  const Device device = TryGpu();
  std::pair<Tensor, Tensor> last;
  // The clock is read when these return, and again when the device is done.
  const Timings t = cell.TimeInterleaved(
      {{"not waited for", {device}, [&] { last = TenProducts(n, device); }},
       {"synchronized", {device}, [&] { last = TenProductsDone(n, device); }}});
  const Timing& enqueued = t["not waited for"];
  const Timing& done = t["synchronized"];
  for (const Timing& timing : t) {
    std::cout << Say("  %s  the clock shows %s\n",
                     Padded(timing.enqueue.label, 14),
                     FormatMedian(timing.enqueue.value, "s"));
  }
  CheckSquare(cell, "a @ a", last.first, last.second, 1e-3);

  const Judgement left = Less(enqueued.enqueue, enqueued.completion, kClearly);
  cell.Claim("With Synchronize the clock shows more than without it: {}.",
             Less(enqueued.enqueue, done.enqueue, kClearly), WhyLate(enqueued));
  // The control: without Synchronize there is something left to wait for.
  cell.Claim("With Synchronize the clock shows the true cost: {}.",
             Both(AboutEqual(done.enqueue, done.completion, kClearly), left,
                  "without Synchronize"),
             WhyLate(enqueued));
}
// %%
D2L_CELL("004/In4", In4);

// %% 004/In5
// The third statement needs the other two, which need nothing.
Tensor ThreeStatements(Device device) {
  const Tensor x = Ones({1, 2}, device);
  const Tensor y = Ones({1, 2}, device);
  return x * y + 2;
}

// A network with two branches.
void TwoBranches(const Tensor& a, const Tensor& w) {
  const Tensor left = Relu(MatMul(a, w) + 1);
  const Tensor right = Tanh(MatMul(w, a) - 1);
  Item(Mean(MatMul(left * right, w)));
}

// Two series of products. c may run beside b if its stream is another, and if
// it need not wait for b.
void BThenC(const Tensor& a, Stream& stream_of_c, bool depends) {
  for (int i = 0; i < 150; ++i) MatMul(a, a);  // b
  if (depends) stream_of_c.Wait(CurrentStream(a.device()).Record());
  const StreamGuard guard(stream_of_c);
  for (int i = 0; i < 150; ++i) MatMul(a, a);  // c
}
// %%

// Shows the graphs of both programs, and when the front end enqueued the second
// one and the device worked. Returns the first one's result.
Tensor ShowPrograms(Cell& cell, const Tensor& a) {
  const Tensor w = Rand(a.shape(), a.device());
  Tensor z;
  const TracedProgram statements =
      TraceProgram([&] { z = ThreeStatements(a.device()); });
  std::cout << z << "\n\n";
  cell.CheckClose("z", ToVector<float>(z), {3, 3}, 0);
  cell.Check(statements.graph.depth() == 3, "three levels");
  cell.Show(DrawGraph(statements.graph, "z = x * y + 2", cell.verbose()));
  const TracedProgram network = TraceProgram([&] { TwoBranches(a, w); });
  cell.Check(network.graph.depth() == 7, "seven levels");
  cell.ShowIfVerbose(DrawGraph(network.graph, "two branches"));
  cell.ShowIfVerbose(
      Timeline(network.profile).Draw("timeline of two branches"));
  return z;
}

// Why independent work may not run in parallel on one device.
std::string WhyNotBeside(const Timing& one, const Timing& beside) {
  if (LaunchBlocking()) return Say("Launch blocking is on: every call waits.");
  const std::string times =
      Say("Independent series take %s on one stream and %s on two; enqueueing "
          "them takes %s.",
          FormatMedian(one.completion.value, "s"),
          FormatMedian(beside.completion.value, "s"),
          FormatMedian(beside.enqueue.value, "s"));
  if (beside.enqueue.value.median < 0.8 * beside.completion.value.median) {
    return times;
  }
  return Lead(times) +
         Say("The front end enqueues no faster than the device works.");
}

// %% 004/In5, measured
// ShowPrograms, which draws their graphs, stands above this cell.
void In5(Cell& cell) {
  const int n = cell.BySize(200, 1000, 2000);
  const Device device = TryGpu();
  const Tensor a = Rand({n, n}, device), small = Rand({64, 64}, device);
  Stream &one = CurrentStream(device), &two = NewStream(device);
  Tensor z = ShowPrograms(cell, a);
  const auto statements = [&] { z = ThreeStatements(device); };
  const auto behind_product = [&] {
    MatMul(a, a);
    statements();
  };
  const auto print = [&] { ToString(z); };
  const Timings t = cell.TimeInterleaved(
      {{"print behind a @ a", {device}, behind_product, print},
       {"print", {device}, Done(device, statements), print},
       {"b, c on one stream", {device}, [&] { BThenC(small, one, false); }},
       {"c beside b", {device}, [&] { BThenC(small, two, false); }},
       {"c depends on b", {device}, [&] { BThenC(small, two, true); }}});
  const Timing& behind = t["print behind a @ a"];
  cell.Claim(
      "Behind a queued product, statements return before work is done: {}.",
      Less(behind.enqueue, behind.completion, kClearly), WhyLate(behind));
  cell.Claim("Printing takes longer behind a queued product: {}.",
             Less(t["print"].wait, behind.wait, 2), WhyLate(behind));
  const std::string one_core = WhyNoOverlap(device);
  if (!one_core.empty()) return cell.NotAsked(1, one_core);
  cell.Claim("Two series take longer if the second depends on the first: {}.",
             Given(Faster(t["c beside b"], t["b, c on one stream"], kClearly),
                   Faster(t["c beside b"], t["c depends on b"], kClearly),
                   "independent series gain"),
             WhyNotBeside(t["b, c on one stream"], t["c beside b"]));
}
// %%
D2L_CELL("004/In5", In5);

// %% 000/launch-blocking
// Row 17 of 10: the device finds out, when the call has long returned.
void IndexOutOfRange(Device device) {
  const Tensor x = Arange(10, device);
  const Tensor index = FromVector<std::int64_t>({3, 17}, {2}, device);
  const Tensor y = x * 2;
  const Tensor rows = IndexSelect(y, 0, index);
  const Tensor z = y + 1;
  Synchronize(device);
}

// With launch blocking every call waits until its operation is done.
Tensor Additions(const Tensor& a, int n, bool launch_blocking) {
  const LaunchBlockingGuard guard(launch_blocking);
  Tensor b;
  for (int i = 1; i <= n; ++i) b = a + i;
  return b;
}
// %%

// True if this line of a program contains the text.
bool LineHolds(const SourceLocation& line, const std::string& text) {
  std::istringstream lines(EmbeddedFile(line.file()));
  std::string at;
  for (int i = 0; i < line.line(); ++i) std::getline(lines, at);
  return at.find(text) != std::string::npos;
}

// Judges which of the two waits for each step. left: how many of the n steps
// are in the queue when Synchronize is called.
void JudgeSteps(Cell& cell, const Timings& t, std::int64_t left, int n) {
  const Timing& blocking = t["launch blocking"];
  const Timing& at_end = t["Synchronize at the end"];
  const Judgement early = Less(at_end.enqueue, at_end.completion, kClearly);
  // The control: without launch blocking something is left to do.
  cell.Claim("With launch blocking the calls take the whole time: {}.",
             Both(AboutEqual(blocking.enqueue, blocking.completion, kClearly),
                  early, "without launch blocking"),
             WhyLate(at_end));
  cell.Claim(
      "With one Synchronize at the end the calls take the whole time: {}.",
      AboutEqual(at_end.enqueue, at_end.completion, kClearly),
      left == 0
          ? Say("When Synchronize is called, no addition is left in the queue.")
          : Say("When Synchronize is called, %d of %d additions are in the "
                "queue: it waits once, for all of them.",
                left, n));
}

// %% 000/launch-blocking, measured
// LineHolds and JudgeSteps stand above this cell; LaunchBlockingGuard:
// common/device/stream.h
void ErrorsWithLaunchBlocking(Cell& cell) {
  const Device device = TryGpu();
  for (const bool blocking : {false, true}) {
    const LaunchBlockingGuard guard(blocking);
    std::cout << (blocking ? Say("With launch blocking:\n")
                           : Say("Without launch blocking:\n"));
    try {
      IndexOutOfRange(device);
      cell.Check(false, "index 17 of 10 went unnoticed");
    } catch (const AsyncError& error) {
      std::cout << Wrap(error.what(), "  ");
      cell.Check(LineHolds(error.failure().requested_at, "IndexSelect("),
                 "who enqueued");
      cell.Check(LineHolds(error.noticed_at(),
                           blocking ? "IndexSelect(" : "Synchronize("),
                 "where");
    }
  }

  const int n = cell.BySize(50, 100, 100), size = cell.BySize(200, 1000, 4000);
  const Tensor a = Zeros({size, size}, device);
  Tensor b;
  std::int64_t left = 0;  // when Synchronize is called
  const Timings t = cell.TimeInterleaved(
      {{"Synchronize at the end",
        {device},
        [&] {
          b = Additions(a, n, false);
          left = CurrentStream(device).QueuedOperations();
        }},
       {"launch blocking", {device}, [&] { b = Additions(a, n, true); }}});
  cell.PrintTimes(t);
  cell.Check(Item(Min(b)) == n && Item(Max(b)) == n, "b");
  JudgeSteps(cell, t, left, n);
}
// %%
D2L_CELL("000/launch-blocking", ErrorsWithLaunchBlocking);

// %% d2l/barriers
// b, and products that the device computes after it.
std::pair<Tensor, Tensor> Products(const Tensor& a, int behind) {
  Tensor b = MatMul(a, a), c;
  for (int i = 0; i < behind; ++i) c = MatMul(a, a);
  return {b, c};
}

// waitall: until the device has done everything.
void WaitForAll(const Tensor& b) { Synchronize(b.device()); }

// wait_to_read: until b is there.
void WaitForOne(const Tensor& b) { WaitToRead(b); }
// %% d2l/barriers, measured
void Barriers(Cell& cell) {
  const int n = cell.BySize(200, 1000, 2000);
  const Device device = TryGpu();
  const Tensor a = Rand({n, n}, device);
  Tensor b, c;
  const auto alone = [&] { b = Products(a, 0).first; };
  // Small products take so many: a thread that waits may wake up late.
  const int behind = cell.BySize(100, 3, 3);
  const auto more_behind = [&] { std::tie(b, c) = Products(a, behind); };
  const auto all = [&] { WaitForAll(b); };
  const auto read = [&] { WaitForOne(b); };
  const Timings t =
      cell.TimeInterleaved({{"b, waitall", {device}, alone, all},
                            {"b, wait_to_read", {device}, alone, read}});
  const Timings more = cell.TimeInterleaved(
      {{"more behind b, waitall", {device}, more_behind, all},
       {"more behind b, wait_to_read", {device}, more_behind, read}});
  cell.PrintTimes(t);
  cell.PrintTimes(more);
  CheckSquare(cell, "b", a, b, 1e-4);
  cell.CheckClose("c", ToVector<float>(c), ToVector<float>(b), 0);
  cell.Claim(
      "With nothing behind b, waitall takes as long as wait_to_read: {}.",
      AboutEqual(t["b, waitall"].completion, t["b, wait_to_read"].completion,
                 kClearly),
      Say("waitall takes %s, wait_to_read %s.",
          FormatMedian(t["b, waitall"].completion.value, "s"),
          FormatMedian(t["b, wait_to_read"].completion.value, "s")));
  cell.Claim(
      "With more products behind b, waitall takes longer than wait_to_read: "
      "{}.",
      Faster(more[1], more[0], kClearly), WhyLate(more[0]));
}
// %%
D2L_CELL("d2l/barriers", Barriers);

using Reader = std::pair<std::string, std::function<void(const Tensor& s)>>;

// %% d2l/blockers
// What reads s waits until the device has computed it.
std::vector<Reader> Readers() {
  return {{"Printing", [](const Tensor& s) { ToString(s); }},
          {"Item", [](const Tensor& s) { Item(s); }},
          {"ToVector", [](const Tensor& s) { ToVector<float>(s); }},
          {"A branch", [](const Tensor& s) { return Item(s) > 0 ? 1 : -1; }}};
}

// The front end waits for the sum once, or each time that it has grown.
double SumOnTheDevice(const Tensor& x, int times, bool read_each_time) {
  Tensor sum = Zeros({}, x.device());
  for (int i = 0; i < times; ++i) {
    sum += x * (i % 10);
    if (read_each_time) Item(sum);
  }
  return Item(sum);
}
// %% d2l/blockers, measured
void Blockers(Cell& cell) {
  const int n = cell.BySize(200, 1000, 2000);
  const int times = cell.BySize(10'000, 10'000, 20'000);
  const Device device = TryGpu();
  const Tensor a = Rand({n, n}, device), x = Ones({}, device);
  double each = 0, once = 0;
  const auto read_each = [&] { each = SumOnTheDevice(x, times, true); };
  const auto read_once = [&] { once = SumOnTheDevice(x, times, false); };
  const Timings sums =
      cell.TimeInterleaved({{"read each time", {device}, read_each},
                            {"read once", {device}, read_once}});
  cell.PrintTimes(sums);
  cell.CheckClose("sums", std::vector<double>{each, once},
                  std::vector<double>{4.5 * times, 4.5 * times}, 0);
  cell.Claim(
      "Reading the sum after each addition takes longer than reading it once: "
      "{}.",
      Faster(sums["read once"], sums["read each time"], kClearly),
      Say("A product and an addition take %s with a read, and %s without.",
          Each(sums["read each time"].completion, times),
          Each(sums["read once"].completion, times)));
  Tensor s;
  const auto product = [&] { s = Sum(MatMul(a, a)); };
  const auto done = Done(device, product);
  for (const auto& [name, reader] : Readers()) {
    const auto read = [&s, reader = reader] { reader(s); };
    const Timings t = cell.TimeInterleaved(
        {{Worded("%s, not done", Phrase(name)), {device}, product, read},
         {Worded("%s, done", Phrase(name)), {device}, done, read}});
    cell.Claim(
        Worded("%s takes longer behind a queued product: {}.", Phrase(name)),
        Less(t[1].wait, t[0].wait, 2), WhyLate(t[0]));
  }
  cell.Check(Item(s) > 0, "s is positive");
}
// %%
D2L_CELL("d2l/blockers", Blockers);

// Benchmarks, at the course's size.

constexpr int kProducts = 10;
constexpr int kN = 1000;
constexpr double kFlop = kProducts * 2.0 * kN * kN * kN;
constexpr int kAdditions = 1000;
constexpr int kTimes = 10000;

bool BenchmarkAdditions(const std::string& name, bool launch_blocking) {
  return BenchmarkWork(name, kAdditions, [launch_blocking](Device device) {
    return [launch_blocking, a = Zeros({100, 100}, device)] {
      Additions(a, kAdditions, launch_blocking);
    };
  });
}

// A product, three more behind it, and a barrier.
bool BenchmarkBarrier(const std::string& name, void (*wait)(const Tensor& b)) {
  return BenchmarkCalls(
      name, 1,
      [wait](Device device) {
        return
            [wait, a = Rand({kN, kN}, device)] { wait(Products(a, 3).first); };
      },
      /*iterations=*/20);
}

// A program that repeats an operation kTimes on a small tensor of ones.
template <typename Program>
bool BenchmarkTimes(const std::string& name, const Shape& shape,
                    Program program) {
  return BenchmarkWork(name, kTimes, [shape, program](Device device) {
    return [program, x = Ones(shape, device)] { program(x, kTimes); };
  });
}

[[maybe_unused]] const bool benchmarks[] = {
    BenchmarkHost(
        "BM_004_In2_RandnMatMul_Host", kProducts,
        [] { return [] { TenProductsOnTheHost(kN); }; }, kFlop),
    BenchmarkCalls(
        "BM_004_In2_RandnMatMul_Enqueue", kProducts,
        [](Device device) { return [device] { TenProducts(kN, device); }; },
        /*iterations=*/20),
    BenchmarkWork(
        "BM_004_In4_RandnMatMul_Synchronized", kProducts,
        [](Device device) { return [device] { TenProductsDone(kN, device); }; },
        kFlop),
    BenchmarkCalls(
        "BM_004_In5_OnesMulAdd_Enqueue", 1,
        [](Device device) { return [device] { ThreeStatements(device); }; }),
    BenchmarkWork("BM_004_In5_OnesMulAdd_Print", 1,
                  [](Device device) {
                    return [device] {
                      std::ostringstream() << ThreeStatements(device);
                    };
                  }),
    BenchmarkAdditions("BM_000_launch_blocking_Add_Without", false),
    BenchmarkAdditions("BM_000_launch_blocking_Add_With", true),
    BenchmarkBarrier("BM_d2l_barriers_MatMul_WaitAll", WaitForAll),
    BenchmarkBarrier("BM_d2l_barriers_MatMul_WaitToRead", WaitForOne),
    BenchmarkTimes("BM_d2l_blockers_MulAdd_ReadEachTime", {},
                   [](const Tensor& x, int n) {
                     return SumOnTheDevice(x, n, /*read_each_time=*/true);
                   }),
    BenchmarkTimes("BM_d2l_blockers_MulAdd_ReadOnce", {},
                   [](const Tensor& x, int n) {
                     return SumOnTheDevice(x, n, /*read_each_time=*/false);
                   }),
};

}  // namespace
}  // namespace d2l::async_computation
