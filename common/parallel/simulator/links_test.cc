// Virtual devices over links: what runs agrees with what is simulated, by the
// devices' own clocks, beside whatever else the machine does.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
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

TEST(Links, ASumTakesTheSimulatedTime) {
  constexpr std::int64_t kNumel = 8 * 1000;
  for (const int ranks : {2, 3, 4, 8}) {
    const std::vector<Device> devices = VirtualDevices(ranks);
    // Every table device needs a place.
    const int places = static_cast<int>(Groups()[0].size());
    std::vector<Topology> topologies = {
        Topology::PcieSwitch(places, 40e6, 1e-5),
        Topology::PcieTree(places, 2, 40e6), Topology::NvSwitch(places, 40e6)};
    if (ranks == places) {
      topologies.push_back(Topology::Ring(places, 40e6));
      if (places == 8) topologies.push_back(Topology::HybridCube(20e6));
    }
    for (const Topology& topology : topologies) {
      VirtualTiming timing;
      timing.links = topology;
      const VirtualTimingScope scope(timing);
      for (const AllReduceAlgorithm algorithm : kAllReduceAlgorithms) {
        const CollectiveSchedule schedule = AllReduceSchedule(algorithm, ranks);
        if (schedule.uses_host() && !topology.has_host()) continue;
        SCOPED_TRACE(absl::StrCat(topology.name(), ", ", ranks, ", ",
                                  AllReduceAlgorithmName(algorithm)));
        const std::vector<Values> arrays = RandomArrays(ranks, kNumel);
        const std::vector<Tensor> data = Place(arrays, devices);
        for (const Device device : devices) Synchronize(device);
        const double seconds = ElapsedSeconds(data, devices, algorithm);
        const double simulated =
            Simulate(topology, schedule, 4.0 * kNumel).seconds;
        EXPECT_NEAR(seconds, simulated, 1e-6);
        const Values expected = Expected(arrays, algorithm);
        for (const Tensor& x : data) EXPECT_EQ(ToVector<float>(x), expected);
      }
    }
  }
}

}  // namespace
}  // namespace d2l
