// Cells: what one core does, and what two do to each other.

#include "chapters/profiling/hardware.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "chapters/profiling/latencies/cores.h"
#include "chapters/profiling/latencies/sampling.h"
#include "chapters/profiling/profiled_runs.h"
#include "common/base/machine.h"
#include "common/base/undisturbed_timer.h"
#include "common/lesson/cell/benchmark.h"
#include "common/lesson/cell/cell.h"

namespace d2l::profiling {
namespace {

// A register that holds floats.
#if defined(__x86_64__)
#define D2L_FLOAT_REGISTER "+x"
#elif defined(__aarch64__)
#define D2L_FLOAT_REGISTER "+w"
#else
#define D2L_FLOAT_REGISTER "+f"
#endif

// Keeps the number in a register of its own: not in a vector with others.
void KeepAlone(float& x) { asm volatile("" : D2L_FLOAT_REGISTER(x)); }

// Keeps the branch in which this stands: no vectors, no conditional moves.
void KeepBranch(std::int64_t& x) { asm volatile("" : "+r"(x)); }

// %% d2l/hw-bandwidth
// Adds to `sum` bursts of numbers that stand side by side. Where a burst begins
// depends on the sum before it, so the CPU cannot load it early; where the
// first one begins, on the sum of the last call, so that no call goes through
// what the one before it has left in a cache.
std::uint64_t SumBursts(const std::vector<std::uint64_t>& x, int burst,
                        int count, std::uint64_t sum) {
  const std::uint64_t places = x.size() - burst + 1;
  for (int done = 0; done < count; done += burst) {
    const std::uint64_t* from = &x[(sum >> 32) * places >> 32];
    for (int i = 0; i < burst; ++i) sum += from[i];
  }
  return sum;
}
// %%

// %% d2l/hw-chains
// In each chain a product waits for the one before it; chains wait for none of
// the others. All do the same eight multiplications in a turn of the loop.
template <int kChains>
float ProductIn(const std::vector<float>& x) {
  float chain[kChains];  // unrolled, the loops keep it in registers
#pragma GCC unroll 8
  for (float& part : chain) part = 1;
  for (std::size_t i = 0; i < x.size(); i += 8) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      chain[j % kChains] *= x[i + j];
      KeepAlone(chain[j % kChains]);  // or they become one vector
    }
  }
  float product = 1;
#pragma GCC unroll 8
  for (const float part : chain) product *= part;
  return product;
}
// %%

// The product of all; x.size() is a multiple of 8. chains: 1, 2, 4 or 8.
float Product(const std::vector<float>& x, int chains) {
  return chains == 1   ? ProductIn<1>(x)
         : chains == 2 ? ProductIn<2>(x)
         : chains == 4 ? ProductIn<4>(x)
                       : ProductIn<8>(x);
}

// %% d2l/hw-branches
std::int64_t SumOfLarge(const std::vector<std::uint8_t>& x) {
  std::int64_t sum = 0;
  for (const std::int64_t number : x) {
    if (number >= 128) {
      sum += number;
      KeepBranch(sum);  // or the compiler makes of it what stands below
    }
  }
  return sum;
}

std::int64_t SumOfLargeUnbranched(const std::vector<std::uint8_t>& x) {
  std::int64_t sum = 0;
  for (const std::int64_t number : x) {
    sum += number & -(number >> 7);  // number, or 0
    KeepBranch(sum);
  }
  return sum;
}
// %%

// %% d2l/hw-false-sharing
// Two threads count. No number is shared, but a cache line may hold both.
// OnCpu: else both may run on one core, one after the other.
void CountInTwo(std::atomic<std::int64_t>* counters, int apart, int times,
                const std::vector<int>& cpus) {
  const auto count = [times](std::atomic<std::int64_t>& own, int cpu) {
    const OnCpu here(cpu);
    for (int i = 0; i < times; ++i) own.fetch_add(1, std::memory_order_relaxed);
  };
  std::thread other([&] {
    count(counters[apart], cpus.back());
    KeepWaits();  // for the clock
  });
  count(counters[0], cpus.front());
  other.join();
}
// %%

