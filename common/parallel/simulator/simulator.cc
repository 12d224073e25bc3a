#include "common/parallel/simulator/simulator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
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

// The links of a ring of equal cables. A route on it may have as many links as
// there are devices, so what is known of links is kept for ranges of them, and
// a search for the end of one passes 64 links at once.
//
// A lane is the links of one direction, in the order of a route, and a place is
// a link's number in it.
class RingLinks {
 public:
  // Null if the topology is no ring of at least three devices and nothing else,
  // or its cables differ.
  static std::unique_ptr<RingLinks> Of(const Topology& topology, double bytes) {
    const int ranks = topology.ranks();
    const std::vector<Link>& links = topology.links();
    if (ranks < 3 || topology.has_host() ||
        links.size() != 2 * static_cast<std::size_t>(ranks)) {
      return nullptr;
    }
    for (const Link& link : links) {
      if (link.bytes_per_second != links[0].bytes_per_second ||
          link.latency != links[0].latency) {
        return nullptr;
      }
    }
    std::unique_ptr<RingLinks> ring(new RingLinks(ranks));
    try {
      for (int rank = 0; rank < ranks; ++rank) {
        const int next = (rank + 1) % ranks;
        const std::vector<int> up = topology.Route(rank, next);
        const std::vector<int> down = topology.Route(next, rank);
        if (up.size() != 1 || down.size() != 1) return nullptr;
        ring->lanes_[0].links[rank] = up[0];
        ring->lanes_[1].links[ranks - 1 - next] = down[0];
      }
      // Of two equal ways the topology chooses one.
      for (int to = 0; to < ranks; ++to) {
        const int from = (to + ranks / 2) % ranks;
        ring->across_[to] =
            topology.Route(from, to)[0] == ring->lanes_[0].links[from] ? 0 : 1;
      }
    } catch (const std::invalid_argument&) {  // there is no route between some
      return nullptr;
    }
    std::vector<int> route;
    for (int count = 1; count <= ranks / 2; ++count) {
      route.push_back(0);
      ring->seconds_.push_back(topology.Seconds(route, bytes));
    }
    return ring;
  }

  // Makes a transfer as soon as all links of its route are free, and not before
  // `ready`. Returns its begin and end.
  std::pair<double, double> Make(int from, int to, double ready) {
    if (from == to) return {ready, ready};
    const int up = to >= from ? to - from : to - from + ranks_;
    const bool is_up = 2 * up == ranks_ ? across_[to] == 0 : 2 * up < ranks_;
    Lane& lane = lanes_[is_up ? 0 : 1];
    const int count = is_up ? up : ranks_ - up;
    const int place = is_up ? from : ranks_ - 1 - from;
    const int end = std::min(place + count, ranks_);
    const int wrapped = place + count - end;  // so many from place 0 on
    double begin = std::max(ready, FreeAt(lane, place, end));
    if (wrapped > 0) begin = std::max(begin, FreeAt(lane, 0, wrapped));
    const double done = begin + seconds_[count];
    Occupy(&lane, place, end, count, done);
    if (wrapped > 0) Occupy(&lane, 0, wrapped, count, done);
    return {begin, done};
  }

  // Writes how long each link was busy.
  void WriteBusy(std::vector<double>* link_seconds) const {
    for (const Lane& lane : lanes_) {
      for (std::size_t count = 0; count < lane.uses.size(); ++count) {
        int uses = 0;
        for (std::size_t i = 0; i < lane.uses[count].size(); ++i) {
          uses += lane.uses[count][i];
          (*link_seconds)[lane.links[i]] += uses * seconds_[count];
        }
      }
    }
  }

 private:
  struct Lane {
    std::vector<int> links;  // by place
    // A range of links that are free from the same time on: a bit at its first
    // place, and there the time.
    std::vector<std::uint64_t> starts;
    std::vector<double> free;
    // By the number of links of a route and by place: how many more such routes
    // have this link than have the one before.
    std::vector<std::vector<int>> uses;

