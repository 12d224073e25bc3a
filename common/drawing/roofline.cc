#include "common/drawing/roofline.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/console/format.h"
#include "common/base/console/language.h"
#include "common/drawing/drawing.h"
#include "common/drawing/plot.h"
#include "common/drawing/svg.h"
#include "common/profiler/key_averages.h"
#include "common/profiler/peaks.h"
#include "common/profiler/profile.h"

namespace d2l {
Drawing DrawRoofline(const Profile& profile, const Phrase& name) {
  const Peaks peaks =
      profile.devices.empty() ? Peaks() : profile.devices[0].peaks;
  if (!peaks.measured()) {
    const std::string why =
        Say("There is no roof: the peaks of the device were not measured.\n");
    return {name, why, TextAsSvg(why, name.shown)};
  }
  const KeyAverages averages(profile);
  double from = 0.1, to = 10;  // operations for each byte
  std::int64_t most_bytes = 0;
  std::vector<const KeyAverage*> rows;
  for (const KeyAverage& row : averages.rows()) {
    if (row.cost.flop == 0 || row.self_device_nanos == 0) continue;
    rows.push_back(&row);
    const double intensity = static_cast<double>(row.cost.flop) /
                             static_cast<double>(row.cost.bytes);
    from = std::min(from, intensity);
    to = std::max(to, intensity);
    most_bytes = std::max(most_bytes, row.cost.bytes / row.measured_calls);
  }

  Plot plot("operations for each byte", "", "GFLOP/s", "");
  plot.LogX().LogY();
  const double top = peaks.flop_per_second / 1e9;
  const auto add_roof = [&](const Bandwidth& memory, bool all) {
    const double slope = memory.bytes_per_second / 1e9;
    const double ridge = top / slope;
    std::vector<double> x = {from, std::max(from, ridge)};
    if (all) x.push_back(std::max(to, 2 * ridge));
    std::vector<double> y;
    for (const double at : x) y.push_back(std::min(top, slope * at));
    plot.AddLine(
        Worded("%s, %s GB/s", Phrase(memory.name), FormatNumber(slope)), x, y);
  };
  add_roof(peaks.BandwidthOf(most_bytes), /*all=*/true);
  if (peaks.bandwidths.size() > 1) {
    add_roof(peaks.bandwidths.front(), /*all=*/false);
  }
  for (const KeyAverage* row : rows) {
    const auto flop = static_cast<double>(row->cost.flop);
    plot.AddLine(Phrase("", row->name),
                 {flop / static_cast<double>(row->cost.bytes)},
                 {flop / static_cast<double>(row->self_device_nanos)});
  }
  return plot.Draw(name);
}

}  // namespace d2l
