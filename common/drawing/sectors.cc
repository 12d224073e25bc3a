#include "common/drawing/sectors.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/console/language.h"
#include "common/drawing/drawing.h"
#include "common/drawing/svg.h"
#include "common/kernels/cuda/fake/check.h"

namespace d2l {
namespace {

using kernels::cuda::kSectorBytes;
using kernels::cuda::kWordBytes;
constexpr int kWords = kSectorBytes / kWordBytes;

// For each sector, the first lane that uses each word; "" if none does.
using Sectors = std::map<std::int64_t, std::vector<std::string>>;

Sectors SectorsOf(const std::vector<std::int64_t>& first) {
  Sectors sectors;
  for (std::size_t lane = 0; lane < first.size(); ++lane) {
    if (first[lane] < 0) continue;
    std::vector<std::string>& words = sectors[first[lane] / kSectorBytes];
    words.resize(kWords);
    std::string& word = words[first[lane] % kSectorBytes / kWordBytes];
    if (word.empty()) word = absl::StrCat(lane);
  }
  return sectors;
}

std::string ToText(const Sectors& sectors, const std::string& head) {
  constexpr std::size_t kRows = 4;
  std::string text = head + "\n";
  std::size_t row = 0;
  for (const auto& [number, words] : sectors) {
    if (row++ == kRows) {
      return text + Say("... and %d more", sectors.size() - kRows) + "\n";
    }
    std::string line;
    for (const std::string& lane : words) {
      absl::StrAppendFormat(&line, "%3s", lane.empty() ? "." : lane);
    }
    absl::StrAppend(&text, Say("sector %4d |%s |", number, line), "\n");
  }
  return text;
}

std::string ToSvg(const Sectors& sectors, const Phrase& name,
                  const std::string& head) {
  constexpr int kAcross = 4;  // as many as 32 neighbouring words fill
  constexpr double kWord = 18, kLeft = 16, kTop = 56;
  constexpr double kSector = kWords * kWord + 8, kRow = kWord + 22;
  const auto rows = (sectors.size() + kAcross - 1) / kAcross;
  Svg svg(2 * kLeft + kAcross * kSector,
          kTop + kRow * static_cast<double>(rows) + 8, name.shown);
  svg.Text(kLeft, 24, name.shown, {14, "start", "#111111", true});
  svg.Text(kLeft, 42, head, {12});
  int place = 0;
  for (const auto& [number, words] : sectors) {
    const int row = place / kAcross;
    double x = kLeft + place % kAcross * kSector;
    const double y = kTop + row * kRow;
    svg.Text(x, y + 11, Say("sector %d", number), {10, "start", "#555555"});
    for (const std::string& lane : words) {
      const char* const unused = "#ffffff";
      svg.Rect(x, y + 15, kWord, kWord,
               {lane.empty() ? unused : PaletteColour(0), "#666666"});
      svg.Text(x + kWord / 2, y + 28, lane, {10, "middle"});
      x += kWord;
    }
    ++place;
  }
  return svg.ToString();
}

}  // namespace

Drawing DrawSectors(const Phrase& name,
                    const std::vector<std::int64_t>& first) {
  const Sectors sectors = SectorsOf(first);
  const std::string head =
      Say("the thread that uses each word of a sector, in the first request");
  return {name, ToText(sectors, head), ToSvg(sectors, name, head)};
}

}  // namespace d2l
