#include "common/drawing/roofline.h"

#include <algorithm>
#include <cstdint>
#include <string>

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
  Plot plot("operations for each byte", "", "GFLOP/s", "");
  plot.LogX().LogY();
  const KeyAverages averages(profile);
  double from = 0.1, to = 10;  // operations for each byte
  std::int64_t most_bytes = 0;
  for (const KeyAverage& row : averages.rows()) {
    if (row.cost.flop == 0 || row.self_device_nanos == 0) continue;
    const auto flop = static_cast<double>(row.cost.least_flop());
    const double intensity = flop / static_cast<double>(row.cost.bytes);
    plot.AddLine(Phrase("", row.name), {intensity},
                 {flop / static_cast<double>(row.self_device_nanos)});
    from = std::min(from, intensity);
    to = std::max(to, intensity);
    most_bytes = std::max(most_bytes, row.cost.bytes / row.measured_calls);
  }
  const Bandwidth* const slowest = &peaks.BandwidthOf(most_bytes);
  const Bandwidth* const fastest = &peaks.bandwidths.front();
  for (const Bandwidth* memory : {slowest, fastest}) {
    const double top = peaks.flop_per_second / 1e9;
    const double slope = memory->bytes_per_second / 1e9, ridge = top / slope;
    const double end = memory == slowest ? std::max(to, 2 * ridge) : ridge;
    plot.AddLine(
        Worded("%s, %s GB/s", Phrase(memory->name), FormatNumber(slope)),
        {from, std::max(from, ridge), std::max(from, end)},
        {std::min(top, slope * from), top, top});
    if (slowest == fastest) break;
  }
  return plot.Draw(name);
}

}  // namespace d2l
