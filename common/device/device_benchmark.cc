// The costs of a device's queue, events and memory. docs/performance.md has the
// table of these figures.
//
//   bazel run //common/device:benchmarks

#include <sys/resource.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "benchmark/benchmark.h"
#include "common/base/timer.h"
#include "common/device/cpu/cpu_stream.h"
#include "common/device/cpu/parallel_for.h"
#include "common/device/memory/memory.h"
#include "common/device/op_label.h"

namespace d2l {
namespace {

constexpr int kBatch = 2000;  // half of the queue: a push never waits for room

// Prints the time of one of `tasks` tasks, when each iteration is that many.
benchmark::Counter PerTask(double tasks) {
  return benchmark::Counter(tasks,
                            benchmark::Counter::kIsIterationInvariantRate |
                                benchmark::Counter::kInvert);
}

StreamOptions Bound(std::int64_t operations) {
  StreamOptions options;
  options.max_queued_operations = operations;
  return options;
}

const Device kDevice(DeviceType::kCpu, 0);

// The sum that the tasks add to. It has cache lines of its own: next to the
// enqueuing thread's variables it would slow that thread down threefold.
struct alignas(128) Sum {
  std::uint64_t value = 0;
};

// A task that holds 24 bytes.
struct SmallTask {
  Sum* sum;
  std::uint64_t a;
  std::uint64_t b;
  void operator()() const { sum->value += a + b; }
};
static_assert(sizeof(SmallTask) == 24);

// One thread enqueues while the worker works. Each iteration is a batch; the
// time is that of the pushes alone.
void BM_Enqueue(benchmark::State& state) {
  CpuStream stream(kDevice, 0, StreamOptions());
  Sum sum;
  for (auto _ : state) {
    stream.Enqueue(OpLabel("wake"), [] {});  // the worker runs from here on
    const Timer timer;
    for (std::uint64_t i = 0; i < kBatch; ++i) {
      stream.Enqueue(OpLabel("task"), SmallTask{&sum, i, 1});
    }
    state.SetIterationTime(timer.Seconds());
    stream.Synchronize();
  }
  benchmark::DoNotOptimize(sum.value);
  state.counters["per_task"] = PerTask(kBatch);
  state.counters["wakeups_per_task"] =
      static_cast<double>(stream.wakeups()) /
      (static_cast<double>(state.iterations()) * kBatch);
}
BENCHMARK(BM_Enqueue)->UseManualTime();

// Enqueues while the worker is stalled: the cost of the push alone.
void BM_EnqueueWorkerBusy(benchmark::State& state) {
  CpuStream stream(kDevice, 0, StreamOptions());
  Sum sum;
  for (auto _ : state) {
    alignas(128) std::atomic<bool> go{false};
    stream.Enqueue(OpLabel("gate"), [&go] {
      while (!go.load(std::memory_order_acquire)) std::this_thread::yield();
    });
    const Timer timer;
    for (std::uint64_t i = 0; i < kBatch; ++i) {
      stream.Enqueue(OpLabel("task"), SmallTask{&sum, i, 1});
    }
    state.SetIterationTime(timer.Seconds());
    go.store(true, std::memory_order_release);
    stream.Synchronize();
  }
  benchmark::DoNotOptimize(sum.value);
  state.counters["per_task"] = PerTask(kBatch);
}
BENCHMARK(BM_EnqueueWorkerBusy)->UseManualTime();

// Several threads enqueue a million tasks in all, with a bounded queue; the
// time per task until all are enqueued, and until all are done.
void BM_EnqueueFromThreads(benchmark::State& state) {
  CpuStream stream(kDevice, 0, StreamOptions());
  const int threads = static_cast<int>(state.range(0));
  constexpr std::uint64_t kTasks = 1'000'000;
  Sum sum;
  double completed = 0;
  for (auto _ : state) {
    std::vector<std::thread> producers;
    const Timer timer;
    for (int t = 0; t < threads; ++t) {
      producers.emplace_back([&] {
        for (std::uint64_t i = 0; i < kTasks / threads; ++i) {
          stream.Enqueue(OpLabel("task"), SmallTask{&sum, i, 1});
        }
      });
    }
    for (std::thread& producer : producers) producer.join();
    state.SetIterationTime(timer.Seconds());
    stream.Synchronize();
    completed += timer.Seconds() / kTasks;
  }
  benchmark::DoNotOptimize(sum.value);
  state.counters["per_task"] = PerTask(kTasks);
  state.counters["completed_per_task"] =
      benchmark::Counter(completed, benchmark::Counter::kAvgIterations);
  state.counters["wakeups_per_task"] =
      static_cast<double>(stream.wakeups()) /
      (static_cast<double>(state.iterations()) * kTasks);
}
BENCHMARK(BM_EnqueueFromThreads)
    ->Arg(1)
    ->Arg(4)
    ->UseManualTime()
    ->Iterations(5);

// All of n tasks are queued before the first can run: the cost of queueing and
// completing one must not depend on n.
void BM_QueueDepth(benchmark::State& state) {
  const std::uint64_t n = state.range(0);
  CpuStream stream(kDevice, 0, Bound(StreamOptions::kUnbounded));
  Sum sum;
  // Touches all slots once, so that their pages exist during the measurement.
  for (std::int64_t i = 0; i < StreamOptions::kUnbounded; ++i) {
    stream.Enqueue(OpLabel("task"), [] {});
  }
  stream.Synchronize();
  double enqueued = 0;
  for (auto _ : state) {
    alignas(128) std::atomic<bool> go{false};
    stream.Enqueue(OpLabel("gate"), [&go] {
      while (!go.load(std::memory_order_acquire)) std::this_thread::yield();
    });
    const Timer timer;
    for (std::uint64_t i = 0; i < n; ++i) {
      stream.Enqueue(OpLabel("task"), SmallTask{&sum, i, 1});
    }
    enqueued += timer.Seconds() / static_cast<double>(n);
    go.store(true, std::memory_order_release);
    stream.Synchronize();
    state.SetIterationTime(timer.Seconds());
  }
  benchmark::DoNotOptimize(sum.value);
  state.counters["per_task"] = PerTask(static_cast<double>(n));
  state.counters["enqueued_per_task"] =
      benchmark::Counter(enqueued, benchmark::Counter::kAvgIterations);
}
BENCHMARK(BM_QueueDepth)
    ->RangeMultiplier(10)
    ->Range(1'000, 1'000'000)
    ->UseManualTime();

// The time from enqueue to start of a task while the worker is asleep.
void BM_IdleToStart(benchmark::State& state) {
  CpuStream stream(kDevice, 0, StreamOptions());
  for (auto _ : state) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::int64_t started = 0;
    const std::int64_t asked = NowNanos();
    stream.Enqueue(OpLabel("task"), [&started] { started = NowNanos(); });
    stream.Synchronize();
    state.SetIterationTime(1e-9 * static_cast<double>(started - asked));
  }
}
BENCHMARK(BM_IdleToStart)->UseManualTime()->Iterations(300);

// Processor time per millisecond of idleness: the worker's spinning.
void BM_IdleMillisecond(benchmark::State& state) {
  CpuStream stream(kDevice, 0, StreamOptions());
  auto cpu_seconds = [] {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * static_cast<double>(usage.ru_utime.tv_usec +
                                      usage.ru_stime.tv_usec);
  };
  for (auto _ : state) {
    stream.Enqueue(OpLabel("task"), [] {});
    stream.Synchronize();
    const double before = cpu_seconds();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    state.SetIterationTime(cpu_seconds() - before);
  }
}
BENCHMARK(BM_IdleMillisecond)->UseManualTime()->Iterations(300);

// The round trip of a task: the shortest wait of a read of one value.
void BM_EnqueueAndSynchronize(benchmark::State& state) {
  CpuStream stream(kDevice, 0, StreamOptions());
  Sum sum;
  for (auto _ : state) {
    stream.Enqueue(OpLabel("task"), SmallTask{&sum, 1, 1});
    stream.Synchronize();
  }
}
BENCHMARK(BM_EnqueueAndSynchronize)->UseRealTime();

void BM_RecordAndWaitAcrossStreams(benchmark::State& state) {
  CpuStream a(kDevice, 0, StreamOptions());
  CpuStream b(kDevice, 1, StreamOptions());
  for (auto _ : state) {
    b.Wait(a.Record());
    a.Wait(b.Record());
  }
  a.Synchronize();
  b.Synchronize();
}
BENCHMARK(BM_RecordAndWaitAcrossStreams)->UseRealTime();

// An operation with one part for each core, where no part ends before all have
// begun: the cost of spreading it over awake helpers. With more threads than
// cores this measures the scheduler.
void BM_ParallelFor(benchmark::State& state) {
  const int cores = static_cast<int>(state.range(0));
  CpuStream stream(kDevice, 0, StreamOptions(),
                   std::make_shared<ThreadPool>(cores));
  constexpr int kTimes = 1000;
  for (auto _ : state) {
    double seconds = 0;
    stream.Enqueue(OpLabel("parallel"), [cores, &seconds] {
      const Timer timer;
      for (int i = 0; i < kTimes; ++i) {
        alignas(128) std::atomic<int> begun{0};
        ParallelFor(cores, 1, [&begun, cores](std::int64_t, std::int64_t) {
          begun.fetch_add(1);
          while (begun.load() < cores) std::this_thread::yield();
        });
      }
      seconds = timer.Seconds();
    });
    stream.Synchronize();
    state.SetIterationTime(seconds);
  }
  state.counters["per_call"] = PerTask(kTimes);
}
BENCHMARK(BM_ParallelFor)->Arg(2)->Arg(4)->UseManualTime();

void BM_AllocateAndFree(benchmark::State& state) {
  CpuStream stream(kDevice, 0, StreamOptions());
  DeviceMemory memory(CpuBackend(), kDevice, 0, DeviceMemory::Kind::kDevice,
                      std::int64_t{1} << 30);
  for (auto _ : state) {
    StorageRef block = memory.Allocate(state.range(0), stream);
    benchmark::DoNotOptimize(block->data());
  }
}
BENCHMARK(BM_AllocateAndFree)->Arg(4)->Arg(4096)->Arg(4 << 20);

}  // namespace
}  // namespace d2l

BENCHMARK_MAIN();
