// What an allreduce between processes takes, by each algorithm:
//
//   bazel build --config=mpi //common/parallel/mpi:mpi_benchmark
//   mpirun -np 2 bazel-bin/common/parallel/mpi/mpi_benchmark
//
// As root, mpirun wants --allow-run-as-root; with more processes than cores,
// --oversubscribe. The algorithms take turns; medians.

#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "common/base/format.h"
#include "common/base/statistics.h"
#include "common/base/timer.h"
#include "common/device/device_table.h"
#include "common/ops/ops.h"
#include "common/parallel/mpi/mpi_world.h"

namespace d2l {
namespace {

using Algorithm = std::optional<AllReduceAlgorithm>;

double Seconds(MpiWorld& world, const Tensor& x, Algorithm algorithm) {
  Synchronize(x.device());
  world.Gather(0);  // all begin together
  const Timer timer;
  world.AllReduceAsync({&x, 1}, algorithm).Wait();
  Synchronize(x.device());
  return timer.Seconds();
}

int Run() {
  const absl::StatusOr<std::unique_ptr<MpiWorld>> world = MpiWorld::Start({});
  if (!world.ok()) {
    std::cerr << world.status().message() << "\n";
    return 1;
  }
  const std::vector<Algorithm> algorithms = {
      std::nullopt, AllReduceAlgorithm::kSplit, AllReduceAlgorithm::kStar,
      AllReduceAlgorithm::kRing, AllReduceAlgorithm::kBidirectionalRing};
  const bool prints = (*world)->process() == 0;
  if (prints) {
    std::cout << absl::StrFormat("%d processes\n%10s", (*world)->processes(),
                                 "");
    for (const Algorithm algorithm : algorithms) {
      std::cout << absl::StrFormat(
          "  %18s",
          algorithm ? AllReduceAlgorithmName(*algorithm) : "MPI_Allreduce");
    }
    std::cout << "\n";
  }
  for (const std::int64_t bytes : {1 << 10, 1 << 16, 1 << 20, 1 << 26}) {
    const Tensor x = Zeros({bytes / 4});
    std::vector<std::vector<double>> seconds(algorithms.size());
    for (int round = 0; round < 11; ++round) {
      for (std::size_t i = 0; i < algorithms.size(); ++i) {
        const double took = Seconds(**world, x, algorithms[i]);
        if (round > 0) seconds[i].push_back(took);
      }
    }
    if (!prints) continue;
    std::cout << absl::StrFormat("%10s", FormatBytes(bytes));
    for (const std::vector<double>& of : seconds) {
      std::cout << absl::StrFormat("  %18s",
                                   FormatDuration(Summarize(of).median));
    }
    std::cout << "\n";
  }
  return 0;
}

}  // namespace
}  // namespace d2l

int main() { return d2l::Run(); }
