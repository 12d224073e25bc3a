#include "common/drawing/bars.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/drawing/drawing.h"
#include "common/drawing/svg.h"

namespace d2l {
namespace {

constexpr double kMostForLinear = 1e4;
constexpr char kEnqueueColour[] = "#8aa4c0";
constexpr char kBoundColour[] = "#b3261e";

// Converts a value to its place: 0 at the bars' left end, 1 at their right.
struct Scale {
  double low = 0;  // 0: linear
  double high = 1;

  bool IsLogarithmic() const { return low > 0; }
  double Place(double value) const {
    if (!IsLogarithmic()) return value / high;
    return value <= low ? 0 : std::log(value / low) / std::log(high / low);
  }
};

struct Group {
  const std::vector<Bar>& bars;
  Scale scale;
};

Scale ScaleOf(const std::vector<Bar>& bars) {
  double shortest = std::numeric_limits<double>::max();
  double longest = 0;
  for (const Bar& bar : bars) {
    for (const double value : {bar.value, bar.low, bar.high, bar.enqueue}) {
      if (std::isfinite(value) && value >= 0) continue;
      throw std::invalid_argument(absl::StrFormat(
          "[DrawBars] %g in \"%s\" has no length", value, bar.label.english));
    }
    if (bar.value > 0) shortest = std::min(shortest, bar.value);
    longest = std::max({longest, bar.value, bar.high});
  }
  if (longest == 0) return {};
  Scale scale = {0, longest};
  if (longest > kMostForLinear * shortest) scale.low = shortest / 2;
  for (const Bar& bar : bars) {
    for (const double bound : bar.bounds) {
      // A bound that is far away would leave no room for the bars.
      if (bound < 1.5 * longest) scale.high = std::max(scale.high, bound);
    }
  }
  return scale;
}

// The entries of the legend.
struct Legend {
  bool enqueue = false;
  bool bound = false;
  bool logarithmic = false;

