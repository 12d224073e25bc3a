// reorder: enqueue the tasks of a program in a good order.
//
//   bazel run //:exercises -- reorder

#include "chapters/auto_parallelism/exercises/judges/reorder.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "common/exercise/exercise.h"

namespace d2l {
namespace {

// The numbers of all tasks in the order in which to enqueue them, a task behind
// those that it is `after`, so that all are done early.
std::vector<int> OrderOf(const std::vector<Task>& tasks) {
  // SOLUTION
  // The time from a task's beginning to the end of the program, if no device
  // were ever busy with something else.
  std::vector<double> to_the_end(tasks.size());
  for (int i = static_cast<int>(tasks.size()) - 1; i >= 0; --i) {
    to_the_end[i] += tasks[i].seconds;
    for (const int before : tasks[i].after) {
      to_the_end[before] = std::max(to_the_end[before], to_the_end[i]);
    }
  }
  std::vector<int> order(tasks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return to_the_end[a] > to_the_end[b]; });
  return order;
  // END
}

D2L_ANSWER("reorder", OrderOf);

}  // namespace
}  // namespace d2l
