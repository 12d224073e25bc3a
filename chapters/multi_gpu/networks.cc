// The cell of networks that are not there: all of it is simulated, but for the
// sums on four virtual devices of a process of its own.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "chapters/multi_gpu/cells.h"
#include "common/d2l.h"
#include "common/lesson/cell/cell.h"
#include "common/lesson/run/fresh_process.h"

namespace d2l::multi_gpu {
namespace {

constexpr char kProbe[] = "multi_gpu/networks";
constexpr double kBytes = 160e6;

// On how many of the first `workers` devices the schedule leaves the sum of
// their arrays, bit for bit: of whole numbers, which no order rounds.
int Right(const CollectiveSchedule& schedule, int workers) {
  constexpr std::int64_t kLength = 1'003;
  std::vector<Tensor> data;
  Tensor sum = Zeros({kLength}, Devices()[0].device);
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    const Device device = Devices()[rank].device;
    data.push_back(Zeros({kLength}, device));
    if (rank >= workers) continue;
    ManualSeed(rank, device);
    data[rank] += To(RandInt(-999, 999, {kLength}, device), DType::kFloat32);
    sum += To(data[rank], sum.device());
  }
  const std::vector<float> expected = ToVector<float>(sum);
  RunPlan("allreduce", MakePlan(schedule), data).Wait();
  return static_cast<int>(std::count_if(
      data.begin(), data.begin() + workers,
      [&](const Tensor& x) { return ToVector<float>(x) == expected; }));
}

CollectiveSchedule WithoutCopies(const CollectiveSchedule& schedule) {
  return {"adds", schedule.ranks(), schedule.chunks(),
          [schedule](CollectiveSchedule::Visitor visit) {
            schedule.ForEach([&](const Move& move) {
              if (move.op == MoveOp::kAdd) visit(move);
            });
          }};
}

// How many devices are right, and how many without the copies.
std::vector<double> OnFourDevices(const std::vector<std::string>&) {
  const absl::Status made = InitializeDevices("cpu:0,cpu:1,cpu:2,cpu:3");
  if (!made.ok()) throw std::runtime_error(std::string(made.message()));
  int right = 0, control = 0;
  for (const auto& [schedule, workers] :
       {std::pair{Rings({{0, 1, 2, 3}, {0, 2, 1, 3}}), 4},
        std::pair{Hierarchy(2, 2), 4}, std::pair{Servers(2, 2), 2}}) {
    right += Right(schedule, workers);
    control += Right(WithoutCopies(schedule), workers);
  }
  return {static_cast<double>(right), static_cast<double>(control)};
}

[[maybe_unused]] const bool registered = RegisterProbe(kProbe, OnFourDevices);

// Prints a line of the table, and draws how busy so many links are.
double Print(Cell& cell, const Phrase& row, const Topology& topology,
             const CollectiveSchedule& schedule, int workers, int links = 0) {
  const Simulation run = Simulate(topology, schedule, kBytes);
  const std::vector<double>& busy = run.link_seconds;
  const auto busiest = std::max_element(busy.begin(), busy.end());
  std::cout << absl::StrFormat(
      "  %s%9s%s  %s\n", Padded(row, 27), FormatDuration(run.seconds),
      FormatBandwidths(AllReduceBandwidths(workers, kBytes, run.seconds)),
      topology.links()[busiest - busy.begin()].name);
  if (links > 0) cell.ShowIfVerbose(DrawLinkLoads(row, topology, run, links));
  return run.seconds;
}

// How many times as long b takes, which is right if the control is.
Judgement AsLong(double b, double a, double expected, bool control) {
  return Counted(control && std::abs(b / a / expected - 1) < 0.02,
                 Say("%s against %s", FormatDuration(b), FormatDuration(a)),
                 FormatFactor(b / a));
}

// The ring of all ranks that goes to another group at each step: 0 4 1 5 2 6 …
CollectiveSchedule RingAcross(int groups, int each) {
  std::vector<int> order(groups * each);
  for (int i = 0; i < groups * each; ++i) {
    order[i] = i % groups * each + i / groups;
  }
  return Rings({order});
}

// Whether both schedules take the same time on the topology.
bool Equal(const Topology& topology, const CollectiveSchedule& a,
           const CollectiveSchedule& b) {
  const double seconds = Simulate(topology, a, kBytes).seconds;
  return std::abs(Simulate(topology, b, kBytes).seconds / seconds - 1) < 1e-6;
}

}  // namespace

