#include "chapters/auto_parallelism/exercises/judges/reorder.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <set>
#include <vector>

#include "common/exercise/exercise.h"

namespace d2l {
namespace {

// Of the tasks that may be enqueued, the one of the highest rank first.
std::vector<int> ReadyFirst(const std::vector<Task>& tasks,
                            const std::function<double(int task)>& rank) {
  std::vector<int> order;
  std::vector<bool> enqueued(tasks.size());
  while (order.size() < tasks.size()) {
    int next = -1;
    for (int i = 0; i < static_cast<int>(tasks.size()); ++i) {
      const bool ready =
          !enqueued[i] &&
          std::all_of(tasks[i].after.begin(), tasks[i].after.end(),
                      [&](int before) { return enqueued[before]; });
      if (ready && (next < 0 || rank(i) > rank(next))) next = i;
    }
    enqueued[next] = true;
    order.push_back(next);
  }
  return order;
}

// For each task those that are after it, directly or not.
std::vector<std::set<int>> AfterEach(const std::vector<Task>& tasks) {
  std::vector<std::set<int>> after(tasks.size());
  for (int i = static_cast<int>(tasks.size()) - 1; i >= 0; --i) {
    for (const int before : tasks[i].after) {
      after[before].insert(i);
      after[before].insert(after[i].begin(), after[i].end());
    }
  }
  return after;
}

namespace as_it_stands {
std::vector<int> OrderOf(const std::vector<Task>& tasks) {
  std::vector<int> order(tasks.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}
}  // namespace as_it_stands

namespace shortest_first {
std::vector<int> OrderOf(const std::vector<Task>& tasks) {
  return ReadyFirst(tasks, [&](int task) { return -tasks[task].seconds; });
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

namespace critical_path_only {
std::vector<int> OrderOf(const std::vector<Task>& tasks) {
  // From the task that is done last, to the one before that takes longest.
  std::vector<double> end(tasks.size());
  int last = -1;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    for (const int before : tasks[i].after)
      end[i] = std::max(end[i], end[before]);
    end[i] += tasks[i].seconds;
    if (last < 0 || end[i] > end[last]) last = static_cast<int>(i);
  }
  std::vector<int> order;
  while (last >= 0) {
    order.insert(order.begin(), last);
    int next = -1;
    for (const int before : tasks[last].after) {
      if (next < 0 || end[before] > end[next]) next = before;
    }
    last = next;
  }
  return order;
}
}  // namespace critical_path_only

namespace most_tasks_after_it {
std::vector<int> OrderOf(const std::vector<Task>& tasks) {
  const std::vector<std::set<int>> after = AfterEach(tasks);
  return ReadyFirst(
      tasks, [&](int task) { return static_cast<double>(after[task].size()); });
}
}  // namespace most_tasks_after_it

// Of those that may be enqueued, first the one that takes longest together
// with the longest task right behind it.
namespace one_task_ahead {
std::vector<int> OrderOf(const std::vector<Task>& tasks) {
  std::vector<double> next(tasks.size());
  for (const Task& task : tasks) {
    for (const int before : task.after) {
      next[before] = std::max(next[before], task.seconds);
    }
  }
  return ReadyFirst(tasks,
                    [&](int task) { return tasks[task].seconds + next[task]; });
}
}  // namespace one_task_ahead

namespace all_that_is_after_it {
std::vector<int> OrderOf(const std::vector<Task>& tasks) {
  const std::vector<std::set<int>> after = AfterEach(tasks);
  return ReadyFirst(tasks, [&](int task) {
    double seconds = tasks[task].seconds;
    for (const int later : after[task]) seconds += tasks[later].seconds;
    return seconds;
  });
}
}  // namespace all_that_is_after_it

D2L_MISTAKE("reorder", as_it_stands, OrderOf, "which nothing depends on");
D2L_MISTAKE("reorder", shortest_first, OrderOf, "What counts is not how long");
D2L_MISTAKE("reorder", longest_first, OrderOf, "a later task has no event yet");
D2L_MISTAKE("reorder", critical_path_only, OrderOf,
            "Every task has to be enqueued");
D2L_MISTAKE("reorder", most_tasks_after_it, OrderOf,
            "how many tasks come after a task");
D2L_MISTAKE("reorder", one_task_ahead, OrderOf, "not the next task alone");
D2L_MISTAKE("reorder", all_that_is_after_it, OrderOf, "not the sum of all");

}  // namespace
}  // namespace d2l
