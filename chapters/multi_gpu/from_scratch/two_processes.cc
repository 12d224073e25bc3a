#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "chapters/multi_gpu/cells.h"
#include "common/d2l.h"
#include "common/device/topology.h"
#include "common/parallel/mpi/mpi_world.h"
#include "common/parallel/simulator/simulator.h"

namespace d2l::multi_gpu {

// %% d2l/several-machines
// In each of two processes (MpiWorld: common/parallel/mpi/mpi_world.h): are the
// bits of the sum over both those of two devices of one process?
bool SumsAsOneProcess(MpiWorld& world, AllReduceAlgorithm algorithm,
                      std::int64_t n) {
  const Device cpu0 = Devices()[0].device, cpu1 = Devices()[1].device;
  const auto gradient = [n](int rank, Device device) {
    ManualSeed(rank, device);
    return Randn({n}, device);
  };
  const std::vector<Tensor> one_process = {gradient(0, cpu0),
                                           gradient(1, cpu1)};
  const Tensor mine = gradient(world.process(), cpu0);
  AllReduce(one_process, algorithm);
  world.AllReduceAsync({&mine, 1}, algorithm).Wait();
  const bool same = ToVector<float>(mine) == ToVector<float>(one_process[0]);
  return world.Gather(same ? 1 : 0) == std::vector<std::uint64_t>{1, 1};
}

// How long the sum over both takes. No algorithm: MPI_Allreduce.
double SecondsOfSum(MpiWorld& world, const Tensor& x,
                    std::optional<AllReduceAlgorithm> algorithm) {
  world.Gather(0);  // both begin together
  const Timer timer;
  world.AllReduceAsync({&x, 1}, algorithm).Wait();
  Synchronize(x.device());
  return timer.Seconds();
}
// %%

double SimulatedOverLink(AllReduceAlgorithm algorithm, double bytes,
                         double star_of_an_eighth, double star) {
  const double eighth = bytes / 8;
  const double speed =
      2 * (bytes - eighth) / std::max(star - star_of_an_eighth, 1e-9);
  const double latency = std::max(star_of_an_eighth / 2 - eighth / speed, 0.0);
  Topology link("two processes", /*ranks=*/2, /*has_host=*/false);
  link.Connect(0, 1, speed, latency);
  return Simulate(link, AllReduceSchedule(algorithm, 2), bytes).seconds;
}

}  // namespace d2l::multi_gpu
