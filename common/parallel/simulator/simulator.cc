#include "common/parallel/simulator/simulator.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/console/format.h"
#include "common/base/console/text.h"
#include "common/drawing/bars.h"
#include "common/drawing/svg.h"

namespace d2l {
namespace {

// When a rank's chunk was written, and when the last transfer has read it.
struct Times {
  double written = 0;
  double read = 0;
};

class Simulator {
 public:
  Simulator(const Topology& topology, const CollectiveSchedule& schedule,
            double bytes, bool keep_timeline)
      : topology_(topology),
        ranks_(schedule.ranks()),
        participants_(schedule.participants()),
        chunks_(schedule.chunks()),
        bytes_(bytes / schedule.chunks()),
        keep_timeline_(keep_timeline),
        times_(static_cast<std::size_t>(participants_) * chunks_),
        routes_(participants_),
        free_(topology.links().size(), 0) {
    result_.link_seconds.resize(topology.links().size(), 0);
  }

  void Visit(const Move& move) {
    if (!sums_.empty() &&
        (move.op != MoveOp::kSum || move.step != sums_.back().step)) {
      AddSums();
    }
    if (move.op == MoveOp::kSum) {
      sums_.push_back(move);
      return;
    }
    Times& to = At(move.to, move.chunk);
    Make(move, move.from, std::max(to.written, to.read), &to.written);
  }

  Simulation Finish() {
    AddSums();
    return std::move(result_);
  }

 private:
  struct Route {
    int from = -1;
    std::vector<int> links;
    double seconds = 0;  // for a chunk
  };

  // By diagonals, in the order in which rings use memory: a step's transfers
  // are beside each other.
  Times& At(int rank, int chunk) {
    int diagonal = (chunk - rank) % chunks_;
    if (diagonal < 0) diagonal += chunks_;
    return times_[static_cast<std::size_t>(diagonal) * participants_ + rank];
  }

  // The CPU's memory is the node behind all devices of the topology.
  int NodeOf(int rank) const {
    return rank < ranks_ ? rank : topology_.ranks();
  }

  // A rank often receives from only one other, so its last route is kept.
  const Route& RouteTo(int to, int from) {
    Route& route = routes_[to];
    if (route.from == from) return route;
    route = {from, topology_.Route(NodeOf(from), NodeOf(to)), 0};
    route.seconds = topology_.Seconds(route.links, bytes_);
    return route;
  }

  // Makes the transfer from that rank, not before `ready`; *written becomes its
  // end, if that is later.
  void Make(const Move& move, int rank, double ready, double* written) {
    const Route& route = RouteTo(move.to, rank);
    Times& from = At(rank, move.chunk);
    double begin = std::max(ready, from.written);
    for (const int link : route.links) begin = std::max(begin, free_[link]);
    const double end = begin + route.seconds;
    for (const int link : route.links) {
      free_[link] = end;
      result_.link_seconds[link] += route.seconds;
    }
    from.read = std::max(from.read, end);
    *written = std::max(*written, end);
    result_.seconds = std::max(result_.seconds, end);
    result_.bytes += bytes_;
    ++result_.transfers;
    if (keep_timeline_) {
      result_.timeline.push_back({rank, move.to, move.chunk, begin, end});
    }
  }

  // Round by round: in round i rank r receives from rank r + i, and the CPU's
  // memory, number ranks_, from rank i.
  void AddSums() {
    std::vector<double> written(sums_.size(), 0);
    for (int round = 1; round <= ranks_; ++round) {
      for (std::size_t i = 0; i < sums_.size(); ++i) {
        const Move& sum = sums_[i];
        const int rank = (sum.to + round) % ranks_;
        if (rank != sum.to) Make(sum, rank, 0, &written[i]);
      }
    }
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      Times& to = At(sums_[i].to, sums_[i].chunk);
      to.written = std::max({written[i], to.written, to.read});
    }
    sums_.clear();
  }

  const Topology& topology_;
  const int ranks_;
  const int participants_;
  const int chunks_;
  const double bytes_;  // of a chunk
  const bool keep_timeline_;
  std::vector<Times> times_;
  std::vector<Route> routes_;  // the last one to each rank
  std::vector<double> free_;   // when each link is
  std::vector<Move> sums_;     // of one step
  Simulation result_;
};

void Check(const Topology& topology, const CollectiveSchedule& schedule) {
  if (topology.ranks() < schedule.ranks()) {
    throw std::invalid_argument(absl::StrFormat(
        "[simulate] %s of %d devices on a %s of %d", schedule.name(),
        schedule.ranks(), topology.name(), topology.ranks()));
  }
  if (schedule.uses_host() && !topology.has_host()) {
    throw std::invalid_argument(absl::StrFormat(
        "[simulate] \"%s\" adds in the CPU's memory, and the %s has none; "
        "choose another algorithm, or Topology::PcieSwitch or PcieTree",
        schedule.name(), topology.name()));
  }
}

}  // namespace

Simulation Simulate(const Topology& topology,
                    const CollectiveSchedule& schedule, double bytes,
                    bool keep_timeline) {
  Check(topology, schedule);
  Simulator simulator(topology, schedule, bytes, keep_timeline);
  schedule.ForEach([&](const Move& move) { simulator.Visit(move); });
  return simulator.Finish();
}

