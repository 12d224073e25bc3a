// Cells: what is moved between the devices, how, and by whom.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "chapters/multi_gpu/cells.h"
#include "chapters/multi_gpu/from_scratch/data_parallel.h"
#include "common/d2l.h"
#include "common/device/stream_stall.h"
#include "common/device/topology.h"
#include "common/lesson/cell/benchmark.h"
#include "common/lesson/cell/cell.h"
#include "common/lesson/run/fresh_process.h"
#include "common/parallel/nccl/nccl.h"
#include "common/parallel/simulator/simulator.h"

namespace d2l::multi_gpu {
namespace {

// Returns how many of the simulated times are equal to the book's.
int PrintFormulas(const std::vector<SimulatedServer>& servers) {
  std::cout << "  " << Padded("160 MB", 24) << Padded("the book", -11)
            << Padded("bound", -11) << Padded("simulated", -11)
            << kBandwidthsHead << "\n";
  int equal = 0;
  for (const SimulatedServer& server : servers) {
    std::cout << absl::StrFormat(
        "  %s%8.2f ms%8.2f ms%8.2f ms%s\n", Padded(server.name, 24),
        1e3 * server.book, 1e3 * server.bound, 1e3 * server.simulated,
        FormatBandwidths(server.gpus, 160e6, server.simulated));
    equal += std::abs(server.simulated - server.book) < 1e-6 ? 1 : 0;
  }
  return equal;
}

// Prints a line for each sum, with its bandwidths.
void PrintSums(const Timings& t, std::size_t devices, std::int64_t bytes) {
  for (const Timing& timing : t) {
    std::cout << "  " << Padded(timing.completion.label, 46)
              << Padded(Median(timing), -11)
              << FormatBandwidths(static_cast<int>(devices),
                                  static_cast<double>(bytes),
                                  timing.completion.value.median)
              << "\n";
  }
}

}  // namespace

// %% d2l/allreduce, measured
void AllReduceCell(Cell& cell) {
  const std::vector<Device> devices = AtLeastTwo();
  const auto print = [](const char* when, const std::vector<Tensor>& data) {
    std::cout << Padded(when, 26);
    for (std::size_t i = 0; i < data.size(); ++i) {
      std::cout << (i == 0 ? "" : std::string(26, ' ')) << data[i] << "\n";
    }
  };
  const auto make = [&] {
    std::vector<Tensor> data;
    for (const Device device : devices) {
      data.push_back(
          Full({1, 2}, static_cast<double>(data.size() + 1), device));
    }
    return data;
  };
  const std::vector<Tensor> rebound = make();
  print("before:", rebound);
  RebindingAllReduce(rebound);
  print("the book's first:", rebound);
  std::vector<Tensor> summed = make();
  BookAllReduce(summed);
  print("with CopyTo(data[0], …):", summed);

  const Tensor data = Reshape(Arange(20, devices[0], DType::kInt64), {4, 5});
  const std::vector<Tensor> shards = SplitBatch(data, devices);
  std::cout << "input: " << data << "\n";
  for (const Tensor& shard : shards) std::cout << shard << "\n";

  int right_first = 0, right = 0;
  const double n = static_cast<double>(devices.size());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    right_first += Item(Max(rebound[i])) == n * (n + 1) / 2 ? 1 : 0;
    right += Item(Max(summed[i])) == n * (n + 1) / 2 ? 1 : 0;
  }
  const auto of_devices = [&](int count) {
    return Say("%d of %d devices", count, devices.size());
  };
  cell.Check(right == static_cast<int>(n), "the sum is everywhere");
  cell.Check(ToVector<std::int64_t>(shards[0])[0] == 0, "the first shard");
  cell.Claim(
      "The book's first allreduce leaves the sum on one device only: {}.",
      Counted(right_first == 1, "1 expected", of_devices(right_first)));
  cell.Claim(
      "An allreduce that writes into the tensors' memory gives all devices the "
      "sum: {}.",
      Counted(right == static_cast<int>(n), "needs all", of_devices(right)));
}

// %% d2l/overlap-link
// Six equal layers, each in a bucket of its own.
std::shared_ptr<DataParallel> SixLayers(const std::vector<Device>& devices,
                                        bool overlap) {
  DataParallelOptions options;
  options.overlap = overlap;
  options.first_bucket_bytes = options.bucket_bytes = std::int64_t{1} << 18;
  nn::Sequential net;
  for (int i = 0; i < 6; ++i) {
    net.Append(nn::Linear(512, 512, devices[0]));
    net.Append(nn::ReLU());
  }
  return std::make_shared<DataParallel>(std::move(net), NumbersOf(devices),
                                        options);
}
// %%