  explicit Legend(const std::vector<Group>& groups) {
    for (const Group& group : groups) {
      logarithmic = logarithmic || group.scale.IsLogarithmic();
      for (const Bar& bar : group.bars) {
        enqueue = enqueue || EnqueueOf(bar, group.scale) > 0;
        bound = bound || !bar.bounds.empty();
      }
    }
  }
  // Parts of a length have no meaning on a logarithmic scale; a call of the
  // host has no parts.
  static double EnqueueOf(const Bar& bar, const Scale& scale) {
    return scale.IsLogarithmic() || bar.of_host
               ? 0
               : std::min(bar.enqueue, bar.value);
  }
};

std::string ToText(const std::vector<Group>& groups) {
  constexpr std::size_t kWidestLabel = 34;
  std::size_t label_width = 0, value_width = 0;
  for (const Group& group : groups) {
    for (const Bar& bar : group.bars) {
      const std::size_t width = TextColumns(bar.label.shown);
      if (width <= kWidestLabel) label_width = std::max(label_width, width);
      value_width = std::max(value_width, TextColumns(bar.text));
    }
  }
  const int columns = std::max(
      10, TextWidth() - static_cast<int>(label_width + value_width) - 6);
  std::string text;
  for (const Group& group : groups) {
    const auto column_of = [&](double value) {
      return static_cast<std::size_t>(
          std::lround(columns * std::min(1.0, group.scale.Place(value))));
    };
    if (!text.empty()) text += "\n";
    for (const Bar& bar : group.bars) {
      std::string line(column_of(Legend::EnqueueOf(bar, group.scale)), '=');
      // A positive value has at least one mark.
      const std::size_t least = bar.value > 0 ? 1 : 0;
      line.resize(std::max(column_of(bar.value), least), '#');
      line.resize(columns, ' ');
      for (const double bound : bar.bounds) {
        if (group.scale.Place(bound) > 1) continue;
        line[std::min(line.size() - 1, column_of(bound))] = '|';
      }
      const bool fits = TextColumns(bar.label.shown) <= label_width;
      if (!fits) absl::StrAppend(&text, "  ", bar.label.shown, "\n");
      absl::StrAppend(
          &text, "  ",
          Padded(fits ? bar.label : Phrase(""), static_cast<int>(label_width)),
          "  ", line, "  ",
          std::string(value_width - TextColumns(bar.text), ' '), bar.text,
          "\n");
    }
  }
  const Legend legend(groups);
  std::vector<std::string> parts;
  if (legend.enqueue) {
    parts.push_back(Say("= enqueueing, # until the work is done"));
  }
  if (legend.bound) parts.push_back(Say("| needed for HOLDS"));
  if (legend.logarithmic) parts.push_back(Say("a logarithmic scale"));
  return parts.empty()
             ? text
             : text + Wrap(absl::StrJoin(parts, Translated("; ")), "  ");
}

constexpr double kBars = 440;
constexpr double kRow = 26;
constexpr double kBetweenGroups = 12;
constexpr double kBar = 16;
constexpr double kSize = 12;  // of letters

// Draws the bar's row; `left` and `top` are its upper left corner.
void DrawBar(const Bar& bar, const Scale& scale, double left, double top,
             Svg* svg) {
  const auto x_of = [&](double value) {
    return left + kBars * std::min(1.0, scale.Place(value));
  };
  const double middle = top + kRow / 2;
  const double bar_top = middle - kBar / 2;
  svg->Text(left - 8, middle + 4, bar.label.shown, {kSize, "end"});
  svg->Rect(left, bar_top, x_of(bar.value) - left, kBar,
            {PaletteColour(bar.of_host ? 1 : 0)},
            absl::StrCat(bar.label.shown, ": ", bar.text));
  if (const double enqueue = Legend::EnqueueOf(bar, scale); enqueue > 0) {
    svg->Rect(left, bar_top, x_of(enqueue) - left, kBar, {kEnqueueColour});
  }
  double text_at = x_of(bar.value) + 8;
  if (bar.low < bar.high) {
    svg->Line(x_of(bar.low), middle, x_of(bar.high), middle, {});
    for (const double end : {bar.low, bar.high}) {
      svg->Line(x_of(end), middle - 4, x_of(end), middle + 4, {});
    }
    text_at = std::max(text_at, x_of(bar.high) + 8);
  }
  for (const double bound : bar.bounds) {
    if (scale.Place(bound) > 1) continue;
    const double x = x_of(bound);
    svg->Line(x, top + 2, x, top + kRow - 2, {kBoundColour, 2, true});
    if (x > text_at - 8 && x < text_at + Svg::TextWidth(bar.text, kSize)) {
      text_at = x + 8;
    }
  }
  svg->Text(text_at, middle + 4, bar.text, {kSize});
}

std::string ToSvg(const Phrase& name, const std::vector<Group>& groups) {
  constexpr double kTop = 44;
  double labels = 60, values = 40;
  double bottom = kTop - kBetweenGroups;
  for (const Group& group : groups) {
    for (const Bar& bar : group.bars) {
      labels = std::max(labels, Svg::TextWidth(bar.label.shown, kSize));
      values = std::max(values, Svg::TextWidth(bar.text, kSize));
    }
    bottom += kBetweenGroups + kRow * static_cast<double>(group.bars.size());
  }
  const double left = 24 + labels;
  const Legend legend(groups);
  const bool any = legend.enqueue || legend.bound || legend.logarithmic;
  Svg svg(left + kBars + 24 + values, bottom + (any ? 36 : 10), name.shown);
  svg.Text(16, 24, name.shown, {14, "start", "#111111", true});
  double y = kTop;
  for (const Group& group : groups) {
    const double top = y;
    for (const Bar& bar : group.bars) {
      DrawBar(bar, group.scale, left, y, &svg);
      y += kRow;
    }
    svg.Line(left, top, left, y, {});
    y += kBetweenGroups;
  }
  double x = left;
  const auto key = [&](const std::string& text) {
    svg.Text(x + 18, bottom + 24, text, {kSize});
    x += 34 + Svg::TextWidth(text, kSize);
  };
  if (legend.enqueue) {
    svg.Rect(x, bottom + 14, 12, 12, {kEnqueueColour});
    key(Say("enqueueing"));
    svg.Rect(x, bottom + 14, 12, 12, {PaletteColour(0)});
    key(Say("until the work is done"));
  }
  if (legend.bound) {
    svg.Line(x + 6, bottom + 12, x + 6, bottom + 28, {kBoundColour, 2, true});
    key(Say("needed for HOLDS"));
  }
  if (legend.logarithmic) key(Say("a logarithmic scale"));
  return svg.ToString();
}

}  // namespace

Drawing DrawBars(const Phrase& name,
                 const std::vector<std::vector<Bar>>& groups) {
  std::vector<Group> scaled;
  for (const std::vector<Bar>& bars : groups) {
    scaled.push_back({bars, ScaleOf(bars)});
  }
  return {name, ToText(scaled), ToSvg(name, scaled)};
}

}  // namespace d2l