// %% d2l/hw-precision
// Adds `step` n times, one after the other.
template <typename T>
T Accumulate(T step, std::int64_t n) {
  T sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum = static_cast<T>(sum + step);
  return sum;
}

// Adds `step` n times, in pairs: what is added is about as large as what it is
// added to.
float AddInPairs(float step, std::int64_t n) {
  if (n == 1) return step;
  return AddInPairs(step, n / 2) + AddInPairs(step, n - n / 2);
}
// %%

std::vector<std::uint64_t> RandomWords(std::int64_t bytes) {
  std::vector<std::uint64_t> x(bytes / sizeof(std::uint64_t));
  std::mt19937_64 generator(1);
  std::generate(x.begin(), x.end(), std::ref(generator));
  return x;
}

// %% d2l/hw-bandwidth, measured
void Bandwidth(Cell& cell) {
  const std::vector<std::uint64_t> memory = RandomWords(LargeBytes(cell));
  const std::vector<std::uint64_t> cache = RandomWords(16 << 10);
  const int count = cell.BySize(1 << 12, 1 << 15, 1 << 16);
  std::vector<Timings> sweep;
  std::uint64_t sum = 1;
  const std::uint64_t next = SumBursts(memory, 1, 1, sum);
  cell.Check(SumBursts(memory, 1, 1, next) - next != next - sum,
             "a burst begins where the sum before it says");
  for (const int burst : {1, 8, 64, 512, 1024}) {  // the cache has 2048
    cell.At("numbers in a burst", burst);
    sweep.push_back(cell.TimeInterleaved(
        {{"memory", {}, [&] { sum = SumBursts(memory, burst, count, sum); }},
         {"L1 cache", {}, [&] {
            sum = SumBursts(cache, burst, count, sum);
          }}}));
  }
  cell.AtNoPlace();
  PrintSweep(sweep, count, "time of a number");
  KeepValue(sum);
  const Timings &alone = sweep.front(), &burst = sweep.back();
  cell.Claim(
      "From memory a number alone takes much longer than a number of a burst: "
      "{}.",
      Both(Faster(burst["memory"], alone["memory"], 10),
           Faster(alone["L1 cache"], alone["memory"], kClearly),
           "alone, from memory / from the L1 cache"),
      Say("A number takes %s alone and %s in a burst; from the L1 cache "
          "%s alone.",
          Each(alone["memory"].completion, count),
          Each(burst["memory"].completion, count),
          Each(alone["L1 cache"].completion, count)));
}
// %%
D2L_CELL("d2l/hw-bandwidth", Bandwidth);

// %% d2l/hw-chains, measured
void Chains(Cell& cell) {
  std::vector<float> x(4096);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = i / 8 % 2 == 0 ? 1.25f : 0.8f;  // in each chain in turn
  }
  const int times = cell.BySize(8, 80, 80);
  std::vector<Timing> sweep;
  for (const int chains : {1, 2, 4, 8}) {
    cell.At("chains", chains);
    float product = 0;
    const Timings t =
        cell.TimeInterleaved({{"product of floats", {}, Loop(times, [&] {
                                 product = Product(x, chains);
                                 KeepValue(product);
                               })}});
    cell.CheckClose("product", std::vector<float>{product}, {1}, 1e-3);
    std::cout << Say("  chains: %d   %s a multiplication\n", chains,
                     Each(t[0].completion, 4096 * times));
    sweep.push_back(t[0]);
  }
  cell.AtNoPlace();
  const auto each = [&](int i) {
    return Each(sweep[i].completion, 4096 * times);
  };
  cell.Claim("Eight chains are faster than one: {}.",
             Faster(sweep[3], sweep[0], 3),
             Say("In one chain a multiplication takes %s, in two %s, in four "
                 "%s, in eight %s.",
                 each(0), each(1), each(2), each(3)));
}
// %%
D2L_CELL("d2l/hw-chains", Chains);