// Steps that send at the end, and beside backward.
Timings TimeSixLayers(Cell& cell, const Phrase& over, const Tensor& x,
                      const Tensor& y) {
  std::vector<Alternative> steps;
  std::vector<std::shared_ptr<DataParallel>> nets;
  for (const bool overlap : {false, true}) {
    ManualSeed(5);
    nets.push_back(SixLayers(AllDevices(), overlap));
    steps.push_back(
        {Worded("%s, %s", over, Phrase(overlap ? "overlapped" : "at the end")),
         AllDevices(),
         [&x, &y, net = nets.back()] { net->Step(x, y, {/*lr=*/0.01}); }});
  }
  const Timings t = cell.TimeInterleaved(steps);
  cell.PrintTimes(t);
  cell.Check(EqualParameters(*nets[1], *nets[0]) == 12,
             "the same parameters, bit for bit");
  return t;
}

// %% d2l/overlap-link, measured
void OverlapLink(Cell& cell) {
  const std::int64_t batch = cell.BySize(128, 256, 8192);
  const Tensor x = Rand({batch, 512}, TryGpu());
  const Tensor y = RandInt(0, 10, {batch}, TryGpu());
  cell.PaceDevices();
  const Timings without = TimeSixLayers(cell, Phrase("no link"), x, y);
  // Slow enough for the six sums to take half of the step without a link. Each
  // sends half of a layer's gradients both ways, twice.
  const double on_link = without[0].completion.value.median / 2;
  cell.LinkDevices(6 * 512 * 513 * 4, on_link);
  const Timings t = TimeSixLayers(cell, Phrase("a link"), x, y);
  const Figure hidden = cell.Report(
      PerRepeat(Phrase("hidden, of the link's time"), "%", t[0].completion,
                t[1].completion, [&](double at_end, double overlapped) {
                  return 100 * (at_end - overlapped) / on_link;
                }));
  const std::string why =
      Say("With the link, a step takes %s if gradients are sent at the end, "
          "and %s if sending overlaps; without the link it takes %s.",
          Median(t[0]), Median(t[1]), Median(without[0]));
  cell.Claim(
      "Over the link, sending while backward computes is faster than sending "
      "at the end: {}.",
      OnSeveral(Faster(t[1], t[0], 1.1)), OneDeviceOr(why));
  cell.Claim(
      "Sending while backward computes hides most of the link's time: {}.",
      OnSeveral(Above(hidden, 50)), OneDeviceOr(why));
}

// %%

