#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/drawing/graph_layout.h"
#include "common/drawing/text_canvas.h"

namespace d2l {
namespace {

int Round(double x) { return static_cast<int>(std::lround(x)); }

// A net between two layers: its wire runs down from one column, along a row of
// its own, and down to several columns.
struct Wire {
  int net = 0;
  int top = 0;
  std::vector<int> bottoms;
  std::vector<bool> arrows;  // for each bottom
  int track = -1;            // -1: straight down

  int left() const {
    return std::min(top, *std::min_element(bottoms.begin(), bottoms.end()));
  }
  int right() const {
    return std::max(top, *std::max_element(bottoms.begin(), bottoms.end()));
  }
};

// Draws a layout: a row for each layer, and rows of wires between them.
class LayerDrawing {
 public:
  LayerDrawing(const GraphLayout& layout,
               const std::vector<std::string>& labels)
      : layout_(layout), labels_(labels) {}

  // False if the wires cannot be routed.
  bool Draw() {
    std::vector<int> columns = NodeColumns(0);
    for (std::size_t i = 0;; ++i) {
      WriteNodes(i, columns);
      if (i == layout_.links.size()) return true;
      std::vector<int> below = NodeColumns(i + 1);
      std::vector<Wire> wires;
      if (!Connect(i, columns, &below, &wires)) return false;
      DrawWires(&wires);
      columns = std::move(below);
    }
  }

  std::string ToString() const { return canvas_.ToString(); }

 private:
  int Width(const LayoutItem& item) const {
    return item.node < 0 ? 1 : static_cast<int>(labels_[item.node].size());
  }

  // The first column of each item.
  std::vector<int> NodeColumns(std::size_t layer) const {
    std::vector<int> columns;
    int free = 0;
    for (const LayoutItem& item : layout_.layers[layer]) {
      columns.push_back(std::max(free, Round(item.x - item.width / 2)));
      free = columns.back() + Width(item) + 2;
    }
    return columns;
  }

  // The column where a net leaves the items above.
  int TopOf(const LayoutLink& link, std::size_t layer,
            const std::vector<int>& columns) const {
    const LayoutItem& item = layout_.layers[layer][link.above];
    const int column = columns[link.above];
    if (item.node < 0) return column;
    const int middle = column + Width(item) / 2;
    if (layout_.nets[link.net].data) return middle;
    return std::min(middle + 2, column + Width(item) - 1);
  }

  // The allowed column that is closest to `wanted`; -1 if there is none.
  static int Nearest(int wanted, int low, int high,
                     const std::set<int>& taken) {
    int best = -1;
    for (int column = std::max(low, 0); column <= high; ++column) {
      if (taken.count(column) > 0) continue;
      if (best < 0 || std::abs(column - wanted) < std::abs(best - wanted)) {
        best = column;
      }
    }
    return best;
  }

  // Chooses columns for the ends of links, and moves lanes, so that the upper
  // end of a wire never shares a column with another wire's lower end.
  bool Connect(std::size_t layer, const std::vector<int>& above,
               std::vector<int>* below, std::vector<Wire>* wires) const {
    std::map<int, Wire> by_net;
    std::vector<LayoutLink> links = layout_.links[layer];
    std::set<int> tops;
    for (const LayoutLink& link : links) {
      Wire& wire = by_net[link.net];
      wire.net = link.net;
      wire.top = TopOf(link, layer, above);
      tops.insert(wire.top);
    }
    if (tops.size() < by_net.size()) return false;
    std::sort(links.begin(), links.end(),
              [&](const LayoutLink& a, const LayoutLink& b) {
                return std::pair(a.below, by_net[a.net].top) <
                       std::pair(b.below, by_net[b.net].top);
              });
    std::set<int> used;
    const auto& items = layout_.layers[layer + 1];
    for (const LayoutLink& link : links) {
      Wire& wire = by_net[link.net];
      std::set<int> taken = used;
      taken.insert(tops.begin(), tops.end());
      if (used.count(wire.top) == 0) taken.erase(wire.top);
      const std::size_t item = link.below;
      const bool lane = items[item].node < 0;
      int low = (*below)[item];
      int high = low + Width(items[item]) - 1;
      int wanted = std::clamp(wire.top, low, high);
      if (lane) {
        wanted = low;
        low = item == 0 ? low - kLayerGap
                        : (*below)[item - 1] + Width(items[item - 1]) + 1;
        high = item + 1 == items.size() ? high + kLayerGap
                                        : (*below)[item + 1] - 2;
        // A straight wire is better than one exactly in its place.
        if (std::abs(wire.top - wanted) <= kLayerGap) wanted = wire.top;
      }
      const int column = Nearest(wanted, low, high, taken);
      if (column < 0) return false;
      if (lane) (*below)[item] = column;
      used.insert(column);
      wire.bottoms.push_back(column);
      wire.arrows.push_back(!lane);
    }
    for (auto& [net, wire] : by_net) wires->push_back(wire);
    return true;
  }