double LowerBound(const Topology& topology, const CollectiveSchedule& schedule,
                  double bytes) {
  Check(topology, schedule);
  const int ranks = schedule.ranks();
  if (ranks == 1) return 0;
  double speed = 0;
  for (int r = 0; r < ranks; ++r) {
    speed = std::max(speed, topology.Bandwidth(r));
  }
  const double others = (ranks - 1.0) / ranks;
  // If the CPU adds, a rank sends its array once and receives the sum once.
  // Else 2 (n - 1) arrays are received in all (P. Patarasuk and X. Yuan, 2009).
  return (schedule.uses_host() ? 1 : 2 * others) * bytes / speed;
}

Drawing DrawLinkLoads(const Phrase& name, const Topology& topology,
                      const Simulation& simulation, int most) {
  const std::vector<double>& busy = simulation.link_seconds;
  std::vector<std::size_t> shown(busy.size());
  std::iota(shown.begin(), shown.end(), 0);
  if (shown.size() > static_cast<std::size_t>(most)) {
    std::stable_sort(shown.begin(), shown.end(),
                     [&](auto a, auto b) { return busy[a] > busy[b]; });
    shown.resize(most);
    std::sort(shown.begin(), shown.end());
  }
  const std::string heading =
      Say("%s, SIMULATED: %s on %d devices; %d of %d links", name,
          FormatDuration(simulation.seconds), topology.ranks(), shown.size(),
          busy.size());
  std::vector<Bar> bars;
  for (const std::size_t link : shown) {
    const double part =
        simulation.seconds > 0 ? busy[link] / simulation.seconds : 0;
    const std::string& label = topology.links()[link].name;
    bars.push_back(
        {{label, label},
         absl::StrFormat("%3.0f %% %8.3f ms", part * 100, busy[link] * 1e3),
         busy[link]});
  }
  return DrawBars({heading, heading}, {bars});
}

Drawing DrawCables(const Phrase& name, const Topology& topology) {
  constexpr double kMiddle = 220, kRadius = 160, kDevice = 18, kKey = 20;
  constexpr double kTurn = 6.283185307;
  const int ranks = topology.ranks();
  // The two devices of each cable, the fastest cables first.
  std::map<double, std::vector<std::pair<int, int>>, std::greater<>> cables;
  for (int a = 0; a < ranks; ++a) {
    for (int b = a + 1; b < ranks; ++b) {
      const std::vector<int> route = topology.Route(a, b);
      if (route.size() > 1) continue;
      cables[topology.links()[route[0]].bytes_per_second].emplace_back(a, b);
    }
  }
  const auto x = [&](int rank) {
    return kMiddle + kRadius * std::sin(kTurn * rank / ranks);
  };
  const auto y = [&](int rank) {
    return kMiddle - kRadius * std::cos(kTurn * rank / ranks);
  };
  const double below = kMiddle + kRadius + kDevice + kKey;
  Svg svg(2 * kMiddle, below + kKey * static_cast<double>(cables.size()),
          name.shown);
  svg.Text(16, 24, name.shown, {14, "start", "#111111", true});
  std::string text;
  int kind = 0;
  for (const auto& [speed, devices] : cables) {
    const Svg::Stroke stroke = {PaletteColour(5 + kind), 3};
    const std::string label = FormatNumber(speed / 1e9) + " GB/s";
    const double key = below + kKey * kind++;
    svg.Line(16, key - 4, 46, key - 4, stroke);
    svg.Text(54, key, label, {12});
    const auto pair = [](std::string* out, const std::pair<int, int>& two) {
      absl::StrAppend(out, two.first, "-", two.second);
    };
    absl::StrAppend(&text,
                    Wrap(absl::StrJoin(devices, ", ", pair), label + "  "));
    for (const auto& [a, b] : devices) svg.Line(x(a), y(a), x(b), y(b), stroke);
  }
  for (int rank = 0; rank < ranks; ++rank) {
    svg.Circle(x(rank), y(rank), kDevice, {"#ffffff", "#333333"});
    svg.Text(x(rank), y(rank) + 5, absl::StrCat(rank), {14, "middle"});
  }
  return {name, text, svg.ToString()};
}

Plot PlotTimeByDevices(const std::vector<int>& devices, double bytes,
                       const std::function<Topology(int)>& topology_of) {
  Plot plot("devices", "", "time", "s");
  plot.LogX().LogY();
  std::vector<Topology> topologies;
  std::vector<double> x;
  for (const int count : devices) {
    topologies.push_back(topology_of(count));
    x.push_back(count);
  }
  std::vector<double> bounds;
  for (const AllReduceAlgorithm algorithm : kAllReduceAlgorithms) {
    std::vector<double> seconds;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const CollectiveSchedule schedule =
          AllReduceSchedule(algorithm, devices[i]);
      if (schedule.uses_host() && !topologies[i].has_host()) break;
      seconds.push_back(Simulate(topologies[i], schedule, bytes).seconds);
      if (algorithm != AllReduceAlgorithm::kSplit) continue;
      bounds.push_back(LowerBound(topologies[i], schedule, bytes));
    }
    if (seconds.size() != devices.size()) continue;
    plot.AddLine(AllReduceAlgorithmName(algorithm), x, seconds);
  }
  plot.AddLine("bound", x, bounds);
  return plot;
}

}  // namespace d2l
