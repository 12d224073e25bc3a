// Topology: which devices are connected by which links, for the simulator
// (parallel/simulator) and for virtual devices (cpu/virtual_timing.h).
//
//   const Topology pcie = Topology::PcieSwitch(4, 16e9);
//   for (const int link : pcie.Route(0, 3)) {
//     std::cout << pcie.links()[link].name << "\n";  // "gpu0 > switch", …
//   }
//
// Nodes are devices, the CPU's memory and switches. Devices come first: rank r
// is node r, and the CPU's memory, where there is one, is node ranks(). A link
// takes `latency` and bytes / bandwidth for each transfer, one after the other.
// A cable is two links, one for each direction.
//
// A route is a shortest one by the number of links; among equal ones the choice
// is always the same.
//
// Values; Route caches its results and is not thread-safe.

#ifndef D2L_COMMON_DEVICE_TOPOLOGY_H_
#define D2L_COMMON_DEVICE_TOPOLOGY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace d2l {

// Stands for the CPU's memory where the number of ranks is not known.
inline constexpr int kHostNode = -1;

struct Link {
  std::string name;  // "gpu0 > switch"
  double bytes_per_second;
  double latency;  // seconds
};

class Topology {
 public:
  // Without links. has_host: the CPU's memory is a node.
  Topology(std::string name, int ranks, bool has_host);

  // Devices and the CPU on one switch, which connects all of them at full
  // speed: the book's machine.
  static Topology PcieSwitch(int ranks, double bytes_per_second,
                             double latency = 0);
  // Switches of `per_switch` devices each, connected by the CPU's root complex.
  static Topology PcieTree(int ranks, int per_switch, double bytes_per_second,
                           double latency = 0);
  // Each device is connected with the next, the last with the first.
  static Topology Ring(int ranks, double bytes_per_second, double latency = 0);
  // The eight V100s of an NVIDIA DGX-1, six NVLinks of this speed each: two
  // rings, 0 1 2 3 4 5 6 7 with two links from each to the next, as one cable,
  // and 0 3 5 2 4 7 1 6 with one.
  static Topology HybridCube(double bytes_per_second, double latency = 0);
  // A switch that connects all devices at full speed; no CPU.
  static Topology NvSwitch(int ranks, double bytes_per_second,
                           double latency = 0);
  // Machines of `each` devices on a switch of their own, which has one cable to
  // the network: a switch that connects all machines at full speed.
  static Topology Machines(int machines, int each,
                           double device_bytes_per_second,
                           double network_bytes_per_second);

  // Adds a switch, and returns its node.
  int AddSwitch(const std::string& name);
  void Connect(int a, int b, double bytes_per_second, double latency);

  const std::string& name() const { return name_; }
  int ranks() const { return ranks_; }
  bool has_host() const { return has_host_; }
  const std::vector<Link>& links() const { return links_; }

  // The links from one node to another, in order. Throws std::invalid_argument
  // if there is no way.
  std::vector<int> Route(int from, int to) const;

  // How long a transfer of `bytes` takes on that way: the sum of the latencies,
  // and the bytes at the speed of the slowest link.
  double Seconds(const std::vector<int>& route, double bytes) const;

  // The bytes per second that all of a rank's links can receive together.
  double Bandwidth(int rank) const;

 private:
  struct Edge {
    int node;  // at its other end
    int link;
  };

  const std::vector<Edge>& WaysTo(int to) const;

  std::string name_;
  int ranks_;
  bool has_host_;
  std::vector<std::string> names_;        // of the nodes
  std::vector<std::vector<Edge>> edges_;  // out of each node
  std::vector<Link> links_;
  // For each destination of a Route call, the first edge from each node.
  mutable std::vector<std::vector<Edge>> ways_;
};

// The topology that `text` names, for so many devices: "pcie", "nvlink" (a
// ring), "nvswitch", with the book's speeds, or "dgx1", which has 8; or, as
// "12.5e9,5e-6", all on one switch, with that many bytes per second and that
// latency between any two. InvalidArgument for other texts, with what to type.
absl::StatusOr<Topology> ParseTopology(const std::string& text, int ranks);

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_TOPOLOGY_H_