  void WriteNodes(std::size_t layer, const std::vector<int>& columns) {
    const auto& items = layout_.layers[layer];
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (items[i].node >= 0) {
        canvas_.Write(columns[i], row_, labels_[items[i].node]);
      } else {
        canvas_.Put(columns[i], row_, Vertical(items[i].net));
      }
    }
    ++row_;
  }

  char Vertical(int net) const { return layout_.nets[net].data ? '|' : ':'; }
  char Horizontal(int net) const { return layout_.nets[net].data ? '-' : '.'; }

  // Gives each wire that is not straight the first row in which it is apart
  // from the others: a column without any wire is between two wires, since a
  // reader could take them for one wire with a crossing.
  static int ChooseTracks(std::vector<Wire>* wires) {
    std::set<int> used;
    for (const Wire& wire : *wires) {
      used.insert(wire.top);
      used.insert(wire.bottoms.begin(), wire.bottoms.end());
    }
    const auto apart = [&](int right, int left) {
      for (int x = right + 1; x < left; ++x) {
        if (used.count(x) == 0) return true;
      }
      return false;
    };
    std::sort(wires->begin(), wires->end(),
              [](const Wire& a, const Wire& b) { return a.left() < b.left(); });
    std::vector<int> ends;  // of each track
    for (Wire& wire : *wires) {
      if (wire.left() == wire.right()) continue;
      std::size_t track = 0;
      while (track < ends.size() && !apart(ends[track], wire.left())) ++track;
      if (track == ends.size()) ends.push_back(0);
      ends[track] = wire.right();
      wire.track = static_cast<int>(track);
    }
    return static_cast<int>(ends.size());
  }

  void DrawWires(std::vector<Wire>* wires) {
    const int tracks = ChooseTracks(wires);
    // Above the tracks a wire goes down one row, so that a corner below a node
    // is not taken for the node's wire.
    const int first_track = row_ + 1;
    const int last = tracks == 0 ? row_ : first_track + tracks;
    for (const Wire& wire : *wires) {
      if (wire.track < 0) continue;
      for (int x = wire.left(); x <= wire.right(); ++x) {
        canvas_.Put(x, first_track + wire.track, Horizontal(wire.net));
      }
    }
    // Drawn over the rows: a wire that crosses another is not joined to it.
    for (const Wire& wire : *wires) {
      const int turn = wire.track < 0 ? row_ : first_track + wire.track;
      for (int y = row_; y < turn; ++y) {
        canvas_.Put(wire.top, y, Vertical(wire.net));
      }
      for (std::size_t i = 0; i < wire.bottoms.size(); ++i) {
        const int x = wire.bottoms[i];
        for (int y = wire.track < 0 ? row_ : turn + 1; y <= last; ++y) {
          canvas_.Put(x, y, Vertical(wire.net));
        }
        if (wire.arrows[i]) canvas_.Put(x, last, 'v');
        if (wire.track >= 0) canvas_.Put(x, turn, '+');
      }
      if (wire.track >= 0) canvas_.Put(wire.top, turn, '+');
    }
    row_ = last + 1;
  }

  const GraphLayout& layout_;
  const std::vector<std::string>& labels_;
  TextCanvas canvas_;
  int row_ = 0;
};

}  // namespace

std::string DrawLayers(const GraphLayout& layout,
                       const std::vector<std::string>& labels) {
  LayerDrawing drawing(layout, labels);
  return drawing.Draw() ? drawing.ToString() : "";
}

}  // namespace d2l
