#include "common/drawing/graph_layout.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "common/graph/program_graph.h"

namespace d2l {
namespace {

constexpr int kOrderSweeps = 16;
constexpr int kPlaceSweeps = 200;
// A long straight edge is easier to follow than a short one.
constexpr double kLaneWeight = 4;

// The layer of each node: its level, but a node without sources is right above
// its first reader instead of at the top.
std::vector<int> LayersOf(const ProgramGraph& graph) {
  std::vector<int> layers = graph.levels();
  const int none = std::numeric_limits<int>::max();
  std::vector<int> first_reader(layers.size(), none);
  for (const GraphEdge& edge : graph.edges()) {
    first_reader[edge.from] =
        std::min(first_reader[edge.from], layers[edge.to]);
  }
  for (std::size_t node = 0; node < layers.size(); ++node) {
    if (layers[node] == 0 && first_reader[node] != none) {
      layers[node] = first_reader[node] - 1;
    }
  }
  return layers;
}

// Makes items and links, in no particular order yet.
GraphLayout MakeItems(const ProgramGraph& graph,
                      const std::vector<double>& widths) {
  GraphLayout layout;
  if (graph.nodes().empty()) return layout;
  layout.layers.resize(graph.depth());
  layout.links.resize(graph.depth() - 1);
  const std::vector<int> layer_of = LayersOf(graph);
  std::vector<int> item_of(graph.nodes().size());
  for (std::size_t node = 0; node < graph.nodes().size(); ++node) {
    auto& layer = layout.layers[layer_of[node]];
    item_of[node] = static_cast<int>(layer.size());
    layer.push_back({static_cast<int>(node), -1, widths[node], 0});
  }
  std::map<std::pair<int, bool>, int> nets;  // by node and kind
  std::map<std::pair<int, int>, int> lanes;  // by net and layer
  for (const GraphEdge& edge : graph.edges()) {
    const bool data = edge.kind == EdgeKind::kData;
    const int net =
        nets.emplace(std::pair(edge.from, data), static_cast<int>(nets.size()))
            .first->second;
    if (net == static_cast<int>(layout.nets.size())) {
      layout.nets.push_back({edge.from, data});
    }
    int above = item_of[edge.from];
    for (int i = layer_of[edge.from]; i + 1 < layer_of[edge.to]; ++i) {
      auto& layer = layout.layers[i + 1];
      const auto [lane, is_new] =
          lanes.emplace(std::pair(net, i + 1), static_cast<int>(layer.size()));
      if (is_new) {
        layer.push_back({-1, net, 0, 0});
        layout.links[i].push_back({net, above, lane->second, edge.kind, -1});
      }
      above = lane->second;
    }
    layout.links[layer_of[edge.to] - 1].push_back(
        {net, above, item_of[edge.to], edge.kind, edge.to});
  }
  return layout;
}

int Crossings(const GraphLayout& layout) {
  int crossings = 0;
  for (const auto& links : layout.links) {
    for (std::size_t i = 0; i < links.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const LayoutLink& a = links[i];
        const LayoutLink& b = links[j];
        if ((a.above < b.above && a.below > b.below) ||
            (a.above > b.above && a.below < b.below)) {
          ++crossings;
        }
      }
    }
  }
  return crossings;
}

// Puts the items of a layer into the order of `keys`.
void Reorder(GraphLayout* layout, std::size_t layer,
             const std::vector<double>& keys) {
  auto& items = layout->layers[layer];
  std::vector<int> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return keys[a] < keys[b]; });
  std::vector<LayoutItem> sorted;
  std::vector<int> now_at(items.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    sorted.push_back(items[order[i]]);
    now_at[order[i]] = static_cast<int>(i);
  }
  items = std::move(sorted);
  if (layer > 0) {
    for (LayoutLink& link : layout->links[layer - 1]) {
      link.below = now_at[link.below];
    }
  }
  if (layer < layout->links.size()) {
    for (LayoutLink& link : layout->links[layer]) {
      link.above = now_at[link.above];
    }
  }
}

// The mean place of each item's neighbours in the layer above or below; its own
// place if it has none.
std::vector<double> Barycentres(const GraphLayout& layout, std::size_t layer,
                                bool above) {
  const std::size_t count = layout.layers[layer].size();
  std::vector<double> sum(count, 0);
  std::vector<int> neighbours(count, 0);
  for (const LayoutLink& link : layout.links[above ? layer - 1 : layer]) {
    const int item = above ? link.below : link.above;
    sum[item] += above ? link.above : link.below;
    ++neighbours[item];
  }
  for (std::size_t i = 0; i < count; ++i) {
    sum[i] =
        neighbours[i] == 0 ? static_cast<double>(i) : sum[i] / neighbours[i];
  }
  return sum;
}

