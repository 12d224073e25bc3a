#include "common/parallel/simulator/simulator.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "common/device/topology.h"
#include "common/parallel/collective/schedule.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

constexpr double kMegabytes = 1e6;

double Milliseconds(const Topology& topology, AllReduceAlgorithm algorithm) {
  return 1e3 * Simulate(topology,
                        AllReduceSchedule(algorithm, topology.ranks()),
                        160 * kMegabytes)
                   .seconds;
}

// A copy from rank 1 to rank 0.
CollectiveSchedule OneCopy() {
  return CollectiveSchedule("copy", 2, 1,
                            [](CollectiveSchedule::Visitor visit) {
                              visit({0, 0, 1, 0, MoveOp::kCopy});
                            });
}

TEST(Simulator, GivesTheBooksFigures) {
  const Topology pcie = Topology::PcieSwitch(4, 16e9);
  EXPECT_DOUBLE_EQ(Milliseconds(pcie, AllReduceAlgorithm::kStar), 60);
  EXPECT_DOUBLE_EQ(Milliseconds(pcie, AllReduceAlgorithm::kHost), 80);
  EXPECT_DOUBLE_EQ(Milliseconds(pcie, AllReduceAlgorithm::kSplit), 15);
  // The book says 2 * 160 / 54 = 5.93, which is exact only for large n.
  const double exact = 2 * 7.0 / 8 * 160e6 / 54e9 * 1e3;
  EXPECT_NEAR(exact, 5.19, 5e-3);
  const Topology ring = Topology::Ring(8, 54e9);
  EXPECT_NEAR(Milliseconds(ring, AllReduceAlgorithm::kRing), exact, 1e-9);
  // Both directions at once: half of it each.
  EXPECT_NEAR(Milliseconds(ring, AllReduceAlgorithm::kBidirectionalRing),
              exact / 2, 1e-9);
  // At a switch a rank has one link each way, whatever the algorithm.
  for (const AllReduceAlgorithm algorithm :
       {AllReduceAlgorithm::kSplit, AllReduceAlgorithm::kRing,
        AllReduceAlgorithm::kBidirectionalRing}) {
    EXPECT_NEAR(Milliseconds(Topology::NvSwitch(8, 54e9), algorithm), exact,
                1e-9)
        << AllReduceAlgorithmName(algorithm);
  }
}

TEST(Simulator, ATransferTakesLatenciesAndTheSlowestLink) {
  Topology topology("two machines", 2, /*has_host=*/false);
  const int bridge = topology.AddSwitch("bridge");
  topology.Connect(0, bridge, 10e9, 3e-6);
  topology.Connect(bridge, 1, 1e9, 5e-6);
  const Simulation one = Simulate(topology, OneCopy(), 1 * kMegabytes);
  EXPECT_DOUBLE_EQ(one.seconds, 8e-6 + 1e-3);
  EXPECT_EQ(one.transfers, 1);
  EXPECT_EQ(one.bytes, 1e6);
  for (std::size_t link = 0; link < topology.links().size(); ++link) {
    const std::string& name = topology.links()[link].name;
    const bool used = name == "gpu1 > bridge" || name == "bridge > gpu0";
    EXPECT_DOUBLE_EQ(one.link_seconds[link], used ? one.seconds : 0) << name;
  }
}

TEST(Topologies, AreParsedByNameOrBySpeed) {
  for (const char* text : {"pcie", "nvlink", "nvswitch", "dgx1", "1e9,1e-6"}) {
    EXPECT_EQ(ParseTopology(text, 8)->ranks(), 8) << text;
  }
  const Topology any = *ParseTopology("1e9,2e-6", 5);
  EXPECT_DOUBLE_EQ(any.Seconds(any.Route(3, 1), 1e6), 1e-3 + 2e-6);
  for (const char* text : {"", "PCIE", "1e9", "1e9,", "-1,0", "1e9,-1", "nan,0",
                           "1e9,1,1", "dgx1 "}) {
    EXPECT_FALSE(ParseTopology(text, 8).ok()) << text;
  }
  EXPECT_FALSE(ParseTopology("dgx1", 9).ok());
}