namespace {

constexpr char kLinksProbe[] = "multi_gpu/sums_over_links";
// A hundredth of the book's bytes, over links of a four-hundredth of the book's
// speed: sums take four times as long, and what the program itself does is a
// small part.
constexpr std::int64_t kScaledNumel = 400'000;
constexpr double kSlowerLinks = 400;
constexpr double kLonger = 4;

// In a process with as many virtual devices as the book's machine has GPUs, one
// of SimulateTheBook() is run three times. Returns the shortest time, on the
// devices' clocks and at the book's scale.
std::vector<double> SumOverLinks(const std::vector<std::string>& arguments) {
  const SimulatedServer server = SimulateTheBook()[std::stoi(arguments[0])];
  std::vector<std::string> names;
  for (int i = 0; i < server.gpus; ++i) {
    names.push_back(absl::StrCat("cpu:", i));
  }
  const absl::Status made = InitializeDevices(absl::StrJoin(names, ","));
  if (!made.ok()) throw std::runtime_error(std::string(made.message()));
  std::vector<Tensor> data;
  for (const DeviceInfo& info : Devices()) {
    data.push_back(Zeros({kScaledNumel}, info.device));
  }
  AllReduce(data, server.algorithm);  // memory, threads
  VirtualTiming timing;
  timing.links = BooksTopology(server.gpus, kSlowerLinks);
  const VirtualTimingScope scope(timing);
  Stream& gate = NewStream(data[0].device());
  double shortest = std::numeric_limits<double>::infinity();
  for (int round = 0; round < 3; ++round) {
    // No device begins before all is enqueued: a program that gets no core
    // would let some begin later.
    StreamStall stall(gate);
    const Event open = gate.Record();
    for (const Tensor& x : data) CurrentStream(x.device()).Wait(open);
    const Event begin = CurrentStream(data[0].device()).Record();
    AllReduce(data, server.algorithm);
    std::vector<Event> ends;
    for (const Tensor& x : data) {
      ends.push_back(CurrentStream(x.device()).Record());
    }
    stall.Release();
    double milliseconds = 0;
    for (const Event& end : ends) {
      end.Synchronize();
      milliseconds = std::max(milliseconds, ElapsedTime(begin, end));
    }
    shortest = std::min(shortest, 1e-3 * milliseconds / kLonger);
  }
  return {shortest};
}

[[maybe_unused]] const bool registered_sum =
    RegisterProbe(kLinksProbe, SumOverLinks);

void ClaimOverLinks(Cell& cell, const std::vector<SimulatedServer>& servers) {
  std::cout << Wrap(Say("Run on virtual devices, with a hundredth of the bytes "
                        "over links of a four-hundredth of the speed; times "
                        "divided by four:"),
                    "  ");
  std::vector<double> took;
  double off = 0;
  std::string furthest;
  for (const SimulatedServer& server : servers) {
    const std::string number = absl::StrCat(took.size());
    took.push_back(RunInFreshProcess(kLinksProbe, {number}).value()[0]);
    Figure figure = Known(Worded("%s, run", server.name), "s", took.back());
    figure.measured_on = Phrase("virtual devices");
    cell.Report(figure);
    std::cout << absl::StrFormat("  %s%8.2f ms\n", Padded(server.name, 24),
                                 1e3 * took.back());
    const double difference = std::abs(took.back() / server.simulated - 1);
    if (difference < off) continue;
    off = difference;
    furthest =
        Say("%s: %s run, %s simulated.", server.name.shown,
            FormatDuration(took.back()), FormatDuration(server.simulated));
  }
  cell.Claim(
      "Run over such links, the four ways take the simulated times; the "
      "largest difference is: {}.",
      Counted(off <= 0.1, "needs 10 % or less",
              absl::StrFormat("%.1f %%", 100 * off)),
      furthest);
  cell.Claim("Adding is faster if all devices share it than on one device: {}.",
             Counted(took[0] > 1.1 * took[2],
                     Say("%s against %s", FormatDuration(took[2]),
                         FormatDuration(took[0])),
                     FormatFactor(took[0] / took[2])));
}

// Sums on the table's own devices.
void ClaimMeasured(Cell& cell) {
  const std::vector<Device> devices = AllDevices();
  const std::int64_t n = cell.BySize(1 << 20, 1 << 24, 1 << 26);
  std::vector<Tensor> data;
  for (const Device device : devices) data.push_back(Zeros({n}, device));
  std::vector<Alternative> alternatives;
  for (const AllReduceAlgorithm algorithm : kAllReduceAlgorithms) {
    // kHost adds in a CPU device's memory.
    const bool host = algorithm == AllReduceAlgorithm::kHost;
    if (host && !HasDevice(Device())) continue;
    for (const Tensor& x : data)
      CopyTo(Arange(static_cast<double>(n), x.device()), x);
    AllReduce(data, algorithm);
    const double sum = static_cast<double>(devices.size()) * 1000;
    for (const Tensor& x : data) {
      cell.Check(Item(x[1000]) == sum, AllReduceAlgorithmName(algorithm));
    }
    alternatives.push_back(
        {AllReduceAlgorithmName(algorithm), devices,
         [&data, algorithm] { AllReduce(data, algorithm); }});
  }
  for (const Tensor& x : data) CopyTo(Zeros({}, x.device()), x);
  const Timings t = cell.TimeInterleaved(alternatives);
  std::cout << "  "
            << Say("Measured, %s on %s:", FormatBytes(4 * n),
                   MeasuredOn(devices))
            << "\n";
  PrintSums(t, devices.size(), 4 * n);
  const std::size_t others = devices.size() - 1;
  cell.Claim("Adding is faster if all devices share it than on one device: {}.",
             OnSeveral(Faster(t["split"], t["star"], 1.1)),
             OneDeviceOr(
                 Say("Both move %s in all.", FormatBytes(2 * others * 4 * n))));
}

}  // namespace

// %% d2l/parameter-server, measured
void ParameterServer(Cell& cell) {
  const std::vector<SimulatedServer> servers = SimulateTheBook();
  const int equal = PrintFormulas(servers);
  cell.ShowIfVerbose(PlotTimeByDevices({2, 4, 8, 16, 32}, 160e6, [](int gpus) {
                       return Topology::NvSwitch(gpus, 54e9);
                     }).Draw("160 MB by number of GPUs, simulated"));
  cell.Claim(
      "The simulation agrees with the book's figures: {}.",
      Counted(equal == 4, "needs 4", Say("%d of %d", equal, 4)),
      Say("In the ring, each of n devices sends 2 (n - 1) times an n-th "
          "of the bytes, which takes 5.19 ms. The book takes (n - 1) / n "
          "to be 1 and gives 5.93 ms."));
  if (OnCpus()) {
    ClaimOverLinks(cell, servers);
  } else {
    ClaimMeasured(cell);
  }
}