void Order(GraphLayout* layout) {
  GraphLayout best = *layout;
  int fewest = Crossings(best);
  for (int sweep = 0; sweep < kOrderSweeps && fewest > 0; ++sweep) {
    const bool down = sweep % 2 == 0;
    const std::size_t count = layout->layers.size();
    for (std::size_t i = 1; i < count; ++i) {
      const std::size_t layer = down ? i : count - 1 - i;
      Reorder(layout, layer, Barycentres(*layout, layer, down));
    }
    const int crossings = Crossings(*layout);
    if (crossings < fewest) {
      fewest = crossings;
      best = *layout;
    }
  }
  *layout = std::move(best);
}

void PlaceLayer(GraphLayout* layout, std::size_t layer, double gap) {
  auto& items = layout->layers[layer];
  std::vector<double> wanted(items.size(), 0);
  std::vector<int> neighbours(items.size(), 0);
  const auto pull = [&](int item, double x) {
    wanted[item] += x;
    ++neighbours[item];
  };
  if (layer > 0) {
    for (const LayoutLink& link : layout->links[layer - 1]) {
      pull(link.below, layout->layers[layer - 1][link.above].x);
    }
  }
  if (layer < layout->links.size()) {
    for (const LayoutLink& link : layout->links[layer]) {
      pull(link.above, layout->layers[layer + 1][link.below].x);
    }
  }
  std::vector<double> weights;
  std::vector<double> distances;
  for (std::size_t i = 0; i < items.size(); ++i) {
    wanted[i] = neighbours[i] == 0 ? items[i].x : wanted[i] / neighbours[i];
    weights.push_back(items[i].node < 0 ? kLaneWeight : 1);
    if (i > 0) {
      distances.push_back((items[i - 1].width + items[i].width) / 2 + gap);
    }
  }
  const std::vector<double> x = Spread(wanted, weights, distances);
  for (std::size_t i = 0; i < items.size(); ++i) items[i].x = x[i];
}

void Place(GraphLayout* layout, double gap) {
  for (auto& items : layout->layers) {
    double right = 0;
    for (LayoutItem& item : items) {
      item.x = right + item.width / 2;
      right += item.width + gap;
    }
  }
  const std::size_t count = layout->layers.size();
  for (int sweep = 0; sweep < kPlaceSweeps; ++sweep) {
    for (std::size_t i = 0; i < count; ++i) {
      PlaceLayer(layout, sweep % 2 == 0 ? i : count - 1 - i, gap);
    }
  }
  double left = std::numeric_limits<double>::max();
  double right = std::numeric_limits<double>::lowest();
  for (const auto& items : layout->layers) {
    for (const LayoutItem& item : items) {
      left = std::min(left, item.x - item.width / 2);
      right = std::max(right, item.x + item.width / 2);
    }
  }
  for (auto& items : layout->layers) {
    for (LayoutItem& item : items) item.x -= left;
  }
  layout->width = right - left;
}

}  // namespace

std::vector<double> Spread(const std::vector<double>& wanted,
                           const std::vector<double>& weights,
                           const std::vector<double>& distances) {
  // Without the distances, the positions must not decrease: isotonic
  // regression, by pooling neighbours that decrease (R. E. Barlow et al.,
  // Statistical Inference under Order Restrictions, section 1.2).
  struct Pool {
    double sum;
    double weight;
    std::size_t count;
    double mean() const { return sum / weight; }
  };
  std::vector<Pool> pools;
  double offset = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (i > 0) offset += distances[i - 1];
    pools.push_back({(wanted[i] - offset) * weights[i], weights[i], 1});
    while (pools.size() > 1 &&
           pools[pools.size() - 2].mean() > pools.back().mean()) {
      const Pool last = pools.back();
      pools.pop_back();
      pools.back().sum += last.sum;
      pools.back().weight += last.weight;
      pools.back().count += last.count;
    }
  }
  std::vector<double> x;
  offset = 0;
  for (const Pool& pool : pools) {
    for (std::size_t i = 0; i < pool.count; ++i) {
      if (!x.empty()) offset += distances[x.size() - 1];
      x.push_back(pool.mean() + offset);
    }
  }
  return x;
}

GraphLayout LayOut(const ProgramGraph& graph, const std::vector<double>& widths,
                   double gap) {
  GraphLayout layout = MakeItems(graph, widths);
  if (layout.layers.empty()) return layout;
  Order(&layout);
  Place(&layout, gap);
  return layout;
}

}  // namespace d2l
