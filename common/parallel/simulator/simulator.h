// Simulator: the time of a schedule on a topology that need not exist.
//
//   const Topology pcie = Topology::PcieSwitch(4, 16e9);
//   const auto star = AllReduceSchedule(AllReduceAlgorithm::kStar, 4);
//   Simulate(pcie, star, 160e6).seconds;  // 0.060
//   const Topology tree = Topology::PcieTree(8, 4, 16e9);
//   const Simulation run =
//       Simulate(tree, AllReduceSchedule(AllReduceAlgorithm::kRing, 8), 160e6);
//   cell.Show(DrawLinkLoads("A ring on a PCIe tree", tree, run));
//   cell.Show(PlotTimeByDevices({2, 4, 8, 16}, 160e6, [](int devices) {
//     return Topology::NvSwitch(devices, 54e9);
//   }).Draw("allreduce of 160 MB"));
//
// A transfer waits for the chunk it reads and for the one it overwrites, then
// for every link of its route, and occupies all of them until it is done: for
// the sum of their latencies and its bytes at the speed of the slowest. Links
// serve transfers in the schedule's order. Of one step's sums, first one
// transfer of each is made, then the second of each, and so on, so that no two
// ranks read from the same one. Additions take no time.
//
// The book's figures for 160 MB come out exactly. Of 4 GPUs on PCIe, 16 GB/s:
// 60 ms if one GPU adds, 80 ms if the CPU does, and 15 ms if each GPU adds a
// quarter. For a ring of 8 GPUs with 3 NVLinks of 18 GB/s each way the book
// says about 6 ms, 2 * 160 MB / 54 GB/s = 5.93 ms. The simulator says 5.19 ms:
// a rank sends 2 (n - 1) chunks of an n-th, so the exact time is (n - 1) / n of
// the book's.
//
// Pure functions, except that a Topology keeps routes: one thread at a time for
// each.

#ifndef D2L_COMMON_PARALLEL_SIMULATOR_SIMULATOR_H_
#define D2L_COMMON_PARALLEL_SIMULATOR_SIMULATOR_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/base/console/language.h"
#include "common/device/topology.h"
#include "common/drawing/drawing.h"
#include "common/drawing/plot.h"
#include "common/parallel/collective/schedule.h"

namespace d2l {

// One transfer of a move. A sum has one for each other rank.
struct Transfer {
  int from;
  int to;
  int chunk;
  double begin;  // seconds
  double end;
};

struct Simulation {
  double seconds = 0;
  std::int64_t transfers = 0;
  double bytes = 0;                  // of all transfers, counted once
  std::vector<double> link_seconds;  // busy, by link
  std::vector<Transfer> timeline;    // if keep_timeline
};

// bytes: the size of each device's array, which is cut evenly. Throws
// std::invalid_argument if the topology has fewer devices than the schedule, no
// CPU where the schedule needs it, or no route between two.
Simulation Simulate(const Topology& topology,
                    const CollectiveSchedule& schedule, double bytes,
                    bool keep_timeline = false);

// A lower bound of an allreduce's time on that topology, without latencies:
// what some rank must receive, at the speed of the fastest rank's links.
double LowerBound(const Topology& topology, const CollectiveSchedule& schedule,
                  double bytes);

// For each link, in the topology's order, the part of the time that it is busy.
// Of more than `most` links, only the busiest.
Drawing DrawLinkLoads(const Phrase& name, const Topology& topology,
                      const Simulation& simulation, int most = 32);

// The devices in a circle, by rank, and a line for each cable that connects two
// of them; those of one speed have one colour.
Drawing DrawCables(const Phrase& name, const Topology& topology);

// The time of an allreduce of `bytes` by the number of devices, a line for each
// algorithm that the topologies allow, and the bound.
Plot PlotTimeByDevices(const std::vector<int>& devices, double bytes,
                       const std::function<Topology(int)>& topology_of);

}  // namespace d2l

#endif  // D2L_COMMON_PARALLEL_SIMULATOR_SIMULATOR_H_