// %% d2l/key-value-store
static Tensor Gradient(const Tensor& x, const Tensor& y, const Tensor& w) {
  return MatMul(T(x), MatMul(x, w) - y);
}

// Each device is a worker with a shard of the rows. The store adds the workers'
// gradients up and updates the weights. Returns each worker's.
static std::vector<Tensor> TrainByStore(const Tensor& x, const Tensor& y,
                                        const std::vector<Device>& devices,
                                        int steps) {
  KvStore store(devices[0], [](const std::string&, const Tensor& sum,
                               Tensor stored) { stored -= sum * 0.1; });
  store.Init("w", Zeros({3, 1}, devices[0]));
  const std::vector<Tensor> xs = SplitBatch(x, devices);
  const std::vector<Tensor> ys = SplitBatch(y, devices);
  std::vector<Tensor> weights;
  for (const Device device : devices) weights.push_back(Zeros({3, 1}, device));
  for (int step = 0; step < steps; ++step) {
    std::vector<Tensor> gradients;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      gradients.push_back(Gradient(xs[i], ys[i], weights[i]));
    }
    store.Push("w", gradients);
    store.Pull("w", weights);
  }
  return weights;
}
// %% d2l/key-value-store, measured
void KeyValueStore(Cell& cell) {
  const std::vector<Device> devices = AtLeastTwo();
  const auto n = static_cast<std::int64_t>(devices.size());
  const Tensor x = Randn({n, 3}, devices[0]), y = Randn({n, 1}, devices[0]);
  const std::vector<Tensor> weights = TrainByStore(x, y, devices, 20);
  Tensor whole = Zeros({3, 1}, devices[0]);  // of one device with all rows
  for (int step = 0; step < 20; ++step) whole -= Gradient(x, y, whole) * 0.1;
  int equal = 0;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    std::cout << "  " << Say("worker %d: ", i) << T(weights[i]) << "\n";
    cell.CheckClose("the weights", ToVector<float>(weights[i]),
                    ToVector<float>(whole), 1e-4);
    equal += ToVector<float>(weights[i]) == ToVector<float>(weights[0]) ? 1 : 0;
  }
  std::cout << "  " << Padded("alone:", 10) << T(whole) << "\n";
  cell.Claim(
      "After 20 steps all workers have the same weights, bit for bit: {}.",
      Counted(equal == n, "needs all", Say("%d of %d", equal, n)));
}
// %%
D2L_CELL("d2l/key-value-store", KeyValueStore);
D2L_CELL("d2l/parameter-server", ParameterServer);
D2L_CELL("d2l/overlap-link", OverlapLink);
D2L_CELL("d2l/allreduce", AllReduceCell);

namespace {

// ---- Benchmarks, at the course's size.

bool Linked(const std::string& name, bool overlap) {
  return OnTwo(
      name, 256,
      [overlap](const std::vector<Device>& devices) -> std::function<void()> {
        const Tensor x = Rand({256, 512}, devices[0]);
        const Tensor y = RandInt(0, kClasses, {256}, devices[0]);
        return [=, net = SixLayers(devices, overlap)] {
          net->Step(x, y, {/*lr=*/0.01});
        };
      });
}

bool Sum64MB(const std::string& name, AllReduceAlgorithm algorithm) {
  constexpr double kBytes = 1 << 26;
  const Rates rates = {{"algbw", kBytes},
                       {"busbw", BusBandwidth(2, kBytes, /*seconds=*/1)}};
  const auto make =
      [algorithm](const std::vector<Device>& devices) -> std::function<void()> {
    if (algorithm == AllReduceAlgorithm::kNccl) {
      const absl::Status status = CheckNccl(devices);
      if (!status.ok()) {
        throw std::runtime_error(std::string(status.message()));
      }
    }
    std::vector<Tensor> data;
    for (const Device device : devices) {
      data.push_back(Zeros({1 << 24}, device));
    }
    return [=] { AllReduce(data, algorithm); };
  };
  return OnTwo(name, 1 << 24, make, rates);
}

[[maybe_unused]] const bool benchmarks[] = {
    Linked("BM_d2l_overlap_link_AtTheEnd", /*overlap=*/false),
    Linked("BM_d2l_overlap_link_Overlapped", /*overlap=*/true),
    Sum64MB("BM_d2l_parameter_server_Split", AllReduceAlgorithm::kSplit),
    Sum64MB("BM_d2l_parameter_server_Star", AllReduceAlgorithm::kStar),
    Sum64MB("BM_d2l_parameter_server_Ring", AllReduceAlgorithm::kRing),
    Sum64MB("BM_d2l_parameter_server_Nccl", AllReduceAlgorithm::kNccl),
};

}  // namespace
}  // namespace d2l::multi_gpu
