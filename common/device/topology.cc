#include "common/device/topology.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/base/console/language.h"

namespace d2l {

Topology::Topology(std::string name, int ranks, bool has_host)
    : name_(std::move(name)), ranks_(ranks), has_host_(has_host) {
  if (ranks < 1) {
    throw std::invalid_argument(
        absl::StrFormat("[topology] at least 1 device wanted; got %d", ranks));
  }
  for (int r = 0; r < ranks; ++r) AddSwitch(absl::StrCat("gpu", r));
  if (has_host) AddSwitch("cpu");
}

Topology Topology::PcieSwitch(int ranks, double bytes_per_second,
                              double latency) {
  Topology topology("PCIe switch", ranks, /*has_host=*/true);
  const int center = topology.AddSwitch("switch");
  for (int node = 0; node <= ranks; ++node) {
    topology.Connect(node, center, bytes_per_second, latency);
  }
  return topology;
}

Topology Topology::PcieTree(int ranks, int per_switch, double bytes_per_second,
                            double latency) {
  Topology topology("PCIe tree", ranks, /*has_host=*/true);
  int above = 0;
  for (int r = 0; r < ranks; ++r) {
    if (r % per_switch == 0) {
      above = topology.AddSwitch(absl::StrCat("switch", r / per_switch));
      topology.Connect(above, ranks, bytes_per_second, latency);
    }
    topology.Connect(r, above, bytes_per_second, latency);
  }
  return topology;
}

Topology Topology::Ring(int ranks, double bytes_per_second, double latency) {
  Topology topology("ring", ranks, /*has_host=*/false);
  for (int r = 0; r < ranks; ++r) {
    const int next = (r + 1) % ranks;
    // Two devices have one cable.
    if (next == r || (next == 0 && ranks == 2)) continue;
    topology.Connect(r, next, bytes_per_second, latency);
  }
  return topology;
}

Topology Topology::HybridCube(double bytes_per_second, double latency) {
  Topology topology("hybrid cube", 8, /*has_host=*/false);
  constexpr int kSingle[] = {0, 3, 5, 2, 4, 7, 1, 6};
  for (int i = 0; i < 8; ++i) {
    const int next = (i + 1) % 8;
    topology.Connect(i, next, 2 * bytes_per_second, latency);
    topology.Connect(kSingle[i], kSingle[next], bytes_per_second, latency);
  }
  return topology;
}

Topology Topology::NvSwitch(int ranks, double bytes_per_second,
                            double latency) {
  Topology topology("NVSwitch", ranks, /*has_host=*/false);
  const int center = topology.AddSwitch("switch");
  for (int r = 0; r < ranks; ++r) {
    topology.Connect(r, center, bytes_per_second, latency);
  }
  return topology;
}

Topology Topology::Machines(int machines, int each,
                            double device_bytes_per_second,
                            double network_bytes_per_second) {
  Topology topology("network", machines * each, /*has_host=*/false);
  const int network = topology.AddSwitch("network");
  for (int m = 0; m < machines; ++m) {
    const int machine = topology.AddSwitch(absl::StrCat("machine", m));
    topology.Connect(machine, network, network_bytes_per_second, 0);
    for (int d = 0; d < each; ++d) {
      topology.Connect(m * each + d, machine, device_bytes_per_second, 0);
    }
  }
  return topology;
}

int Topology::AddSwitch(const std::string& name) {
  names_.push_back(name);
  edges_.emplace_back();
  return static_cast<int>(names_.size()) - 1;
}

void Topology::Connect(int a, int b, double bytes_per_second, double latency) {
  if (bytes_per_second <= 0 || latency < 0) {
    throw std::invalid_argument(absl::StrFormat(
        "[topology] a link of %g bytes per second and %g seconds",
        bytes_per_second, latency));
  }
  for (const auto& [from, to] : {std::pair{a, b}, std::pair{b, a}}) {
    edges_[from].push_back({to, static_cast<int>(links_.size())});
    links_.push_back({absl::StrCat(names_.at(from), " > ", names_.at(to)),
                      bytes_per_second, latency});
  }
  ways_.clear();
}

// Breadth first from the destination. Every edge has one back.
const std::vector<Topology::Edge>& Topology::WaysTo(int to) const {
  if (ways_.empty()) ways_.resize(names_.size());
  std::vector<Edge>& ways = ways_.at(to);
  if (!ways.empty()) return ways;
  ways.assign(names_.size(), {-1, -1});
  std::vector<int> reached = {to};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (const Edge& out : edges_[reached[i]]) {
      if (out.node == to || ways[out.node].node >= 0) continue;
      for (const Edge& back : edges_[out.node]) {
        if (back.node == reached[i]) ways[out.node] = back;
      }
      reached.push_back(out.node);
    }
  }
  return ways;
}

std::vector<int> Topology::Route(int from, int to) const {
  const std::vector<Edge>& ways = WaysTo(to);
  std::vector<int> route;
  for (int node = from; node != to; node = ways[node].node) {
    if (ways[node].node < 0) {
      throw std::invalid_argument(
          absl::StrFormat("[topology] no way from %s to %s in the %s",
                          names_[from], names_[to], name_));
    }
    route.push_back(ways[node].link);
  }
  return route;
}

double Topology::Seconds(const std::vector<int>& route, double bytes) const {
  double seconds = 0;
  double speed = std::numeric_limits<double>::infinity();
  for (const int link : route) {
    seconds += links_[link].latency;
    speed = std::min(speed, links_[link].bytes_per_second);
  }
  return seconds + bytes / speed;
}

double Topology::Bandwidth(int rank) const {
  double sum = 0;
  for (const Edge& edge : edges_.at(rank)) {
    sum += links_[edge.link].bytes_per_second;
  }
  return sum;
}

absl::StatusOr<Topology> ParseTopology(const std::string& text, int ranks) {
  constexpr double kPcie = 16e9, kNvLink = 18e9;
  if (text == "pcie") return Topology::PcieSwitch(ranks, kPcie);
  if (text == "nvlink") return Topology::Ring(ranks, 3 * kNvLink);
  if (text == "nvswitch") return Topology::NvSwitch(ranks, 3 * kNvLink);
  if (text == "dgx1" && ranks <= 8) return Topology::HybridCube(kNvLink);
  const std::vector<std::string> numbers = absl::StrSplit(text, ',');
  double speed = 0, latency = 0;
  if (numbers.size() == 2 && absl::SimpleAtod(numbers[0], &speed) &&
      absl::SimpleAtod(numbers[1], &latency) && speed > 0 && latency >= 0 &&
      latency < 1) {
    // Two links are between any two devices.
    return Topology::PcieSwitch(ranks, speed, latency / 2);
  }
  return absl::InvalidArgumentError(
      Say("--link=%s asked for, with %d devices; there are pcie, nvlink, "
          "nvswitch, dgx1 (8 devices at most), and any speed and latency. Say "
          "--link=pcie, or --link=12.5e9,5e-6 for 12.5 GB/s and 5 us.",
          text, ranks));
}

}  // namespace d2l
