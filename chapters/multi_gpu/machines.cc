// The cell of several machines, and what each of its processes does.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <iterator>
#include <memory>
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
#include "common/d2l.h"
#include "common/lesson/cell/cell.h"
#include "common/lesson/run/fresh_process.h"
#include "common/parallel/mpi/mpi_world.h"

namespace d2l::multi_gpu {
namespace {

constexpr char kProbe[] = "multi_gpu/one_of_two";
constexpr int kRounds = 9;

constexpr AllReduceAlgorithm kShown[] = {AllReduceAlgorithm::kStar,
                                         AllReduceAlgorithm::kSplit,
                                         AllReduceAlgorithm::kRing};

// In each of two processes. The first returns how many algorithms gave the bits
// of two devices of its own, and for each round the times: of an eighth by
// star, then of all by each algorithm and by MPI_Allreduce.
std::vector<double> OneOfTwo(const std::vector<std::string>& arguments) {
  const absl::Status made = InitializeDevices("cpu:0,cpu:1");
  if (!made.ok()) throw std::runtime_error(std::string(made.message()));
  const auto world = MpiWorld::Start({/*timeout_seconds=*/20}).value();
  const std::int64_t n = std::stoll(arguments[0]);
  int equal = 0;
  for (const AllReduceAlgorithm algorithm : kShown) {
    equal += SumsAsOneProcess(*world, algorithm, n) ? 1 : 0;
  }
  const Device cpu0 = Devices()[0].device;
  const Tensor part = Zeros({n / 8}, cpu0), whole = Zeros({n}, cpu0);
  std::vector<double> returned = {static_cast<double>(equal)};
  for (int round = 0; round <= kRounds; ++round) {
    if (round == 1) returned.resize(1);  // the first was to warm up
    returned.push_back(SecondsOfSum(*world, part, AllReduceAlgorithm::kStar));
    for (const AllReduceAlgorithm algorithm : kShown) {
      returned.push_back(SecondsOfSum(*world, whole, algorithm));
    }
    returned.push_back(SecondsOfSum(*world, whole, std::nullopt));
  }
  return world->process() == 0 ? returned : std::vector<double>();
}

[[maybe_unused]] const bool registered = RegisterProbe(kProbe, OneOfTwo);

// The status says why there are no two processes here, and what to type.
absl::StatusOr<std::vector<double>> RunTwo(std::int64_t n) {
  if (MpiWorld::BuiltIn() &&
      RunProgram("mpirun", {"--version"}).exit_code == 0) {
    return RunInFreshProcess(
        kProbe, {absl::StrCat(n)}, std::chrono::seconds(60),
        {"mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "2"});
  }
  return absl::FailedPreconditionError(
      Say("Open MPI is missing, or was when this program was built: %s",
          "sudo apt-get install libopenmpi-dev openmpi-bin && bazel shutdown "
          "&& bazel run //chapters/multi_gpu:lesson -- "
          "--cell=d2l/several-machines"));
}

// "16.4 ms, 4.09 GB/s": of two ranks, busbw is algbw.
std::string WithBandwidth(const Summary& time, std::int64_t n) {
  const double busbw = AllReduceBandwidths(2, 4.0 * n, time.median).busbw;
  return absl::StrFormat("%s, %s GB/s", FormatMedian(time, "s"),
                         FormatNumber(busbw / 1e9));
}

void ShowNothing(Cell& cell, const absl::Status& why) {
  if (!absl::IsFailedPrecondition(why)) {
    return cell.Check(false, absl::StrCat("two processes: ", why.message()));
  }
  std::cout
      << Wrap(Say("Two processes would be started here, with a device each. A "
                  "table would show what each algorithm takes between them, "
                  "beside two devices of one process and beside the "
                  "simulator's prediction."),
              "  ")
      << Wrap(std::string(why.message()), "  ");
  const Judgement none = {Verdict::kInconclusive, "", Say("not measured")};
  const std::string because = Say("There were no two processes: see above.");
  cell.Claim("Between processes sums have the bits of one process.", none,
             because);
  cell.Claim("Between processes the split takes longer.", none, because);
  cell.Claim("Told the link, the simulator says what the split takes.", none,
             because);
}

}  // namespace

// %% d2l/several-machines, measured
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
  const auto two = [&](const Phrase& label, int column) {
    std::vector<double> samples;
    for (int round = 0; round < kRounds; ++round) {
      samples.push_back(returned->at(1 + 5 * round + column));
    }
    return cell.Report(Sampled(label, "cpu:0 of each, virtual", "s", samples));
  };
  const Figure eighth = two("star of an eighth, two processes", 0);
  std::vector<Figure> measured, simulated;
  std::cout << absl::StrFormat(
      "  %-13s%s%s%s\n", FormatBytes(4 * n), Padded("one process", -21),
      Padded("two processes", -21), Padded("simulated", -21));
  for (std::size_t i = 0; i < std::size(kShown); ++i) {
    const Phrase name = AllReduceAlgorithmName(kShown[i]);
    measured.push_back(two(Worded("%s, two processes", name), 1 + i));
    simulated.push_back(cell.Report(
        PerRepeat(Worded("%s, simulated", name), "s", eighth, measured[0],
                  [&](double part, double star) {
                    return SimulatedOverLink(kShown[i], 4.0 * n, part, star);
                  })));
    std::cout << absl::StrFormat("  %-13s%21s%21s%21s\n", name.english,
                                 WithBandwidth(one[i].completion.value, n),
                                 WithBandwidth(measured[i].value, n),
                                 WithBandwidth(simulated[i].value, n));
  }
  std::cout << absl::StrFormat("  %-13s%21s%21s\n", "MPI_Allreduce", "",
                               WithBandwidth(two("MPI_Allreduce", 4).value, n));
  cell.Claim("Between processes sums have the bits of one process: {}.",
             Counted(returned->front() == 3, "needs 3",
                     Say("%.0f of 3 algorithms", returned->front())));
  cell.Claim(
      "Between processes the split takes {} as long.",
      OnSeveral(Less(one[1].completion, measured[1], kClearly)),
      OneDeviceOr(Say("Both copy within one memory, MPI by way of a part of it "
                      "that the processes share.")));
  cell.Claim(
      "Told the link, the simulator says {} of what the split takes.",
      AboutEqual(simulated[1], measured[1], 1.25),
      Say("Star's transfers take turns. The split's share cores and memory."));
}
// %%

}  // namespace d2l::multi_gpu
