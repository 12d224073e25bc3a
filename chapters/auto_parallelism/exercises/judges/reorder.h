// A program as tasks on devices, for the exercise reorder.

#ifndef D2L_CHAPTERS_AUTO_PARALLELISM_EXERCISES_JUDGES_REORDER_H_
#define D2L_CHAPTERS_AUTO_PARALLELISM_EXERCISES_JUDGES_REORDER_H_

#include <vector>

namespace d2l {

// One task. It starts when the tasks `after`, which have lower numbers, are
// done, and its device has done all tasks that were enqueued before.
struct Task {
  int device;
  double seconds;
  std::vector<int> after;
};

}  // namespace d2l

#endif  // D2L_CHAPTERS_AUTO_PARALLELISM_EXERCISES_JUDGES_REORDER_H_
