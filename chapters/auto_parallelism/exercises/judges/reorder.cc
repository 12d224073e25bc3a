// Judges reorder: simulates the program in the given order, and compares with
// the best of all orders.

#include "chapters/auto_parallelism/exercises/judges/reorder.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "common/base/console/language.h"
#include "common/exercise/exercise.h"
#include "common/exercise/simulated_streams.h"

namespace d2l {
namespace {

using OrderOf = std::vector<int>(const std::vector<Task>& tasks);

// When all tasks are done; negative if a task comes before one that it needs.
double Seconds(const std::vector<Task>& tasks, const std::vector<int>& order) {
  std::vector<SimulatedRequest> requests;
  std::vector<int> request_of(tasks.size(), -1);
  for (const int task : order) {
    SimulatedRequest request = {0, tasks[task].seconds, tasks[task].device};
    for (const int before : tasks[task].after) {
      if (request_of[before] < 0) return -1;
      request.after.push_back(request_of[before]);
    }
    request_of[task] = static_cast<int>(requests.size());
    requests.push_back(std::move(request));
  }
  return SimulateStreams(requests).seconds;
}

double Best(const std::vector<Task>& tasks) {
  std::vector<int> order(tasks.size());
  std::iota(order.begin(), order.end(), 0);
  double best = Seconds(tasks, order);
  while (std::next_permutation(order.begin(), order.end())) {
    const double time = Seconds(tasks, order);
    if (time >= 0) best = std::min(best, time);
  }
  return best;
}

std::string Describe(const std::vector<Task>& tasks) {
  std::string text;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const Task& task = tasks[i];
    if (i > 0) text += "\n";
    text += Say("task %d: %g s on device %d", i, task.seconds, task.device);
    if (!task.after.empty()) {
      text += " " + Say("after %s", absl::StrJoin(task.after, ", "));
    }
  }
  return text;
}

std::vector<Task> RandomTasks(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Task> tasks;
  for (int i = 0; i < 7; ++i) {
    const double seconds = 1 + random() % 9;
    tasks.push_back({static_cast<int>(random() % 2), seconds, {}});
    for (int before = 0; before < i; ++before) {
      if (random() % 3 == 0) tasks.back().after.push_back(before);
    }
  }
  return tasks;
}

// The times of the answer's order and of the best one.
struct Times {
  double yours = 0, best = 0;
};

void JudgeOne(const Judging& judging, OrderOf* answer,
              const std::vector<Task>& tasks, const std::string& look,
              Times& all_times) {
  const std::vector<int> order = answer(tasks);
  const std::string input = Describe(tasks);
  const std::string got = Say("the order %s", absl::StrJoin(order, ", "));
  std::vector<int> sorted = order, all(tasks.size());
  std::sort(sorted.begin(), sorted.end());
  std::iota(all.begin(), all.end(), 0);
  if (sorted != all) {
    judging.Wrong({input, got, "each task once",
                   "Every task has to be enqueued, and only once."});
  }
  const double time = Seconds(tasks, order), best = Best(tasks);
  if (time < 0) {
    judging.Wrong({input, got, "each task behind the tasks that it depends on",
                   "A task can only wait for tasks that were enqueued before "
                   "it: a later task has no event yet."});
  }
  if (time > 1.5 * best) {
    judging.Wrong({input, Say("%s: done after %g s", got, time),
                   Say("at most 1.5 times %g s", best), look});
  }
  all_times.yours += time;
  all_times.best += best;
}

void JudgeOrderOf(Judging& judging, OrderOf* answer) {
  Times all;
  JudgeOne(judging, answer, {{0, 4, {}}, {0, 1, {}}, {1, 5, {1}}},
           "A device is idle: it waits for a task that was enqueued behind a "
           "task which nothing depends on.",
           all);
  JudgeOne(
      judging, answer,
      {{0, 2, {}}, {1, 4, {0}}, {0, 1, {}}, {0, 1, {}}, {0, 1, {}}, {0, 1, {}}},
      "What counts is not how long a task takes, but how long the tasks after "
      "it take.",
      all);
  JudgeOne(
      judging, answer,
      {{0, 5, {}}, {0, 1, {}}, {1, 0.5, {0}}, {1, 0.5, {0, 2}}, {2, 6, {1}}},
      "What counts is not how many tasks come after a task, but how long they "
      "take.",
      all);
  JudgeOne(judging, answer, {{0, 8, {}}, {0, 1, {}}, {1, 1, {1}}, {1, 9, {2}}},
           "What counts is the whole chain of tasks behind a task, up to the "
           "end of the program, and not the next task alone.",
           all);
  JudgeOne(
      judging, answer,
      {{0, 6, {}},
       {0, 1, {}},
       {1, 8, {1}},
       {2, 1.5, {0}},
       {3, 1.5, {0}},
       {4, 1.5, {0}}},
      "Tasks on different devices run at the same time: what counts is the "
      "longest chain behind a task, and not the sum of all tasks after it.",
      all);
  JudgeOne(judging, answer, {}, "", all);
  for (unsigned seed = 1; seed <= 8; ++seed) {
    JudgeOne(judging, answer, RandomTasks(seed),
             "Which chain of tasks takes longest from this point to the end? "
             "Enqueue the first task of that chain.",
             all);
  }
  judging.Note(Say("14 programs: %g s in all; the best orders take %g s",
                   all.yours, all.best));
}

D2L_JUDGE("reorder", JudgeOrderOf);

}  // namespace
}  // namespace d2l
