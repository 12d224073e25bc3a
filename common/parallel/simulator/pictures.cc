#include "common/parallel/simulator/pictures.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/drawing/svg.h"
#include "common/parallel/collective/schedule.h"

namespace d2l {
namespace {

constexpr int kBarColumns = 36;
constexpr double kRowHeight = 18;
constexpr double kNameWidth = 150;
constexpr double kBarWidth = 320;

}  // namespace

Drawing DrawLinkLoads(const std::string& name, const Topology& topology,
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
      absl::StrFormat("%s: %.3f ms on a %s of %d devices; %d of %d links", name,
                      simulation.seconds * 1e3, topology.name(),
                      topology.ranks(), shown.size(), busy.size());
  Svg svg(kNameWidth + kBarWidth + 130,
          static_cast<double>(shown.size() + 2) * kRowHeight, heading);
  svg.Text(10, 14, heading, {12, "start"});
  std::string text = absl::StrCat(heading, "\n");
  double y = kRowHeight * 1.5;
  for (const std::size_t link : shown) {
    const double part =
        simulation.seconds > 0 ? busy[link] / simulation.seconds : 0;
    const std::string& label = topology.links()[link].name;
    const std::string figure =
        absl::StrFormat("%3.0f %% %8.3f ms", part * 100, busy[link] * 1e3);
    const auto marks = static_cast<int>(std::lround(part * kBarColumns));
    absl::StrAppendFormat(&text, "%-24s%s%s%s\n", label,
                          std::string(marks, '#'),
                          std::string(kBarColumns - marks, '.'), figure);
    svg.Text(kNameWidth - 8, y + 12, label, {11, "end"});
    svg.Rect(kNameWidth, y, kBarWidth, kRowHeight - 4, {"#eeeeee"});
    svg.Rect(kNameWidth, y, kBarWidth * part, kRowHeight - 4,
             {PaletteColour(0)}, absl::StrCat(label, ": ", figure));
    svg.Text(kNameWidth + kBarWidth + 8, y + 12, figure, {11, "start"});
    y += kRowHeight;
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