    // The place where the range with this place starts.
    int StartOf(int place) const {
      int word = place / 64;
      const std::uint64_t bits = starts[word] << (63 - place % 64);
      if (bits != 0) return place - __builtin_clzll(bits);
      while (starts[--word] == 0) {
      }
      return word * 64 + 63 - __builtin_clzll(starts[word]);
    }
    // The start of the next range behind this place; the number of links if
    // there is none.
    int StartAfter(int place) const {
      const int size = static_cast<int>(links.size());
      if (++place >= size) return size;
      const std::uint64_t bits = starts[place / 64] >> (place % 64);
      if (bits != 0) return place + __builtin_ctzll(bits);
      for (std::size_t word = place / 64 + 1; word < starts.size(); ++word) {
        if (starts[word] == 0) continue;
        return static_cast<int>(word) * 64 + __builtin_ctzll(starts[word]);
      }
      return size;
    }
    void Flip(int place) {
      starts[place / 64] ^= std::uint64_t{1} << place % 64;
    }
  };

  explicit RingLinks(int ranks)
      : ranks_(ranks), across_(ranks), seconds_(1, 0) {
    for (Lane& lane : lanes_) {
      lane.links.resize(ranks);
      lane.starts.resize(ranks / 64 + 1);
      lane.Flip(0);
      lane.free.resize(ranks);
      lane.uses.resize(ranks / 2 + 1);
    }
  }

  static double FreeAt(const Lane& lane, int begin, int end) {
    double time = 0;
    for (int i = lane.StartOf(begin); i < end; i = lane.StartAfter(i)) {
      time = std::max(time, lane.free[i]);
    }
    return time;
  }

  void Occupy(Lane* lane, int begin, int end, int count, double until) const {
    const int start = lane->StartOf(begin);
    double last = lane->free[start];
    int next = lane->StartAfter(begin);
    for (; next < end; next = lane->StartAfter(next)) {
      last = lane->free[next];
      lane->Flip(next);
    }
    if (next != end) {  // the rest of the last range starts at `end`
      lane->Flip(end);
      lane->free[end] = last;
    }
    if (start != begin) lane->Flip(begin);
    lane->free[begin] = until;
    std::vector<int>& uses = lane->uses[count];
    uses.resize(ranks_);
    ++uses[begin];
    if (end < ranks_) --uses[end];
  }

  const int ranks_;
  std::array<Lane, 2> lanes_;    // to the next rank, and to the one before
  std::vector<int> across_;      // the lane from the opposite rank, by receiver
  std::vector<double> seconds_;  // of a chunk, by the number of links
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
        ring_(RingLinks::Of(topology, bytes_)),
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
    if (ring_ != nullptr) ring_->WriteBusy(&result_.link_seconds);
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

  // Makes a transfer as soon as all links of the route are free, and not before
  // `ready`. Returns its begin and end.
  std::pair<double, double> Occupy(const Route& route, double ready) {
    double begin = ready;
    for (const int link : route.links) begin = std::max(begin, free_[link]);
    const double end = begin + route.seconds;
    for (const int link : route.links) {
      free_[link] = end;
      result_.link_seconds[link] += route.seconds;
    }
    return {begin, end};
  }

  // Makes the transfer from that rank, not before `ready`; *written becomes its
  // end, if that is later.
  void Make(const Move& move, int rank, double ready, double* written) {
    Times& from = At(rank, move.chunk);
    ready = std::max(ready, from.written);
    const auto [begin, end] = ring_ != nullptr
                                  ? ring_->Make(rank, move.to, ready)
                                  : Occupy(RouteTo(move.to, rank), ready);
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
  const std::unique_ptr<RingLinks> ring_;  // null: each link by itself
  std::vector<Route> routes_;              // the last one to each rank
  std::vector<double> free_;               // when each link is
  std::vector<Move> sums_;                 // of one step
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
