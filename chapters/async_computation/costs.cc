// Cells: the costs of a front end that runs ahead, in memory and in time.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/undisturbed_timer.h"
#include "common/d2l.h"
#include "common/device/stream_stall.h"
#include "common/lesson/cell/benchmark.h"
#include "common/lesson/cell/cell.h"
#include "common/lesson/cell/host_library.h"

namespace d2l::async_computation {
namespace {

// %% 004/queue-memory
// An epoch of minibatches. The front end runs ahead of the device, unless
// `way` makes it wait. What is enqueued keeps the memory that it needs.
double Epoch(const std::string& kind, const std::string& way,
             const std::vector<float>& host, const Tensor& ones, int batches,
             const std::function<void()>& look) {
  const Device device = ones.device();
  std::vector<Tensor> outputs;
  double mean = 0;
  for (int i = 1; i <= batches; ++i) {
    Tensor in = ones;
    if (kind == "staging buffers") in = FromVector(host, in.shape(), device);
    if (kind != "kept outputs" || way == "reading") outputs.clear();
    outputs.push_back(Relu(MatMul(in, ones)) + i);
    if (way == "synchronizing") Synchronize(device);
    if (way == "reading") mean = Item(Mean(outputs[0]));
    look();
  }
  for (const Tensor& output : outputs) mean = Item(Mean(output));
  return mean;
}
// %%

// A bound on bytes in flight that no program reaches.
constexpr std::int64_t kNoBound = std::int64_t{1} << 60;

// The memory that a program needed.
struct MemoryUse {
  Figure peak;
  // The last run's bytes at the last step, then the counts of the whole run.
  std::int64_t held = 0, queued = 0, requests = 0, blocks = 0;
};

// Reports the peak of a program, which calls `look` after each step, and adds
// its last run to the plot. max_bytes_in_flight: see DeviceMemory.
MemoryUse UseOf(
    Cell& cell, Plot& plot, const std::string& kind, const std::string& way,
    DeviceMemory& memory, std::int64_t max_bytes_in_flight,
    const std::function<void(const std::function<void()>& look)>& program) {
  struct Bound {
    DeviceMemory& memory;
    const std::int64_t before;
    ~Bound() { memory.SetMaxBytesInFlight(before); }
  } bound{memory, memory.SetMaxBytesInFlight(max_bytes_in_flight)};
  std::vector<double> steps, bytes;
  MemoryStats before, now;
  const auto run = [&] {
    before = memory.Stats();
    steps.clear();
    bytes.clear();
    program([&] {
      now = memory.Stats();
      steps.push_back(static_cast<double>(steps.size() + 1));
      bytes.push_back(static_cast<double>(now.allocated + now.in_flight -
                                          before.allocated));
    });
  };
  const Figure peak = cell.PeakMemory(
      Worded("%s, %s", Phrase(kind), Phrase(way)), TryGpu(), memory, run);
  plot.AddLine(way, steps, bytes);
  return {peak, now.allocated - before.allocated, now.in_flight,
          now.allocations - before.allocations,
          now.raw_allocations - before.raw_allocations};
}

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
          ? Say("At the end the program still used %s of it; the other %s were "
                "used only by queued operations.",
                FormatBytes(enqueueing.held), FormatBytes(enqueueing.queued))
      : enqueueing.blocks < enqueueing.requests
          ? Say("%d requests needed %d blocks of memory: a stream's next "
                "operation may reuse a block at once.",
                enqueueing.requests, enqueueing.blocks)
          : Say("%d requests for memory needed %d blocks.", enqueueing.requests,
                enqueueing.blocks);
  const auto claim = [&](const char* way, const Phrase& does) {
    cell.Claim(Worded("Only enqueueing takes more memory for %s than %s: {}.",
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
       {"staging buffers", "kept outputs", "temporaries"}) {
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
D2L_CELL("004/queue-memory", QueueMemory);

// %% d2l/t1-t2-t3
// n additions, waited for each time or once.
Tensor AddOnes(const Tensor& x, int n, bool wait_each_time) {
  Tensor y;
  for (int i = 0; i < n; ++i) {
    y = x + 1;
    if (wait_each_time) Synchronize(x.device());
  }
  Synchronize(x.device());
  return y;
}

// t1: enqueued while the device is held up (common/device/stream_stall.h).
// t2: computed while nothing is enqueued.
std::pair<double, double> T1AndT2(const Tensor& x, int held) {
  StreamStall stall(CurrentStream(x.device()));
  Timer timer;
  Tensor y;
  for (int i = 0; i < held; ++i) y = x + 1;
  const double enqueued = timer.Seconds();
  timer.Restart();
  stall.Release();
  Synchronize(x.device());
  return {enqueued / held, timer.Seconds() / held};
}
// %%

// The measurements of one repeat, by name.
using Repeat = std::vector<std::pair<std::string, Elapsed>>;

// Reports all measurements of the repeats, as figures in seconds.
std::map<std::string, Figure> ReportAll(Cell& cell, Device device,
                                        const std::vector<Repeat>& repeats) {
  std::vector<TimedRepeats> timed;
  for (std::size_t i = 0; i < repeats[0].size(); ++i) {
    timed.push_back({repeats[0][i].first, {}});
    for (const Repeat& repeat : repeats) {
      timed.back().repeats.push_back(repeat[i].second);
    }
  }
  std::map<std::string, Figure> figures;
  for (Figure& figure : cell.ReportTimes(MeasuredOn(device), timed)) {
    figures[figure.label.english] = std::move(figure);
  }
  return figures;
}

// Whether some measurement was disturbed in all but a few repeats.
bool FewUndisturbed(const std::vector<Repeat>& repeats) {
  for (std::size_t i = 0; i < repeats[0].size(); ++i) {
    if (std::count_if(repeats.begin(), repeats.end(), [&](const Repeat& all) {
          return all[i].second.undisturbed;
        }) < 9) {
      return true;
    }
  }
  return false;
}

// Prints a formula's prediction beside the measurement of the same repeats, and
// judges whether they agree to within a factor of 2. Beside other programs an
// addition takes up to 1.7 times its t1, which nobody else disturbs.
Judgement Predicts(const Figure& formula, const Figure& measured) {
  std::cout << Say("  %s, %-18s  predicted %8s, measured %8s\n",
                   measured.label.shown, formula.label.shown,
                   FormatMedian(formula.value, "s"),
                   FormatMedian(measured.value, "s"));
  return AboutEqual(formula, measured, 2);
}

// Which of the two costs is the larger, in words. once: of each of n additions
// that are waited for once.
std::string Why(const Figure& t1, const Figure& t2, double once) {
  if (LaunchBlocking()) {
    return Say(
        "With launch blocking each call waits, so t1 and t2 cannot be measured "
        "apart.");
  }
  const double ratio = t1.value.median / t2.value.median;
  if (ratio > 1) {
    const std::string more =
        Say("The book's condition, t2 > t1, is not met: t1 is %s t2.",
            FormatFactor(ratio));
    if (once < 1.05 * t1.value.median) return more;
    return Lead(more) + Say("Enqueueing takes longer while the device works: "
                            "%s for each addition.",
                            FormatDuration(once));
  }
  return Say("t2 is %s t1: the device is slower than the front end.",
             FormatFactor(1 / ratio));
}

constexpr int kProducts = 4;

// Measures the costs, and the times that they should predict. The last times
// are those of a front end that pauses after each call, so that its t1 is 10
// times as long: n times x + 1, then some a @ a, also timed without pauses.
Repeat MeasureCosts(const Cell& cell, const Tensor& x, const Tensor& a, int n,
                    int held) {
  const auto timed = [&](const auto& work) {
    cell.Rest();
    AddOnes(x, 100, /*wait_each_time=*/true);  // wakes the worker
    const UndisturbedTimer timer;
    work();
    return timer.Read();
  };
  const auto each = [&](int times) {
    return timed([&] { AddOnes(x, times, /*wait_each_time=*/true); });
  };
  const auto paused = [&](int times, double pause, const auto& call) {
    return timed([&] {
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
  // A few before the n additions, and a few after them: beside other programs
  // waits are now fast, because threads poll, and now slow, because they sleep.
  const int few = std::min(n / 8, 250);
  const Elapsed before = each(few);
  Elapsed all = each(n);
  const Elapsed after = each(few);
  std::pair<double, double> costs;
  const bool undisturbed = timed([&] { costs = T1AndT2(x, held); }).undisturbed;
  const auto [t1, t2] = costs;
  const double t3 = (before.seconds + after.seconds) / (2 * few) - t1 - t2;
  const bool all_undisturbed =
      undisturbed && before.undisturbed && after.undisturbed;
  // Else the fast ones of the n count, and any of the few.
  all.undisturbed = all.undisturbed && all_undisturbed;
  return {{"t1", {t1, undisturbed}},
          {"t2", {t2, undisturbed}},
          {"t3", {t3, all_undisturbed}},
          {"N (t1 + t2 + t3)", {n * (t1 + t2 + t3), all.undisturbed}},
          {"t1 + N t2 + t3", {t1 + n * t2 + t3, all_undisturbed}},
          {"N max(t1, t2) + t3", {n * std::max(t1, t2) + t3, all_undisturbed}},
          {"each", all},
          {"once", timed([&] { AddOnes(x, n, /*wait_each_time=*/false); })},
          {"additions, t1 x 10", paused(n, 9 * t1, addition)},
          {"large products", paused(kProducts, 0, product)},
          {"large products, t1 x 10", paused(kProducts, 9 * t1, product)}};
}

// Repeats MeasureCosts, longer beside other programs.
std::vector<Repeat> RepeatCosts(const Cell& cell, const Tensor& x,
                                const Tensor& a, int n, int held) {
  // With launch blocking nothing is held up, and one fit decides nothing.
  const int enough = LaunchBlocking() ? 1 : 21;
  const int most = LaunchBlocking() ? 1 : 99;
  std::vector<Repeat> repeats;
  for (int i = 0; i < enough || (i < most && FewUndisturbed(repeats)); ++i) {
    repeats.push_back(MeasureCosts(cell, x, a, n, held));
  }
  return repeats;
}

void JudgeLanguage(Cell& cell, std::map<std::string, Figure>& f) {
  const double t1 = f["t1"].value.median;
  const std::string from =
      Say("The front end is the bottleneck if t1 is more than t2. The t2 of "
          "an addition is %s t1, that of a large product %s.",
          FormatFactor(f["t2"].value.median / t1),
          FormatFactor(f["large products"].value.median / kProducts / t1));
  cell.Claim(
      "With a t1 10 times as long, additions take as long as before: {}.",
      AboutEqual(f["additions, t1 x 10"], f["once"], kClearly), from);
  cell.Claim(
      "With a t1 10 times as long, large products take as long as before: {}.",
      AboutEqual(f["large products, t1 x 10"], f["large products"], kClearly),
      from);
}

// %% d2l/t1-t2-t3, measured
// RepeatCosts and JudgeLanguage stand above this cell.
void T1T2T3(Cell& cell) {
  const Device device = TryGpu();
  const int n = cell.BySize(2500, 10000, 10000);
  const int held = std::min({n, 4000, StreamStall::Room(device)});
  Stream& stream = NewStream(device, StreamOptions().max_queued_operations);
  const StreamGuard guard(stream);
  const int size = cell.BySize(100, 1000, 2000);
  const Tensor x = Ones({1, 2}, device), a = Rand({size, size}, device);
  const std::vector<Repeat> repeats = RepeatCosts(cell, x, a, n, held);
  cell.CheckClose("y", ToVector<float>(AddOnes(x, n, false)), {2, 2}, 0);
  auto f = ReportAll(cell, device, repeats);
  for (const char* cost : {"t1", "t2", "t3"}) {
    std::cout << "  " << cost << " " << FormatMedian(f[cost].value, "s");
  }
  std::cout << ", N = " << n << "\n";
  const std::string why = Why(f["t1"], f["t2"], f["once"].value.median / n);
  cell.Claim("With one wait, the book's formula predicts the time; ratio: {}.",
             Predicts(f["t1 + N t2 + t3"], f["once"]), why);
  cell.Claim("With one wait, N max(t1, t2) + t3 predicts the time; ratio: {}.",
             Predicts(f["N max(t1, t2) + t3"], f["once"]), why);
  cell.Claim("With N waits, the book's formula predicts the time; ratio: {}.",
             Predicts(f["N (t1 + t2 + t3)"], f["each"]), why);
  cell.Claim("Waiting each time takes longer than waiting once: {}.",
             Less(f["once"], f["each"], kClearly), why);
  JudgeLanguage(cell, f);
}
// %%
D2L_CELL("d2l/t1-t2-t3", T1T2T3);

// Benchmarks, at the course's size.

constexpr int kAdditions = 1000;
constexpr int kBatches = 32;
constexpr int kTimes = 10000;

// An epoch of minibatches whose inputs come from the host. Counts the peak
// memory of the device and of staging buffers.
bool BenchmarkEpoch(const std::string& name, const std::string& way) {
  return BenchmarkWork(
      name, kBatches,
      [way](Device device) {
        constexpr int kSize = 512;
        const std::vector<float> host(kSize * kSize, 1);
        const Tensor ones = FromVector(host, {kSize, kSize}, device);
        Synchronize(device);
        for (DeviceMemory* memory : {&Memory(device), &PinnedMemory(device)}) {
          memory->EmptyCache();
          memory->ResetPeak();
        }
        return
            [=] { Epoch("staging buffers", way, host, ones, kBatches, [] {}); };
      },
      /*flop=*/0,
      [](Device device) {
        const auto peak = [](DeviceMemory& memory) {
          return static_cast<double>(memory.Stats().peak);
        };
        return Rates{{"device_bytes", peak(Memory(device))},
                     {"staging_bytes", peak(PinnedMemory(device))}};
      });
}

// A program that repeats an operation kTimes on a small tensor of ones.
template <typename Program>
bool BenchmarkTimes(const std::string& name, const Shape& shape,
                    Program program) {
  return BenchmarkWork(name, kTimes, [shape, program](Device device) {
    return [program, x = Ones(shape, device)] { program(x, kTimes); };
  });
}

// t1 or t2 of a thousand additions.
bool BenchmarkHeldUp(const std::string& name, bool enqueueing) {
  return BenchmarkSeconds(name, kAdditions, [enqueueing](Device device) {
    return [=, held = std::min(kAdditions, StreamStall::Room(device)),
            x = Ones({1, 2}, device)] {
      const auto [t1, t2] = T1AndT2(x, held);
      return kAdditions * (enqueueing ? t1 : t2);
    };
  });
}

[[maybe_unused]] const bool benchmarks[] = {
    BenchmarkEpoch("BM_004_queue_memory_Epoch_Enqueueing", "enqueueing"),
    BenchmarkEpoch("BM_004_queue_memory_Epoch_Synchronizing", "synchronizing"),
    BenchmarkEpoch("BM_004_queue_memory_Epoch_Reading", "reading"),
    BenchmarkTimes("BM_d2l_t1_t2_t3_AddOne_Each", {1, 2},
                   [](const Tensor& x, int n) { AddOnes(x, n, true); }),
    BenchmarkTimes("BM_d2l_t1_t2_t3_AddOne_Once", {1, 2},
                   [](const Tensor& x, int n) { AddOnes(x, n, false); }),
    BenchmarkHeldUp("BM_d2l_t1_t2_t3_AddOne_Enqueue", /*enqueueing=*/true),
    BenchmarkHeldUp("BM_d2l_t1_t2_t3_AddOne_Compute", /*enqueueing=*/false),
};

}  // namespace
}  // namespace d2l::async_computation
