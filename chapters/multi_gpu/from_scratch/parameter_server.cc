#include <vector>

#include "chapters/multi_gpu/cells.h"
#include "common/d2l.h"
#include "common/device/topology.h"
#include "common/parallel/simulator/simulator.h"

namespace d2l::multi_gpu {

// %% d2l/parameter-server
// The book's machines: 4 GPUs on a switch, or 8 in a ring of three NVLinks.
Topology BooksTopology(int gpus, double slower) {
  return gpus == 4 ? Topology::PcieSwitch(4, 16e9 / slower)
                   : Topology::Ring(8, 3 * 18e9 / slower);
}

// How long 160 MB of gradients take, in seconds: by the book's formulas, and
// simulated, message by message, over the same links. In common/parallel:
// Simulate in simulator/simulator.h, schedules in collective/schedule.h
std::vector<SimulatedServer> SimulateTheBook() {
  std::vector<SimulatedServer> servers = {
      {"4 GPUs, one adds", AllReduceAlgorithm::kStar, 4, 30e-3 + 30e-3},
      {"4 GPUs, the CPU adds", AllReduceAlgorithm::kHost, 4, 40e-3 + 40e-3},
      {"4 GPUs, each a quarter", AllReduceAlgorithm::kSplit, 4,
       7.5e-3 + 7.5e-3},
      {"8 GPUs, ring", AllReduceAlgorithm::kRing, 8, 2 * 160e6 / (3 * 18e9)},
  };
  for (SimulatedServer& server : servers) {
    const Topology topology = BooksTopology(server.gpus);
    const CollectiveSchedule schedule =
        AllReduceSchedule(server.algorithm, server.gpus);
    server.simulated = Simulate(topology, schedule, 160e6).seconds;
    server.bound = LowerBound(topology, schedule, 160e6);
  }
  return servers;
}
// %%

}  // namespace d2l::multi_gpu
