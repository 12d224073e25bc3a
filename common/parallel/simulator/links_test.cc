// Virtual devices over links: what runs agrees with what is simulated, by the
// devices' own clocks, beside whatever else the machine does.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "common/device/device_table.h"
#include "common/device/event.h"
#include "common/device/stream_stall.h"
#include "common/device/topology.h"
#include "common/parallel/collective/collective.h"
#include "common/parallel/collective/collective_testing.h"
#include "common/parallel/simulator/simulator.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

std::vector<Device> VirtualDevices(int count) {
  std::vector<Device> devices = Groups()[0];
  devices.resize(count);
  return devices;
}

// An event that all devices' next work waits for. The streams are stalled.
Event CommonBegin(const std::vector<Device>& devices) {
  Stream& first = CurrentStream(devices[0]);
  for (const Device device : devices) {
    first.Wait(CurrentStream(device).Record());
    first.Wait(CommunicationStream(device).Record());
  }
  const Event begin = first.Record();
  for (const Device device : devices) CurrentStream(device).Wait(begin);
  return begin;
}

// How long the allreduce takes on the devices' clocks.
double ElapsedSeconds(const std::vector<Tensor>& data,
                      const std::vector<Device>& devices,
                      AllReduceAlgorithm algorithm) {
  std::vector<Event> ends;
  Event begin;
  {
    // No stream runs out of work, which would let the host's time in.
    std::deque<StreamStall> stalls;
    for (const Device device : devices) {
      stalls.emplace_back(CurrentStream(device));
      stalls.emplace_back(CommunicationStream(device));
    }
    begin = CommonBegin(devices);
    AllReduce(data, algorithm);
    for (const Device device : devices) {
      ends.push_back(CurrentStream(device).Record());
    }
  }
  double milliseconds = 0;
  for (const Event& end : ends) {
    end.Synchronize();
    milliseconds = std::max(milliseconds, ElapsedTime(begin, end));
  }
  return 1e-3 * milliseconds;
}

// Chunks are equal, as the simulator has them.
constexpr std::int64_t kNumel = 24 * 500;

// Runs the algorithm on that many devices of the topology, checks the sums, and
// returns the seconds on the devices' clocks.
double RunSeconds(const Topology& topology, int ranks,
                  AllReduceAlgorithm algorithm) {
  const std::vector<Device> devices = VirtualDevices(ranks);
  const std::vector<Values> arrays = RandomArrays(ranks, kNumel);
  const std::vector<Tensor> data = Place(arrays, devices);
  for (const Device device : devices) Synchronize(device);
  VirtualTiming timing;
  timing.links = topology;
  double seconds = 0;
  {
    const VirtualTimingScope scope(timing);
    seconds = ElapsedSeconds(data, devices, algorithm);
  }
  const Values expected = Expected(arrays, algorithm);
  for (const Tensor& x : data) EXPECT_EQ(ToVector<float>(x), expected);
  return seconds;
}

double SimulatedSeconds(const Topology& topology, int ranks,
                        AllReduceAlgorithm algorithm) {
  return Simulate(topology, AllReduceSchedule(algorithm, ranks), 4.0 * kNumel)
      .seconds;
}

// Every device of the table needs a place.
int Places() { return static_cast<int>(Groups()[0].size()); }

class Links : public ::testing::Test {
 protected:
  void SetUp() override {
    if (Places() < 8) GTEST_SKIP() << "needs eight devices";
  }
};

TEST_F(Links, ASumTakesTheSimulatedTime) {
  const auto expect_same = [](const Topology& topology, int ranks,
                              AllReduceAlgorithm algorithm) {
    EXPECT_NEAR(RunSeconds(topology, ranks, algorithm),
                SimulatedSeconds(topology, ranks, algorithm), 1e-6)
        << topology.name() << ", " << ranks << ", "
        << AllReduceAlgorithmName(algorithm);
  };
  for (const int ranks : {2, 3, 4, 8}) {
    for (const AllReduceAlgorithm algorithm :
         {AllReduceAlgorithm::kStar, AllReduceAlgorithm::kHost,
          AllReduceAlgorithm::kSplit, AllReduceAlgorithm::kRing}) {
      expect_same(Topology::PcieSwitch(Places(), 40e6, 1e-5), ranks, algorithm);
      if (algorithm == AllReduceAlgorithm::kHost) continue;
      expect_same(Topology::NvSwitch(Places(), 40e6), ranks, algorithm);
    }
    expect_same(Topology::PcieTree(Places(), 2, 40e6), ranks,
                AllReduceAlgorithm::kStar);
  }
  ASSERT_EQ(Places(), 8);
  expect_same(Topology::Ring(8, 40e6), 8, AllReduceAlgorithm::kRing);
  expect_same(Topology::HybridCube(20e6), 8, AllReduceAlgorithm::kRing);
}

// Where transfers of several devices want the same link at the same time, the
// simulator takes the schedule's order, and devices the order in which they
// come. Neither is faster than the links.
TEST_F(Links, NoOrderIsFasterThanTheLinks) {
  for (const Topology& topology :
       {Topology::PcieTree(8, 2, 40e6), Topology::Ring(8, 40e6),
        Topology::HybridCube(20e6)}) {
    for (const AllReduceAlgorithm algorithm : kAllReduceAlgorithms) {
      const CollectiveSchedule schedule = AllReduceSchedule(algorithm, 8);
      if (schedule.uses_host() && !topology.has_host()) continue;
      const double seconds = RunSeconds(topology, 8, algorithm);
      EXPECT_GE(seconds, LowerBound(topology, schedule, 4.0 * kNumel) - 1e-6);
      EXPECT_LE(seconds, 3 * SimulatedSeconds(topology, 8, algorithm))
          << topology.name() << ", " << AllReduceAlgorithmName(algorithm);
    }
  }
}

}  // namespace
}  // namespace d2l
