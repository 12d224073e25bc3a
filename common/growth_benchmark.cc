// How the cost of an item grows with the number of items: of operations in a
// queue, bytes, devices, steps of a program, modules, records of a profiler,
// transfers of a simulation.
//
//   bazel run //common:growth_benchmark -- --benchmark_filter=Records
//
// per_item is the time of one, and of_smallest that time divided by the least
// so far. Run one after the other: a benchmark leaves the allocator in a state
// that slows the next. docs/performance.md has the figures, and why some grow.

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "common/d2l.h"
#include "common/device/cpu/cpu_stream.h"
#include "common/parallel/simulator/simulator.h"

namespace d2l {
namespace {

template <typename Run>
double Seconds(const Run& run) {
  const Timer timer;
  run();
  return timer.Seconds();
}

Device FirstDevice() { return Devices()[0].device; }

// `each` operations on each of so many devices.
double Queued(std::int64_t devices, std::int64_t each) {
  std::vector<std::unique_ptr<CpuStream>> streams;
  StreamOptions options;
  options.max_queued_operations = StreamOptions::kUnbounded;
  for (int i = 0; i < devices; ++i) {
    const Device device(DeviceType::kCpu, i);
    streams.push_back(std::make_unique<CpuStream>(device, 0, options));
  }
  return Seconds([&] {
    for (std::int64_t i = 0; i < each; ++i) {
      for (const auto& stream : streams) stream->Enqueue(OpLabel("op"), [] {});
    }
    for (const auto& stream : streams) stream->Synchronize();
  });
}

double Requests(std::int64_t n) {
  const Tensor x = Ones({10}, FirstDevice());
  return Seconds([&] {
    for (std::int64_t i = 0; i < n; ++i) Tensor y = x + 1;
    Synchronize(FirstDevice());
  });
}

double Bytes(std::int64_t n) {
  Tensor x = Ones({n / 4}, FirstDevice());
  Synchronize(FirstDevice());
  return Seconds([&] {
    for (int i = 0; i < 10; ++i) x += 1;
    Synchronize(FirstDevice());
  });
}

// Traced, optimised, planned, captured and run once.
double ProgramSteps(std::int64_t n) {
  const std::vector<Tensor> x = {Ones({10}, FirstDevice())};
  const auto steps = [n](const std::vector<Tensor>& in) {
    std::vector<Tensor> out = in;
    for (std::int64_t i = 0; i < n; ++i) out[0] = out[0] * in[0] + out[0];
    return out;
  };
  return Seconds([&] {
    ir::Graph graph = ir::Trace(steps, x);
    ir::Optimize(graph);
    ir::Captured(std::move(graph)).Run(x);
    Synchronize(FirstDevice());
  });
}

double Parameters(std::int64_t n) {
  return Seconds([&] {
    nn::Sequential net;
    for (std::int64_t i = 0; i < n; ++i) net.Append(nn::Linear(1, 1));
    benchmark::DoNotOptimize(nn::NamedParameters(net).size());
    Synchronize(FirstDevice());
  });
}

double Records(std::int64_t n) {
  ProfilerOptions options;
  options.max_records = n;
  Profiler profiler(options);
  profiler.Start();
  for (std::int64_t i = 0; i < n; ++i) RecordFunction range("range");
  profiler.Stop();
  return Seconds([&] { profiler.profile(); });
}

double Simulated(AllReduceAlgorithm algorithm, std::int64_t devices) {
  const int ranks = static_cast<int>(devices);
  const Topology ring = Topology::Ring(ranks, 1e9);
  const CollectiveSchedule schedule = AllReduceSchedule(algorithm, ranks);
  return Seconds([&] { Simulate(ring, schedule, 1e9); });
}

// run(n) returns the seconds of n items; of n * n if there are that many.
void Register(const std::string& name, double (*run)(std::int64_t), int factor,
              std::int64_t first, std::int64_t last, bool squared = false) {
  const auto measure = [=](benchmark::State& state) {
    const std::int64_t n = state.range(0);
    double seconds = 0;
    for (auto _ : state) {
      const double one = run(n);
      seconds += one;
      state.SetIterationTime(one);
    }
    const double per_item =
        seconds / static_cast<double>(state.iterations() * n *
                                      (squared ? n : std::int64_t{1}));
    static std::map<std::string, double> smallest;
    double& least = smallest.try_emplace(name, per_item).first->second;
    least = std::min(least, per_item);
    state.counters["per_item"] = per_item;
    state.counters["of_smallest"] = per_item / least;
  };
  benchmark::RegisterBenchmark(name.c_str(), measure)
      ->RangeMultiplier(factor)
      ->Range(first, last)
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

}  // namespace
}  // namespace d2l

int main(int argc, char** argv) {
  using d2l::AllReduceAlgorithm, d2l::Register, std::int64_t;
  benchmark::Initialize(&argc, argv);
  Register(
      "Queued", [](int64_t n) { return d2l::Queued(1, n); }, 10, 1'000,
      10'000'000);
  Register(
      "Devices", [](int64_t n) { return d2l::Queued(n, 1'000); }, 2, 1, 64);
  Register("Requests", d2l::Requests, 10, 10, 1'000'000);
  Register("Bytes", d2l::Bytes, 10, 10'000, 1'000'000'000);
  Register("ProgramSteps", d2l::ProgramSteps, 10, 10, 100'000);
  Register("Parameters", d2l::Parameters, 10, 10, 1'000'000);
  Register("Records", d2l::Records, 10, 10, 1'000'000);
  Register(
      "SimulatedRing",
      [](int64_t n) { return d2l::Simulated(AllReduceAlgorithm::kRing, n); }, 2,
      64, 4096, /*squared=*/true);
  Register(
      "SimulatedSplit",
      [](int64_t n) { return d2l::Simulated(AllReduceAlgorithm::kSplit, n); },
      2, 16, 1024, /*squared=*/true);
  benchmark::RunSpecifiedBenchmarks();
}
