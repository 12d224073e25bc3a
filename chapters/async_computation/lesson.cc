// Asynchronous computation: the calls return before the work is done.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "chapters/async_computation/programs.h"
#include "common/d2l.h"
#include "common/device/stream_stall.h"
#include "common/lesson/cell.h"
#include "common/lesson/host_library.h"
#include "common/lesson/source.h"
#include "common/lesson/trace_program.h"

namespace d2l::async_computation {
namespace {

// Two times that differ by less may differ because the machine is noisy.
constexpr double kClearly = 1.3;

// Bytes in flight: as good as none.
constexpr std::int64_t kNoBound = std::int64_t{1} << 60;

// Whether b is the product of a with itself.
void CheckSquare(Cell& cell, const std::string& what, const Tensor& a,
                 const Tensor& b, double tolerance) {
  const std::vector<float> values = ToVector<float>(a);
  const int n = static_cast<int>(a.size(0));
  cell.CheckClose(what, ToVector<float>(b), HostMatMul(values, values, n),
                  tolerance);
}

// The work, and then it is waited for.
std::function<void()> Done(Device device, const std::function<void()>& work) {
  return [device, work] {
    work();
    Synchronize(device);
  };
}

// How long a call takes.
double Seconds(const std::function<void()>& call) {
  const Timer timer;
  call();
  return timer.Seconds();
}

// What one repeat measured, by name.
using Repeat = std::vector<std::pair<std::string, double>>;

// Reports all that the repeats measured, as figures in seconds.
std::map<std::string, Figure> ReportAll(Cell& cell, Device device,
                                        const std::vector<Repeat>& repeats) {
  std::map<std::string, Figure> figures;
  for (std::size_t i = 0; i < repeats[0].size(); ++i) {
    std::vector<double> samples;
    for (const Repeat& repeat : repeats) samples.push_back(repeat[i].second);
    const std::string& name = repeats[0][i].first;
    figures[name] =
        cell.Report(Sampled(name, MeasuredOn(device), "s", std::move(samples)));
  }
  return figures;
}

// Prints what a formula predicted beside what was measured in the same repeats,
// and judges whether they are the same to within 1.5x.
Judgement Predicts(const Figure& formula, const Figure& measured) {
  std::cout << Say("  %s, %-18s  predicted %8s, measured %8s\n",
                   measured.label.shown, formula.label.shown,
                   FormatMedian(formula.value, "s"),
                   FormatMedian(measured.value, "s"));
  return AboutEqual(formula, measured, 1.5);
}

// Which of the two costs is the larger, in words.
std::string Why(const Figure& t1, const Figure& t2) {
  if (LaunchBlocking()) {
    return Say(
        "With launch blocking nothing can be held up, so nothing is fitted.");
  }
  const double ratio = t1.value.median / t2.value.median;
  if (ratio > 1) {
    return Say("t1 is %s t2, and enqueueing takes longer while a device works.",
               FormatFactor(ratio));
  }
  return Say("t2 is %s t1: the device is the slower one.",
             FormatFactor(1 / ratio));
}

// Why calls may not return before the work is done.
std::string WhyLate(const Timing& timing) {
  if (LaunchBlocking()) return Say("Launch blocking is on: every call waits.");
  return Say(
      "Enqueueing took %.0f %% of the time: the device works nearly as fast as "
      "the front end enqueues, or its queue was full.",
      100 * timing.enqueue.value.median / timing.completion.value.median);
}

// The memory that a program needed, besides what was in use before.
struct MemoryUse {
  Figure peak;
  // Of the last of its runs: at the last step, and in all.
  std::int64_t held = 0, queued = 0, requests = 0, blocks = 0;
};

// Runs a program six times, from empty caches; it calls what it is given
// after each step. Reports the peak, and adds the last run to the plot.
// max_bytes_in_flight: see DeviceMemory.
MemoryUse UseOf(
    Cell& cell, Plot& plot, const std::string& kind, const std::string& way,
    DeviceMemory& memory, std::int64_t max_bytes_in_flight,
    const std::function<void(const std::function<void()>& look)>& program) {
  struct Bound {
    DeviceMemory& memory;
    const std::int64_t before;
    ~Bound() { memory.SetMaxBytesInFlight(before); }
  } bound{memory, memory.SetMaxBytesInFlight(max_bytes_in_flight)};
  std::vector<double> peaks, steps, bytes;
  MemoryUse use;
  for (int run = 0; run < 6; ++run) {
    memory.EmptyCache();
    memory.ResetPeak();
    const MemoryStats before = memory.Stats();
    MemoryStats now = before;
    steps.clear();
    bytes.clear();
    program([&] {
      now = memory.Stats();
      steps.push_back(static_cast<double>(steps.size() + 1));
      bytes.push_back(
          static_cast<double>(now.allocated + now.pending - before.allocated));
    });
    peaks.push_back(
        static_cast<double>(memory.Stats().peak - before.allocated));
    use.held = now.allocated - before.allocated;
    use.queued = now.pending;
    use.requests = now.allocations - before.allocations;
    use.blocks = now.raw_allocations - before.raw_allocations;
  }
  plot.AddLine(way, steps, bytes);
  use.peak = cell.Report(Sampled(Worded("%s, %s", Phrase(kind), Phrase(way)),
                                 MeasuredOn(TryGpu()), "B", std::move(peaks)));
  return use;
}

// %% 004/In2, measured
void In2(Cell& cell) {
  const int n = cell.BySize(200, 1000, 2000);
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
  cell.Claim(
      "The clock showed a speed-up {} the real one: the front end returned "
      "early.",
      Less(hardware, gap, kClearly), WhyLate(tensors));
}
// %%

// %% 004/In4, measured
void In4(Cell& cell) {
  const int n = cell.BySize(200, 1000, 2000);
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
  cell.Claim("With Synchronize the clock shows {} what it shows without.",
             Less(enqueued.enqueue, done.enqueue, kClearly), WhyLate(enqueued));
  // The control: without Synchronize there is something left to wait for.
  cell.Claim(
      "With Synchronize the clock shows {} the true cost: nothing is left to "
      "wait for.",
      Both(AboutEqual(done.enqueue, done.completion, kClearly), left,
           "without Synchronize"),
      WhyLate(enqueued));
}
// %%

// The graphs of both programs, and when the front end enqueued the second and
// the device worked. Returns the first one's result.
Tensor ShowPrograms(Cell& cell, const Tensor& a) {
  const Tensor w = Rand(a.shape(), a.device());
  Tensor z;
  const TracedProgram statements =
      TraceProgram([&] { z = ThreeStatements(a.device()); });
  std::cout << z << "\n\n";
  cell.CheckClose("z", ToVector<float>(z), {3, 3}, 0);
  cell.Check(statements.graph.depth() == 3, "three levels");
  cell.Show(DrawGraph(statements.graph, "z = x * y + 2"));
  const TracedProgram network = TraceProgram([&] { TwoBranches(a, w); });
  cell.Check(network.graph.depth() == 7, "seven levels");
  cell.ShowIfVerbose(DrawGraph(network.graph, "two branches"));
  cell.ShowIfVerbose(
      Timeline(network.profile).Draw("timeline of two branches"));
  return z;
}

// Why independent work may not run in parallel on one device.
std::string WhyNotBeside(Device device) {
  const DeviceInfo& info = GetDeviceInfo(device);
  if (LaunchBlocking()) return Say("Launch blocking is on: every call waits.");
  if (info.kind == DeviceKind::kVirtual && info.cores == 1) {
    return Say(
        "%s has one core: it does one operation after the other, on whichever "
        "stream.",
        device.ToString());
  }
  return Say(
      "Independent chains take as long on two streams as on one: the front end "
      "enqueues no faster than the device works.");
}

// %% 004/In5, measured
// ShowPrograms, which draws their graphs, stands above this cell.
void In5(Cell& cell) {
  const int n = cell.BySize(400, 1000, 2000);
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
  cell.Claim("Behind a product, the work takes {} as long as the statements.",
             Less(behind.enqueue, behind.completion, kClearly),
             WhyLate(behind));
  cell.Claim("Printing takes {} as long behind a product: it waits.",
             Less(t["print"].wait, behind.wait, 2), WhyLate(behind));
  cell.Claim("Two chains take {} as long if the second depends on the first.",
             Given(Faster(t["c beside b"], t["b, c on one stream"], kClearly),
                   Faster(t["c beside b"], t["c depends on b"], kClearly),
                   "independent chains gain"),
             WhyNotBeside(device));
}
// %%

// Whether that line of a program holds this text.
bool LineHolds(const SourceLocation& line, const std::string& text) {
  std::istringstream lines(EmbeddedFile(line.file()));
  std::string at;
  for (int i = 0; i < line.line(); ++i) std::getline(lines, at);
  return at.find(text) != std::string::npos;
}

// Which of the two waits for each step. left: how many of the n steps are in
// the queue when Synchronize is called.
void JudgeSteps(Cell& cell, const Timings& t, std::int64_t left, int n) {
  const Timing& blocking = t["launch blocking"];
  const Timing& at_end = t["Synchronize at the end"];
  const Judgement early = Less(at_end.enqueue, at_end.completion, kClearly);
  // The control: without it there is something left to do.
  cell.Claim(
      "With launch blocking, the calls take {} the whole time: every step is "
      "finished before the next.",
      Both(AboutEqual(blocking.enqueue, blocking.completion, kClearly), early,
           "without launch blocking"),
      WhyLate(at_end));
  cell.Claim(
      "With Synchronize at the end, the calls take {} the whole time: every "
      "step is finished before the next.",
      AboutEqual(at_end.enqueue, at_end.completion, kClearly),
      Say("When Synchronize is called, %d of %d additions are in the queue: it "
          "waits once, for all of them.",
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

  const int n = cell.BySize(50, 100, 100), size = cell.BySize(400, 1000, 4000);
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

// Prints a row of the table, the peaks of the four programs, and judges them.
void JudgePeaks(Cell& cell, const std::string& kind,
                const std::map<std::string, MemoryUse>& uses) {
  const auto peak = [&](const char* way) {
    return FormatMedian(uses.at(way).peak.value, "B");
  };
  std::cout << absl::StrFormat("  %s%10s%15s%10s%10s\n", Padded(kind, 15),
                               peak("enqueueing"), peak("synchronizing"),
                               peak("bounds"), peak("reading"));
  const MemoryUse& enqueueing = uses.at("enqueueing");
  const std::string as_much =
      kind == "kept outputs"
          ? Say("At the end the program itself held %s, the queue alone %s.",
                FormatBytes(enqueueing.held), FormatBytes(enqueueing.queued))
          : Say("%d requests were served by %d blocks: a stream's next "
                "operation may use a block again at once.",
                enqueueing.requests, enqueueing.blocks);
  const auto claim = [&](const char* way, const Phrase& does) {
    cell.Claim(
        Worded("If a program only enqueues, %s take {} as much memory as with "
               "%s.",
               Phrase(kind), does),
        Less(uses.at(way).peak, enqueueing.peak, kClearly), as_much);
  };
  claim("synchronizing", "synchronizing");
  if (kind == "kept outputs") claim("reading", "reading them");
  if (kind == "staging buffers") claim("bounds", "a bounded queue");
}

// %% 004/queue-memory, measured
// UseOf and JudgePeaks stand above this cell.
void QueueMemory(Cell& cell) {
  const int n = cell.BySize(256, 512, 1024), batches = cell.BySize(24, 32, 64);
  const Device device = TryGpu();
  const std::vector<float> host(n * n, 1);
  const Tensor ones = FromVector(host, {n, n}, device);
  Synchronize(device);
  const std::int64_t bytes = n * n * sizeof(float);
  Stream& unbounded = NewStream(device, StreamOptions::kUnbounded);
  Stream& bounded = NewStream(device, 8);
  std::cout << Say(
      "  peak           enqueueing  synchronizing    bounds   reading\n");
  for (const std::string kind :
       {"temporaries", "kept outputs", "staging buffers"}) {
    DeviceMemory& memory =
        kind == "staging buffers" ? PinnedMemory(device) : Memory(device);
    Plot plot("minibatches enqueued", "", "memory", "B");
    std::map<std::string, MemoryUse> uses;
    for (const std::string way :
         {"enqueueing", "synchronizing", "bounds", "reading"}) {
      const bool bounds = way == "bounds";
      const auto epoch = [&](const std::function<void()>& look) {
        const StreamGuard guard(bounds ? bounded : unbounded);
        const double mean = Epoch(kind, way, host, ones, batches, look);
        cell.Check(std::abs(mean - n - batches) < 0.5, "the last mean");
      };
      uses[way] = UseOf(cell, plot, kind, way, memory,
                        bounds ? 4 * bytes : kNoBound, epoch);
    }
    JudgePeaks(cell, kind, uses);
    cell.ShowIfVerbose(plot.Draw(Worded("memory of %s", Phrase(kind))));
  }
}
// %%

// %% d2l/barriers, measured
void Barriers(Cell& cell) {
  const int n = cell.BySize(400, 1000, 2000);
  const Device device = TryGpu();
  const Tensor a = Rand({n, n}, device);
  Tensor b, c;
  const auto alone = [&] { b = Products(a, 0).first; };
  const auto more_behind = [&] { std::tie(b, c) = Products(a, 3); };
  const auto all = [&] { WaitForAll(b); };
  const auto read = [&] { WaitForOne(b); };
  const Timings t = cell.TimeInterleaved(
      {{"b, waitall", {device}, alone, all},
       {"b, wait_to_read", {device}, alone, read},
       {"more behind b, waitall", {device}, more_behind, all},
       {"more behind b, wait_to_read", {device}, more_behind, read}});
  cell.PrintTimes(t);
  CheckSquare(cell, "b", a, b, 1e-4);
  cell.CheckClose("c", ToVector<float>(c), ToVector<float>(b), 0);
  cell.Claim("For b alone waitall takes {} as long as wait_to_read.",
             AboutEqual(t["b, waitall"].completion,
                        t["b, wait_to_read"].completion, kClearly),
             Say("b is all that the device has to do: the repeats were "
                 "disturbed."));
  cell.Claim("With more behind b, waitall takes {} as long.",
             Faster(t["more behind b, wait_to_read"],
                    t["more behind b, waitall"], kClearly),
             WhyLate(t["more behind b, waitall"]));
}
// %%

// %% d2l/blockers, measured
void Blockers(Cell& cell) {
  const int n = cell.BySize(400, 1000, 2000), reads = 10 * n;
  const Device device = TryGpu();
  const Tensor a = Rand({n, n}, device), x = Ones({}, device);
  Tensor s;
  const auto product = [&] { s = Sum(MatMul(a, a)); };
  const auto done = Done(device, product);
  for (const auto& [name, reader] : Readers()) {
    const auto read = [&s, reader = reader] { reader(s); };
    const Timings t = cell.TimeInterleaved(
        {{Worded("%s behind it", Phrase(name)), {device}, product, read},
         {Worded("%s after it", Phrase(name)), {device}, done, read}});
    cell.Claim(
        Worded("%s takes {} as long behind a product: it waits.", Phrase(name)),
        Less(t[1].wait, t[0].wait, 2), WhyLate(t[0]));
  }
  cell.Check(Item(s) > 0, "s is positive");

  double each = 0, on_device = 0;
  const Timings sums = cell.TimeInterleaved(
      {{"a read for each", {device}, [&] { each = ReadEach(x, reads); }},
       {"a sum on the device", {device}, [&] {
          on_device = SumOnTheDevice(x, reads);
        }}});
  cell.PrintTimes(sums);
  cell.CheckClose("sums", std::vector<double>{each, on_device},
                  std::vector<double>{4.5 * reads, 4.5 * reads}, 0);
  cell.Claim(
      "Reading each value takes {} as long as summing on the device.",
      Faster(sums["a sum on the device"], sums["a read for each"], kClearly),
      Say("Summing takes a second operation for each value, which here takes "
          "as long as a read."));
}
// %%

constexpr int kProducts = 4;

// What the costs are, and the times that they are to predict. Last, of a front
// end whose t1 is 10 times as long, since it pauses after each call: n times
// x + 1, then some a @ a, which are also timed without pauses.
Repeat MeasureCosts(const Tensor& x, const Tensor& a, int n, int held) {
  const auto each = [&](int times) {
    return Seconds([&] { AddOnes(x, times, /*wait_each_time=*/true); });
  };
  const auto paused = [&](int times, double pause, const auto& call) {
    return Seconds([&] {
      Tensor y;
      for (int i = 0; i < times; ++i) {
        y = call();
        for (const Timer timer; timer.Seconds() < pause;) continue;
      }
      Synchronize(x.device());
    });
  };
  const auto addition = [&] { return x + 1; };
  const auto product = [&] { return MatMul(a, a); };
  const double alone = each(500) / 500;
  const auto [t1, t2] = T1AndT2(x, held);
  const double t3 = alone - t1 - t2;
  return {{"t1", t1},
          {"t2", t2},
          {"t3", t3},
          {"N (t1 + t2 + t3)", n * (t1 + t2 + t3)},
          {"t1 + N t2 + t3", t1 + n * t2 + t3},
          {"N max(t1, t2) + t3", n * std::max(t1, t2) + t3},
          {"each", each(n)},
          {"once", Seconds([&] { AddOnes(x, n, /*wait_each_time=*/false); })},
          {"additions, t1 x 10", paused(n, 9 * t1, addition)},
          {"large products", paused(kProducts, 0, product)},
          {"large products, t1 x 10", paused(kProducts, 9 * t1, product)}};
}

void JudgeLanguage(Cell& cell, std::map<std::string, Figure>& f) {
  const double t1 = f["t1"].value.median;
  const std::string from =
      Say("The front end sets the pace once its t1 is longer than t2: at %s "
          "this t1 "
          "for the additions, at %s for the products.",
          FormatFactor(f["t2"].value.median / t1),
          FormatFactor(f["large products"].value.median / kProducts / t1));
  cell.Claim(
      "The front end's language hardly matters: with 10 times the t1, "
      "the additions take {} as long.",
      AboutEqual(f["additions, t1 x 10"], f["once"], kClearly), from);
  cell.Claim(
      "The front end's language hardly matters: with 10 times the t1, "
      "large products take {} as long.",
      AboutEqual(f["large products, t1 x 10"], f["large products"], kClearly),
      from);
}

// %% d2l/t1-t2-t3, measured
// MeasureCosts and JudgeLanguage stand above this cell.
void T1T2T3(Cell& cell) {
  const Device device = TryGpu();
  const int n = cell.BySize(2000, 10000, 10000);
  const int held = std::min(2 * n / 5, StreamStall::Room(device));
  Stream& stream = NewStream(device, StreamOptions().max_queued_operations);
  const StreamGuard guard(stream);
  const int size = cell.BySize(200, 1000, 2000);
  const Tensor x = Ones({1, 2}, device), a = Rand({size, size}, device);
  std::vector<Repeat> repeats;
  // With launch blocking nothing is held up, and one fit decides nothing.
  for (int i = 0; i < (LaunchBlocking() ? 1 : 21); ++i) {
    repeats.push_back(MeasureCosts(x, a, n, held));
  }
  cell.CheckClose("y", ToVector<float>(AddOnes(x, n, false)), {2, 2}, 0);
  auto f = ReportAll(cell, device, repeats);
  for (const char* cost : {"t1", "t2", "t3"}) {
    std::cout << "  " << cost << " " << FormatMedian(f[cost].value, "s");
  }
  std::cout << ", N = " << n << "\n";
  const std::string why = Why(f["t1"], f["t2"]);
  cell.Claim("Waiting each time takes {} as long as waiting once.",
             Less(f["once"], f["each"], kClearly), why);
  cell.Claim("Each time: the book's formula predicts {} the cost.",
             Predicts(f["N (t1 + t2 + t3)"], f["each"]), why);
  cell.Claim("Once: the book's formula predicts {} the cost.",
             Predicts(f["t1 + N t2 + t3"], f["once"]), why);
  cell.Claim("Once: N max(t1, t2) + t3 predicts {} the cost.",
             Predicts(f["N max(t1, t2) + t3"], f["once"]), why);
  JudgeLanguage(cell, f);
}
// %%

[[maybe_unused]] const bool registered =
    RegisterLesson({2,
                    "async_computation",
                    1,
                    {{"004/In2", In2},
                     {"004/In4", In4},
                     {"004/In5", In5},
                     {"000/launch-blocking", ErrorsWithLaunchBlocking},
                     {"004/queue-memory", QueueMemory},
                     {"d2l/barriers", Barriers},
                     {"d2l/blockers", Blockers},
                     {"d2l/t1-t2-t3", T1T2T3}}});

}  // namespace
}  // namespace d2l::async_computation
