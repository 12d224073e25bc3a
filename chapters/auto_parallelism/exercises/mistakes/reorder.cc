#include "chapters/auto_parallelism/exercises/judges/reorder.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "common/exercise/exercise.h"

namespace d2l {
namespace {

namespace as_it_stands {
std::vector<int> OrderOf(const std::vector<Task>& tasks) {
  std::vector<int> order(tasks.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}
}  // namespace as_it_stands

namespace shortest_first {
std::vector<int> OrderOf(const std::vector<Task>& tasks) {
  std::vector<int> order;
  std::vector<bool> requested(tasks.size());
  while (order.size() < tasks.size()) {
    int next = -1;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const bool ready =
          !requested[i] &&
          std::all_of(tasks[i].after.begin(), tasks[i].after.end(),
                      [&](int before) { return requested[before]; });
      if (!ready) continue;
      if (next < 0 || tasks[i].seconds < tasks[next].seconds) {
        next = static_cast<int>(i);
      }
    }
    requested[next] = true;
    order.push_back(next);
  }
  return order;
}
}  // namespace shortest_first

namespace longest_first {
std::vector<int> OrderOf(const std::vector<Task>& tasks) {
  std::vector<int> order = as_it_stands::OrderOf(tasks);
  std::sort(order.begin(), order.end(),
            [&](int a, int b) { return tasks[a].seconds > tasks[b].seconds; });
  return order;
}
}  // namespace longest_first

D2L_MISTAKE("reorder", as_it_stands, OrderOf, "nobody waits for");
D2L_MISTAKE("reorder", shortest_first, OrderOf, "What counts is not how long");
D2L_MISTAKE("reorder", longest_first, OrderOf, "no event of it yet");

}  // namespace
}  // namespace d2l