// %% d2l/networks, measured
void Networks(Cell& cell) {
  const std::vector<int> order = {0, 1, 2, 3, 4, 5, 6, 7};
  const std::vector<int> single = {0, 3, 5, 2, 4, 7, 1, 6};
  const auto ring = Rings({order}), both = Rings({order, order, single});
  const CollectiveSchedule zigzag = RingAcross(2, 4);
  const Topology cube = Topology::HybridCube(18e9);
  const Topology tree = Topology::PcieTree(8, 4, 16e9);
  const int machines = cell.BySize(8, 128, 256), gpus = 8 * machines;
  const Topology network = Topology::Machines(machines, 8, 150e9, 12.5e9);
  const auto by_servers = [&](int m, int n) {
    return Print(cell, Worded("%d workers, servers: %d", m, n),
                 Topology::NvSwitch(m + n, 12.5e9), Servers(m, n), m);
  };
  std::cout << "  " << Padded("SIMULATED, 160 MB", 27) << Padded("time", -9)
            << kBandwidthsHead << "       " << Translated("busiest link")
            << "\n";
  const double one = Print(cell, "NVLink cube, a ring", cube, ring, 8);
  const double two = Print(cell, "NVLink cube, two rings", cube, both, 8, 32);
  const double along = Print(cell, "PCIe tree, ring in order", tree, ring, 8);
  const double across =
      Print(cell, "PCIe tree, ring across", tree, zigzag, 8, 20);
  const double dealt = Print(cell, Worded("%d GPUs, ring across", gpus),
                             network, RingAcross(machines, 8), gpus, 8);
  const double steps = Print(cell, Worded("%d GPUs, seven steps", gpus),
                             network, Hierarchy(machines, 8), gpus);
  const double few_by_1 = by_servers(4, 1), many_by_1 = by_servers(gpus, 1);
  const double few = by_servers(4, 4), many = by_servers(gpus, gpus);
  // The rings use one way of all cables, so half of what they carry.
  const double bound = 2 * LowerBound(cube, both, kBytes);
  const auto right = RunInFreshProcess(kProbe, {}).value();
  cell.Claim("One ring takes {} as long as two on the NVLinks of a DGX-1.",
             AsLong(one, two, 1.5, two < 1.01 * bound));
  cell.Claim("A ring that crosses the PCIe tree at each step takes {} as long.",
             AsLong(across, along, 4,
                    Equal(Topology::PcieSwitch(8, 16e9), ring, zigzag)));
  cell.Claim(
      "A ring across machines takes {} as long as the book's seven steps.",
      Counted(
          dealt > 4 * steps && Equal(Topology::NvSwitch(64, 12.5e9),
                                     RingAcross(8, 8), Hierarchy(8, 8)),
          Say("%s against %s", FormatDuration(dealt), FormatDuration(steps)),
          FormatFactor(dealt / steps)));
  cell.Claim(
      Worded("%d workers with as many servers take {} as long as 4.", gpus),
      AsLong(many, few, 1, many_by_1 > 0.99 * gpus / 4 * few_by_1));
  cell.Claim("Run on 4 virtual devices, {} have the sum, bit for bit.",
             Counted(right[0] == 10 && right[1] == 0,
                     Say("without the copies %.0f", right[1]),
                     Say("%.0f of 10", right[0])));
}
// %%

}  // namespace d2l::multi_gpu
