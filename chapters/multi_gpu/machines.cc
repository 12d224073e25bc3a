// The cells of networks and of several machines, and their processes.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "chapters/multi_gpu/cells.h"
#include "common/base/child_process.h"
#include "common/base/undisturbed_timer.h"
#include "common/d2l.h"
#include "common/device/topology.h"
#include "common/lesson/cell/cell.h"
#include "common/lesson/run/fresh_process.h"
#include "common/parallel/mpi/mpi_world.h"
#include "common/parallel/simulator/simulator.h"

namespace d2l::multi_gpu {
namespace {

constexpr char kNetworksProbe[] = "multi_gpu/networks";
constexpr double kArray = 160e6;  // bytes

// On how many of the first `workers` devices the schedule leaves the sum of
// their arrays, bit for bit. These are whole numbers, whose sums are exact in
// any order. Without `copies` only the additions are made.
int Right(const CollectiveSchedule& schedule, int workers, bool copies) {
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
  const CollectiveSchedule run("allreduce", schedule.ranks(), schedule.chunks(),
                               [&](auto visit) {
                                 schedule.ForEach([&](const Move& move) {
                                   if (copies || move.op == MoveOp::kAdd)
                                     visit(move);
                                 });
                               });
  RunPlan("allreduce", MakePlan(run), data).Wait();
  return static_cast<int>(std::count_if(
      data.begin(), data.begin() + workers,
      [&](const Tensor& x) { return ToVector<float>(x) == expected; }));
}

// How many devices have the right sum, with the copies and without.
std::vector<double> OnFourDevices(const std::vector<std::string>&) {
  const absl::Status made = InitializeDevices("cpu:0,cpu:1,cpu:2,cpu:3");
  if (!made.ok()) throw std::runtime_error(std::string(made.message()));
  std::vector<double> right;
  for (const bool copies : {true, false}) {
    right.push_back(Right(Rings({{0, 1, 2, 3}, {0, 2, 1, 3}}), 4, copies) +
                    Right(Hierarchy(2, 2), 4, copies) +
                    Right(Servers(2, 2), 2, copies));
  }
  return right;
}

// Prints a line of the table, and draws how busy `links` links are.
double Print(Cell& cell, const Phrase& row, const Topology& topology,
             const CollectiveSchedule& schedule, int workers, int links = 0) {
  const Simulation run = Simulate(topology, schedule, kArray);
  const std::vector<double>& busy = run.link_seconds;
  const auto busiest = std::max_element(busy.begin(), busy.end());
  std::cout << absl::StrFormat("  %s%9s%s  %s\n", Padded(row, 27),
                               FormatDuration(run.seconds),
                               FormatBandwidths(workers, kArray, run.seconds),
                               topology.links()[busiest - busy.begin()].name);
  if (links > 0) cell.ShowIfVerbose(DrawLinkLoads(row, topology, run, links));
  return run.seconds;
}

// b / a, as a factor.
Judgement Ratio(double b, double a, bool holds) {
  return Counted(holds,
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
  const double seconds = Simulate(topology, a, kArray).seconds;
  return std::abs(Simulate(topology, b, kArray).seconds / seconds - 1) < 1e-6;
}

constexpr char kProbe[] = "multi_gpu/one_of_two";
constexpr int kRounds = 9;

// Of the processes.
using Flags = std::vector<std::uint64_t>;

constexpr AllReduceAlgorithm kShown[] = {AllReduceAlgorithm::kStar,
                                         AllReduceAlgorithm::kSplit,
                                         AllReduceAlgorithm::kRing};

// Runs in each of two processes. The first returns how many algorithms gave the
// bits of two devices of one process, and the times of each round: of an eighth
// by star, then of the whole by each algorithm and by MPI_Allreduce; after each
// time, 1 if it was undisturbed in both processes, else 0. There are more
// rounds if few are undisturbed.
std::vector<double> OneOfTwo(const std::vector<std::string>& arguments) {
  const absl::Status made = InitializeDevices("cpu:0,cpu:1");
  if (!made.ok()) throw std::runtime_error(std::string(made.message()));
  const auto world = MpiWorld::Start(/*timeout_seconds=*/20).value();
  const std::int64_t n = std::stoll(arguments[0]);
  int equal = 0;
  for (const AllReduceAlgorithm algorithm : kShown) {
    equal += SumsAsOneProcess(*world, algorithm, n) ? 1 : 0;
  }
  const Device cpu0 = Devices()[0].device;
  const Tensor part = Zeros({n / 8}, cpu0), whole = Zeros({n}, cpu0);
  std::vector<double> returned = {static_cast<double>(equal)};
  int undisturbed = 0;  // rounds
  const auto time = [&](const Tensor& x,
                        std::optional<AllReduceAlgorithm> algorithm) {
    const UndisturbedTimer timer;
    const double seconds = SecondsOfSum(*world, x, algorithm);
    const bool mine = timer.Read().undisturbed;
    const bool both = world->Gather(mine ? 1 : 0) == Flags{1, 1};
    returned.insert(returned.end(), {seconds, both ? 1.0 : 0.0});
    return both;
  };
  for (int round = 0;
       round <= kRounds || (undisturbed < kRounds && round <= 3 * kRounds);
       ++round) {
    bool all = time(part, AllReduceAlgorithm::kStar);
    for (const AllReduceAlgorithm algorithm : kShown) {
      all = time(whole, algorithm) && all;
    }
    all = time(whole, std::nullopt) && all;
    if (round == 0) returned.resize(1);  // the first round is the warm-up
    if (round > 0 && all) ++undisturbed;
  }
  return world->process() == 0 ? returned : std::vector<double>();
}

[[maybe_unused]] const bool registered =
    RegisterProbe(kProbe, OneOfTwo) &&
    RegisterProbe(kNetworksProbe, OnFourDevices);

// The status says why two processes cannot run here, and what to type.
absl::StatusOr<std::vector<double>> RunTwo(std::int64_t n) {
  if (MpiWorld::BuiltIn() &&
      RunProgram("mpirun", {"--version"}).exit_code == 0) {
    // Bound to a core, a process waits while another program has that core.
    return RunInFreshProcess(
        kProbe, {absl::StrCat(n)}, std::chrono::seconds(60),
        {"mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to",
         "none", "-np", "2"});
  }
  return absl::FailedPreconditionError(Say(
      "Open MPI is not installed, or was not when this program was built: %s",
      "sudo apt-get install libopenmpi-dev openmpi-bin && bazel shutdown "
      "&& bazel run //chapters/multi_gpu:lesson -- "
      "--cell=d2l/several-machines"));
}

// "16.4 ms, 4.09 GB/s": of two ranks, busbw is algbw.
std::string WithBandwidth(const Summary& time, std::int64_t n) {
  return absl::StrFormat("%s, %s GB/s", FormatMedian(time, "s"),
                         FormatNumber(4e-9 * n / time.median));
}

void ShowNothing(Cell& cell, const absl::Status& why) {
  if (!absl::IsFailedPrecondition(why)) {
    return cell.Check(false, absl::StrCat("two processes: ", why.message()));
  }
  std::cout
      << Wrap(Say("With Open MPI, two processes would start here, with a "
                  "device each. A table would show the time of each schedule "
                  "between the two processes, the time between two devices of "
                  "one process, and the simulator's prediction."),
              "  ")
      << Wrap(std::string(why.message()), "  ");
  const Judgement none = {Verdict::kInconclusive, "", Say("not measured")};
  const std::string because = Say("There were no two processes: see above.");
  cell.Claim(
      "Sums between processes equal those within one process, bit for bit.",
      none, because);
  cell.Claim("Given the link's speed, the simulator predicts the split's time.",
             none, because);
}

}  // namespace

// %% d2l/networks, measured
void Networks(Cell& cell) {
  const std::vector<int> order = {0, 1, 2, 3, 4, 5, 6, 7};
  const CollectiveSchedule ring = Rings({order});
  const auto both = Rings({order, order, {0, 3, 5, 2, 4, 7, 1, 6}});
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
  const double two = Print(cell, "NVLink cube, two rings", cube, both, 8);
  cell.ShowIfVerbose(DrawCables("NVLink cube", cube));
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
  const double bound = 2 * LowerBound(cube, both, kArray);
  const auto right = RunInFreshProcess(kNetworksProbe, {}).value();
  cell.Claim("On the NVLinks of a DGX-1 one ring takes longer than two: {}.",
             Ratio(one, two, one > 1.4 * two && two < 1.01 * bound));
  cell.Claim("A ring that crosses the PCIe tree at each step takes longer: {}.",
             Ratio(across, along,
                   across > 2 * along &&
                       Equal(Topology::PcieSwitch(8, 16e9), ring, zigzag)));
  cell.Claim(
      "A ring across machines takes longer than the book's seven steps: {}.",
      Ratio(dealt, steps,
            dealt > 4 * steps && Equal(Topology::NvSwitch(64, 12.5e9),
                                       RingAcross(8, 8), Hierarchy(8, 8))));
  cell.Claim(
      Worded("%d workers with as many servers take no longer than 4: {}.",
             gpus),
      Ratio(many, few, many < 1.01 * few && many_by_1 > gpus / 5 * few_by_1));
  cell.Claim(
      "On 4 virtual devices all schedules give the right sum, bit for bit: {}.",
      Counted(right[0] == 10 && right[1] == 0,
              Say("without the copies %.0f", right[1]),
              Say("%.0f of 10", right[0])));
}
// %%
D2L_CELL("d2l/networks", Networks);

// The times that the two processes returned: of a star with an eighth of the
// array, of each algorithm, and of MPI_Allreduce.
static std::vector<Figure> TwoProcesses(Cell& cell,
                                        const std::vector<double>& returned) {
  std::vector<TimedRepeats> timed = {
      {"star, an eighth of the array, two processes", {}}};
  for (const AllReduceAlgorithm algorithm : kShown) {
    timed.push_back(
        {Worded("%s, two processes", Phrase(AllReduceAlgorithmName(algorithm))),
         {}});
  }
  timed.push_back({"MPI_Allreduce", {}});
  for (std::size_t i = 1; i < returned.size(); i += 2) {
    timed[(i - 1) / 2 % timed.size()].repeats.push_back(
        {returned[i], returned[i + 1] == 1});
  }
  return cell.ReportTimes("cpu:0 of each, virtual", timed);
}

// %% d2l/several-machines, measured
// TwoProcesses stands above this cell.
void SeveralMachines(Cell& cell) {
  const std::int64_t n = cell.BySize(1 << 18, 1 << 22, 1 << 24);
  const absl::StatusOr<std::vector<double>> returned = RunTwo(n);
  if (!returned.ok()) return ShowNothing(cell, returned.status());
  const std::vector<Device> devices = AtMostTwo();
  std::vector<Tensor> data;
  for (const Device device : devices) data.push_back(Zeros({n}, device));
  std::vector<Alternative> alternatives;
  for (const AllReduceAlgorithm algorithm : kShown) {
    alternatives.push_back(
        {Worded("%s, one process", Phrase(AllReduceAlgorithmName(algorithm))),
         devices, [&data, algorithm] { AllReduce(data, algorithm); }});
  }
  const Timings one = cell.TimeInterleaved(alternatives);
  const std::vector<Figure> two = TwoProcesses(cell, *returned);
  std::vector<Figure> simulated;
  std::cout << absl::StrFormat(
      "  %-13s%s%s%s\n", FormatBytes(4 * n), Padded("one process", -21),
      Padded("two processes", -21), Padded("simulated", -21));
  for (std::size_t i = 0; i < std::size(kShown); ++i) {
    const Phrase name = AllReduceAlgorithmName(kShown[i]);
    const Figure& measured = two[1 + i];
    simulated.push_back(cell.Report(
        PerRepeat(Worded("%s, simulated", name), "s", two[0], two[1],
                  [&](double part, double star) {
                    return SimulatedOverLink(kShown[i], 4.0 * n, part, star);
                  })));
    std::cout << absl::StrFormat("  %-13s%21s%21s%21s\n", name.english,
                                 WithBandwidth(one[i].completion.value, n),
                                 WithBandwidth(measured.value, n),
                                 WithBandwidth(simulated[i].value, n));
  }
  std::cout << absl::StrFormat("  %-13s%21s%21s\n", "MPI_Allreduce", "",
                               WithBandwidth(two.back().value, n));
  cell.Claim("Sums between processes equal those of one, bit for bit: {}.",
             Counted(returned->front() == 3, "needs 3",
                     Say("%.0f of 3 algorithms", returned->front())));
  cell.Claim(
      "Given the link's speed, the simulator predicts the split's time: {}.",
      AboutEqual(simulated[1], two[2], 1.25),
      simulated[1].value.median < two[2].value.median
          ? Say("The star's transfers take turns; the split's transfers share "
                "cores and memory.")
          : Say("The simulator says %s, measured are %s.",
                FormatMedian(simulated[1].value, "s"),
                FormatMedian(two[2].value, "s")));
}
// %%
D2L_CELL("d2l/several-machines", SeveralMachines);

}  // namespace d2l::multi_gpu