std::vector<Topology> AllTopologies() {
  std::vector<Topology> all = {Topology::HybridCube(25e9, 2e-6),
                               Topology::Machines(4, 4, 50e9, 12e9)};
  for (const int ranks : {1, 2, 3, 5, 8}) {
    all.push_back(Topology::PcieSwitch(ranks, 16e9, 1e-6));
    all.push_back(Topology::PcieTree(ranks, 2, 16e9, 1e-6));
    all.push_back(Topology::Ring(ranks, 54e9));
    all.push_back(Topology::NvSwitch(ranks, 300e9, 1e-6));
  }
  return all;
}

// Every algorithm on every topology: the time is not below the bound; no link
// serves two transfers at once; nothing is read before it is written, or
// overwritten while it is read.
TEST(Simulator, KeepsTheRulesAndTheBounds) {
  for (const Topology& topology : AllTopologies()) {
    const int ranks = topology.ranks();
    std::vector<CollectiveSchedule> schedules;
    for (const AllReduceAlgorithm algorithm : kAllReduceAlgorithms) {
      CollectiveSchedule schedule = AllReduceSchedule(algorithm, ranks);
      if (schedule.uses_host() && !topology.has_host()) continue;
      schedules.push_back(std::move(schedule));
    }
    for (const CollectiveSchedule& schedule : schedules) {
      SCOPED_TRACE(schedule.name() + " on " + topology.name() + " of " +
                   std::to_string(ranks));
      const double bytes = 8 * kMegabytes;
      const Simulation run =
          Simulate(topology, schedule, bytes, /*keep_timeline=*/true);
      EXPECT_GE(run.seconds * (1 + 1e-12),
                LowerBound(topology, schedule, bytes));
      EXPECT_EQ(static_cast<std::size_t>(run.transfers), run.timeline.size());
      std::map<int, std::vector<std::pair<double, double>>> of_link;
      const double slack = run.seconds * 1e-12;
      const int host = topology.ranks();
      for (const Transfer& transfer : run.timeline) {
        EXPECT_LE(transfer.end, run.seconds);
        const auto node = [&](int rank) { return rank < ranks ? rank : host; };
        for (const int link :
             topology.Route(node(transfer.from), node(transfer.to))) {
          of_link[link].push_back({transfer.begin, transfer.end});
        }
      }
      for (auto& [link, times] : of_link) {
        std::sort(times.begin(), times.end());
        double busy = 0;
        for (std::size_t i = 0; i < times.size(); ++i) {
          busy += times[i].second - times[i].first;
          if (i == 0) continue;
          EXPECT_GE(times[i].first, times[i - 1].second - slack);
        }
        EXPECT_NEAR(busy, run.link_seconds[link], 1e-9 * busy);
        EXPECT_LE(busy, run.seconds * (1 + 1e-9));
      }
      // A chunk's copies along a path: each begins when the one before has
      // ended.
      std::map<std::pair<int, int>, double> written;
      for (const Transfer& transfer : run.timeline) {
        const auto source = written.find({transfer.from, transfer.chunk});
        if (source != written.end()) {
          EXPECT_GE(transfer.begin, source->second - slack);
        }
        double& end = written[{transfer.to, transfer.chunk}];
        end = std::max(end, transfer.end);
      }
    }
  }
}

TEST(Simulator, MovesTheBytesOfTheFormulas) {
  for (const int n : {2, 3, 4, 8}) {
    const Topology pcie = Topology::PcieSwitch(n, 16e9);
    for (const AllReduceAlgorithm algorithm : kAllReduceAlgorithms) {
      const bool host = algorithm == AllReduceAlgorithm::kHost;
      const Simulation run =
          Simulate(pcie, AllReduceSchedule(algorithm, n), 8 * kMegabytes);
      EXPECT_NEAR(run.bytes, (host ? 2 * n : 2 * (n - 1)) * 8e6, 1);
    }
  }
}

// 33.5 million transfers, and the closed form of their time.
TEST(Simulator, TakesThousandsOfDevices) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  const int n = 256;
#else
  const int n = 4'096;
