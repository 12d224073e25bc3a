// The time of an allreduce between processes, by each algorithm, beside the
// simulator's time for the same schedule:
//
//   bazel build //common/parallel:mpi_benchmark
//   mpirun -np 2 bazel-bin/common/parallel/mpi_benchmark
//
// As root, mpirun needs --allow-run-as-root; with more processes than cores,
// --oversubscribe. The algorithms take turns; the fastest of 20 counts, since
// other programs only add to the time.
//
// The simulator gets measurements of the same run: a link's latency and its
// speed for chunks of this size, by a ping-pong between two processes, one of
// which adds the received data to its own and sends the sum back, as an
// allreduce adds half of what it moves; and the time of a call that moves
// nothing. Processes that share a core share its link.

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "common/base/console/format.h"
#include "common/base/timer.h"
#include "common/device/device_table.h"
#include "common/device/topology.h"
#include "common/ops/ops.h"
#include "common/parallel/mpi/mpi_world.h"
#include "common/parallel/simulator/simulator.h"

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

double Fastest(const std::vector<double>& of) {
  return *std::min_element(of.begin(), of.end());
}

// A link: bytes take `latency` + bytes / bytes_per_second.
struct Speed {
  double latency;
  double bytes_per_second;
};

// Half of a round trip between processes 0 and 1; the others wait.
double HalfTurn(MpiWorld& world, std::int64_t bytes) {
  std::vector<float> x(bytes / 4, 1.0f), other(bytes / 4, 1.0f);
  const int count = static_cast<int>(x.size());
  const auto send = [&](int to) {
    MPI_Send(x.data(), count, MPI_FLOAT, to, 1, MPI_COMM_WORLD);
  };
  const auto receive = [&](std::vector<float>& into, int from) {
    MPI_Recv(into.data(), count, MPI_FLOAT, from, 1, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
  };
  std::vector<double> seconds;
  for (int i = 0; i < 40; ++i) {
    world.Gather(0);
    const Timer timer;
    if (world.process() == 0) {
      send(1);
      receive(x, 1);
    } else if (world.process() == 1) {
      receive(other, 0);
      MPI_Reduce_local(other.data(), x.data(), count, MPI_FLOAT, MPI_SUM);
      send(0);
    }
    seconds.push_back(timer.Seconds() / 2);
  }
  return Fastest(seconds);
}

// The speed for chunks of that size.
Speed Fit(MpiWorld& world, std::int64_t bytes) {
  constexpr std::int64_t kSmall = 256;
  const double small = HalfTurn(world, kSmall);
  const double large = HalfTurn(world, bytes);
  const double per_byte = std::max(1e-12, (large - small) / (bytes - kSmall));
  return {std::max(0.0, small - per_byte * kSmall), 1 / per_byte};
}

// Shares this machine's cores among processes; the memory is a switch.
Topology Cores(int processes, const Speed& speed) {
  const int cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  Topology topology("cores", processes, /*has_host=*/false);
  const int memory = topology.AddSwitch("memory");
  std::vector<int> nodes;
  for (int i = 0; i < processes; ++i) {
    if (i < cores) {  // a route has four links
      nodes.push_back(topology.AddSwitch(absl::StrFormat("core%d", i)));
      topology.Connect(nodes[i], memory, speed.bytes_per_second,
                       speed.latency / 4);
    }
    topology.Connect(i, nodes[i % cores], speed.bytes_per_second,
                     speed.latency / 4);
  }
  return topology;
}

int Run() {
  const absl::StatusOr<std::unique_ptr<MpiWorld>> started = MpiWorld::Start();
  if (!started.ok()) {
    std::cerr << started.status().message() << "\n";
    return 1;
  }
  MpiWorld& world = **started;
  const int n = world.processes();
  if (n < 2) {
    std::cerr << "Start two processes or more: mpirun -np 2\n";
    return 1;
  }
  const std::vector<Algorithm> algorithms = {
      std::nullopt, AllReduceAlgorithm::kSplit, AllReduceAlgorithm::kStar,
      AllReduceAlgorithm::kRing, AllReduceAlgorithm::kBidirectionalRing};
  const bool prints = world.process() == 0;

  std::vector<double> nothing;
  for (int i = 0; i < 21; ++i) {
    nothing.push_back(Seconds(world, Zeros({0}), AllReduceAlgorithm::kSplit));
  }
  const double call = Fastest(nothing);
  if (prints) {
    std::cout << absl::StrFormat(
        "%d processes; a call that moves nothing takes %s\n"
        "%10s  %-18s  %10s%-21s  %10s  %s\n",
        n, FormatDuration(call), "", "", "measured", kBandwidthsHead,
        "simulated", "ratio");
  }
  for (const std::int64_t bytes : {1 << 10, 1 << 16, 1 << 20, 1 << 26}) {
    const Tensor x = Zeros({bytes / 4});
    const Topology topology =
        Cores(n, Fit(world, std::max<std::int64_t>(1024, bytes / n)));
    std::vector<std::vector<double>> seconds(algorithms.size());
    for (int round = 0; round < 21; ++round) {
      for (std::size_t i = 0; i < algorithms.size(); ++i) {
        const double took = Seconds(world, x, algorithms[i]);
        if (round > 0) seconds[i].push_back(took);
      }
    }
    for (std::size_t i = 0; prints && i < algorithms.size(); ++i) {
      const double measured = Fastest(seconds[i]);
      std::cout << absl::StrFormat(
          "%10s  %-18s  %10s%s", FormatBytes(bytes),
          algorithms[i] ? AllReduceAlgorithmName(*algorithms[i])
                        : "MPI_Allreduce",
          FormatDuration(measured),
          FormatBandwidths(n, static_cast<double>(bytes), measured));
      if (algorithms[i]) {
        const double simulated =
            call + Simulate(topology, AllReduceSchedule(*algorithms[i], n),
                            static_cast<double>(bytes))
                       .seconds;
        std::cout << absl::StrFormat("  %10s  %.2f", FormatDuration(simulated),
                                     measured / simulated);
      }
      std::cout << "\n";
    }
  }
  return 0;
}

}  // namespace
}  // namespace d2l

int main() { return d2l::Run(); }
