// Pictures of what the simulator finds.
//
//   const Topology tree = Topology::PcieTree(8, 4, 16e9);
//   const Simulation run =
//       Simulate(tree, AllReduceSchedule(AllReduceAlgorithm::kRing, 8), 160e6);
//   cell.Show(DrawLinkLoads("A ring on a PCIe tree", tree, run));
//   cell.Show(PlotTimeByDevices({2, 4, 8, 16}, 160e6, [](int devices) {
//     return Topology::NvSwitch(devices, 54e9);
//   }).Draw("allreduce of 160 MB"));
//
// Pure functions.

#ifndef D2L_COMMON_PARALLEL_SIMULATOR_PICTURES_H_
#define D2L_COMMON_PARALLEL_SIMULATOR_PICTURES_H_

#include <functional>
#include <string>
#include <vector>

#include "common/drawing/drawing.h"
#include "common/drawing/plot.h"
#include "common/parallel/simulator/simulator.h"
#include "common/parallel/simulator/topology.h"

namespace d2l {

// For each link, in the topology's order, what part of the time it is busy. If
// there are more than `most`, the busiest.
Drawing DrawLinkLoads(const std::string& name, const Topology& topology,
                      const Simulation& simulation, int most = 32);

// The time of an allreduce of so many bytes by the number of devices, a line
// for each algorithm that the topologies allow, and the bound.
Plot PlotTimeByDevices(const std::vector<int>& devices, double bytes,
                       const std::function<Topology(int)>& topology_of);

}  // namespace d2l

#endif  // D2L_COMMON_PARALLEL_SIMULATOR_PICTURES_H_