// %% d2l/hw-branches, measured
void Branches(Cell& cell) {
  std::vector<std::uint8_t> random(cell.BySize(1 << 16, 1 << 18, 1 << 18));
  std::mt19937 generator(1);
  for (std::uint8_t& number : random) number = generator() >> 24;
  std::vector<std::uint8_t> sorted = random;
  std::sort(sorted.begin(), sorted.end());
  std::int64_t sums[4] = {};
  const Timings t = cell.TimeInterleaved(
      {{"a branch, sorted", {}, [&] { sums[0] = SumOfLarge(sorted); }},
       {"a branch, random", {}, [&] { sums[1] = SumOfLarge(random); }},
       {"none, sorted", {}, [&] { sums[2] = SumOfLargeUnbranched(sorted); }},
       {"none, random", {}, [&] { sums[3] = SumOfLargeUnbranched(random); }}});
  cell.PrintTimes(t);
  cell.Check(std::count(sums, sums + 4, sums[0]) == 4, "all sums are equal");
  const Figure branch = RatioPerRepeat("random / sorted, a branch",
                                       t[1].completion, t[0].completion);
  const Figure none =
      RatioPerRepeat("random / sorted, none", t[3].completion, t[2].completion);
  const int half = static_cast<int>(random.size() / 2);
  cell.Claim(
      "With a branch, random numbers take longer than sorted ones: {}.",
      Both(Faster(t[0], t[1], kClearly), Less(none, branch, kClearly),
           "than without a branch"),
      Say("The branch takes %s a number sorted, %s in random order.",
          Each(t[0].completion, 2 * half), Each(t[1].completion, 2 * half)));
}
// %%
D2L_CELL("d2l/hw-branches", Branches);

// %% d2l/hw-false-sharing, measured
void FalseSharing(Cell& cell) {
  // 128: the prefetchers of some processors take two lines at a time.
  alignas(128) std::atomic<std::int64_t> counters[33] = {};
  constexpr int kTimes = 60000;  // far longer than starting a thread
  const std::vector<int> cpus = AllowedCores();
  const auto in_turn = [&](int apart) {
    for (int i = 0; i < kTimes; ++i) {
      counters[0].fetch_add(1, std::memory_order_relaxed);
      counters[apart].fetch_add(1, std::memory_order_relaxed);
    }
  };
  std::vector<Timings> sweep;
  for (const int apart : {1, 4, 8, 32}) {
    cell.At("bytes apart", 8 * apart);
    sweep.push_back(cell.TimeInterleaved(
        {{"two threads",
          {},
          [&] { CountInTwo(counters, apart, kTimes, cpus); }},
         {"one thread", {}, [&] { in_turn(apart); }}}));
  }
  cell.AtNoPlace();
  PrintSweep(sweep, 2 * kTimes, "time of a count");
  const auto gain = [](const Timings& t) {
    return RatioPerRepeat("two threads / one", t[0].completion,
                          t[1].completion);
  };
  const Timings &near = sweep.front(), &far = sweep.back();
  cell.Claim(
      "In one cache line two threads take longer to count than in two: {}.",
      Given(Faster(far[0], far[1], 1.1),  // they run at the same time
            Both(Faster(far[0], near[0], 1.5),
                 Less(gain(far), gain(near), kClearly), "control, one thread"),
            "two cores, apart"),
      cpus.size() < 2
          ? Say("This process may use one core, so its threads take "
                "turns.")
          : Say("Two threads take %s in one line and %s in two; one "
                "thread for both %s and %s.",
                Took(near[0]), Took(far[0]), Took(near[1]), Took(far[1])));
}
// %%
D2L_CELL("d2l/hw-false-sharing", FalseSharing);