#endif
  const double latency = 1e-6;
  const Topology nvswitch = Topology::NvSwitch(n, 50e9, latency);
  const Simulation run =
      Simulate(nvswitch, AllReduceSchedule(AllReduceAlgorithm::kRing, n), 1e9);
  EXPECT_EQ(run.transfers, std::int64_t{2} * n * (n - 1));
  const double step = 2 * latency + 1e9 / n / 50e9;
  EXPECT_NEAR(run.seconds, 2 * (n - 1) * step, 1e-9 * run.seconds);
  const Topology machines = Topology::Machines(64, n / 64, 300e9, 25e9);
  const CollectiveSchedule star =
      AllReduceSchedule(AllReduceAlgorithm::kStar, n);
  EXPECT_GE(Simulate(machines, star, 1e9).seconds,
            LowerBound(machines, star, 1e9));
}

TEST(Simulator, RefusesWhatDoesNotFit) {
  const Topology ring = Topology::Ring(4, 1e9);
  EXPECT_THROW(
      Simulate(ring, AllReduceSchedule(AllReduceAlgorithm::kSplit, 5), 1),
      std::invalid_argument);
  EXPECT_THROW(
      Simulate(ring, AllReduceSchedule(AllReduceAlgorithm::kHost, 4), 1),
      std::invalid_argument);
  EXPECT_THROW(Topology::Ring(0, 1e9), std::invalid_argument);
  EXPECT_THROW(Topology::Ring(2, 0), std::invalid_argument);
  const Topology apart("apart", 2, false);
  EXPECT_THROW(Simulate(apart, OneCopy(), 1), std::invalid_argument);
}

TEST(Pictures, ShowTheTwoRingsOfACube) {
  const Drawing cube = DrawCables("cube", Topology::HybridCube(18e9));
  EXPECT_EQ(cube.text,
            "36.0 GB/s  0-1, 0-7, 1-2, 2-3, 3-4, 4-5, 5-6, 6-7\n"
            "18.0 GB/s  0-3, 0-6, 1-6, 1-7, 2-4, 2-5, 3-5, 4-7\n");
  EXPECT_TRUE(absl::StrContains(cube.svg, ">36.0 GB/s<"));
  EXPECT_EQ(DrawCables("switch", Topology::NvSwitch(8, 54e9)).text, "")
      << "no cable connects two devices";
}

TEST(Pictures, ShowLinksAndCurves) {
  const Topology tree = Topology::PcieTree(4, 2, 16e9);
  const Simulation run = Simulate(
      tree, AllReduceSchedule(AllReduceAlgorithm::kRing, 4), 160 * kMegabytes);
  const Drawing all = DrawLinkLoads("ring", tree, run);
  for (const Link& link : tree.links()) {
    EXPECT_TRUE(absl::StrContains(all.text, link.name)) << link.name;
  }
  EXPECT_TRUE(absl::StrContains(all.text, "100 %")) << all.text;
  EXPECT_TRUE(absl::StrContains(all.name.english, "12 of 12 links"));
  EXPECT_TRUE(absl::StrContains(all.svg, "gpu0 &gt; switch0")) << all.svg;
  const Drawing few = DrawLinkLoads("ring", tree, run, 3);
  EXPECT_EQ(std::count(few.text.begin(), few.text.end(), '\n'), 3);

  const std::string with_cpu =
      PlotTimeByDevices({2, 4, 8}, 160e6, [](int devices) {
        return Topology::PcieSwitch(devices, 16e9);
      }).ToText();
  const std::string without =
      PlotTimeByDevices({2, 4, 8}, 160e6, [](int devices) {
        return Topology::NvSwitch(devices, 54e9);
      }).ToText();
  for (const char* line : {"split", "star", "ring", "bound"}) {
    EXPECT_TRUE(absl::StrContains(with_cpu, line)) << with_cpu;
    EXPECT_TRUE(absl::StrContains(without, line)) << without;
  }
  EXPECT_TRUE(absl::StrContains(with_cpu, "host")) << with_cpu;
  EXPECT_FALSE(absl::StrContains(without, "host")) << without;
}

}  // namespace
}  // namespace d2l