// %% d2l/hw-precision, measured
void Precision(Cell& cell) {
  constexpr std::int64_t kExact = 1 << 24;  // 24 bits of a float are digits
  float in_order = 0, in_pairs = 0;
  double in_double = 0;
  for (const std::int64_t n : {kExact / 4, kExact / 2, kExact, 2 * kExact}) {
    cell.At("ones", static_cast<double>(n));
    in_order = Accumulate(1.0f, n);
    in_pairs = AddInPairs(1, n);
    in_double = Accumulate(1.0, n);
    const auto report = [&](const Phrase& label, double sum) {
      cell.Report(Known(label, "counted", sum));
    };
    report("float, in order", in_order);
    report("float, in pairs", in_pairs);
    report("double, in order", in_double);
  }
  cell.AtNoPlace();
  const float limit = kExact;
  cell.Check(limit + 1 == limit && limit - 1 != limit, "2^24 + 1 in float32");
  std::cout << Say("  2^24 + 1 - 2^24 is %g in float and %g in double.\n",
                   limit + 1 - limit, double{limit} + 1 - double{limit});
  cell.Claim("Of 2^25 ones, added in order, a float counts only half: {}.",
             Both(Counted(in_order == limit, "stops at 2^24",
                          absl::StrFormat("%.0f", in_order)),
                  Counted(in_double == 2 * kExact && in_pairs == 2 * kExact,
                          "exact", absl::StrFormat("%.0f", in_pairs)),
                  "float in pairs, and double"));
  constexpr int kProduct = 100, kTerms = 1000;
  const int narrow = Accumulate<std::int8_t>(kProduct, kTerms);
  const int wide = Accumulate<std::int32_t>(kProduct, kTerms);
  cell.Claim(
      "In 8 bits a thousand times 100 is not 100000: {}.",
      Both(Counted(narrow != kProduct * kTerms, "not 100000",
                   absl::StrCat(narrow)),
           Counted(wide == kProduct * kTerms, "exact", absl::StrCat(wide)),
           "in 32 bits"));
}
// %%
D2L_CELL("d2l/hw-precision", Precision);

// ---- Benchmarks, at the course's size.

MakeHostWork Bursts(int burst) {
  return [burst] {
    std::vector<std::uint64_t> x(std::size_t{1} << 23);  // 64 MiB
    std::uint64_t word = 1;
    for (std::uint64_t& number : x) {
      word = word * 6364136223846793005 + 1442695040888963407;  // Knuth's
      number = word;
    }
    return [burst, x = std::move(x), sum = std::uint64_t{1}]() mutable {
      sum = SumBursts(x, burst, 1 << 12, sum);
      KeepValue(sum);
    };
  };
}

MakeHostWork Chain(int chains) {
  return [chains] {
    return [chains, x = std::vector<float>(4096, 1)] {
      KeepValue(Product(x, chains));
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

[[maybe_unused]] const bool benchmarks[] = {
    BenchmarkHost("BM_d2l_hw_bandwidth_Alone_Host", 1 << 12, Bursts(1)),
    BenchmarkHost("BM_d2l_hw_bandwidth_Bursts_Host", 1 << 12, Bursts(1 << 12)),
    BenchmarkHost("BM_d2l_hw_chains_One_Host", 4096, Chain(1)),
    BenchmarkHost("BM_d2l_hw_chains_Eight_Host", 4096, Chain(8)),
    BenchmarkHost("BM_d2l_hw_branches_Branch_Host", 1 << 18, LargeOnes(true)),
    BenchmarkHost("BM_d2l_hw_branches_None_Host", 1 << 18, LargeOnes(false)),
    BenchmarkHost("BM_d2l_hw_false_sharing_OneLine_Host", 200000, Counting(1)),
    BenchmarkHost("BM_d2l_hw_false_sharing_TwoLines_Host", 200000,
                  Counting(16)),
};

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

std::int64_t LargeBytes(const Cell& cell) {
  constexpr std::int64_t kMiB = 1 << 20;
  return std::min(cell.BySize(64 * kMiB, 256 * kMiB, 1024 * kMiB),
                  std::max(kMiB, FreeHostMemory(/*promised=*/0) / 4));
}

void PrintSweep(const std::vector<Timings>& sweep, int count,
                const Phrase& what) {
  std::string head;
  for (const Timing& timing : sweep.front()) {
    if (head.empty()) head = Padded(timing.completion.place->axis, 24);
    head += Padded(timing.completion.label, -13);
  }
  std::cout << "  " << head << "   " << what.shown << "\n";
  for (const Timings& timings : sweep) {
    std::string line;
    for (const Timing& timing : timings) {
      const Figure& figure = timing.completion;
      if (line.empty()) {
        line = absl::StrFormat("%-24s", FormatNumber(figure.place->value));
      }
      absl::StrAppendFormat(&line, "%13s", Each(figure, count));
    }
    std::cout << "  " << line << "\n";
  }
}

}  // namespace d2l::profiling
