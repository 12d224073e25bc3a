#include "chapters/profiling/exercises/judges/find_the_stall.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "common/exercise/exercise.h"

namespace d2l {
namespace {

namespace last_wait {
int LineOfStall(const std::vector<Bar>& timeline) {
  int line = 0;
  for (const Bar& bar : timeline) {
    if (bar.row == Bar::kWait) line = std::max(line, bar.line);
  }
  return line;
}
}  // namespace last_wait

// Of those that are not at the end of the program.
namespace longest_wait {
int LineOfStall(const std::vector<Bar>& timeline) {
  int line = 0;
  double longest = 0, end = 0;
  for (const Bar& bar : timeline) end = std::max(end, bar.end);
  for (const Bar& bar : timeline) {
    if (bar.row != Bar::kWait || bar.end == end) continue;
    if (bar.end - bar.begin <= longest) continue;
    longest = bar.end - bar.begin;
    line = bar.line;
  }
  return line;
}
}  // namespace longest_wait

namespace longest_idle_time {
int LineOfStall(const std::vector<Bar>& timeline) {
  std::vector<Bar> work;
  int waits = 0;
  double end = 0;
  for (const Bar& bar : timeline) end = std::max(end, bar.end);
  for (const Bar& bar : timeline) {
    if (bar.row == Bar::kDevice) work.push_back(bar);
    if (bar.row == Bar::kWait && bar.end < end) ++waits;
  }
  if (waits == 0) return 0;
  std::sort(work.begin(), work.end(),
            [](const Bar& a, const Bar& b) { return a.begin < b.begin; });
  int line = 0;
  double longest = 0;
  for (std::size_t i = 1; i < work.size(); ++i) {
    if (work[i].begin - work[i - 1].end <= longest) continue;
    longest = work[i].begin - work[i - 1].end;
    line = work[i].line;
  }
  return line;
}
}  // namespace longest_idle_time

namespace never {
int LineOfStall(const std::vector<Bar>& timeline) { return 0; }
}  // namespace never

// Of those behind which the device is idle at all.
namespace the_first_one {
int LineOfStall(const std::vector<Bar>& timeline) {
  int line = 0;
  double first = 0;
  for (const Bar& wait : timeline) {
    if (wait.row != Bar::kWait || (line > 0 && wait.end > first)) continue;
    bool busy = false, more = false;
    for (const Bar& work : timeline) {
      if (work.row != Bar::kDevice || work.end <= wait.end) continue;
      more = true;
      busy = busy || work.begin <= wait.end;
    }
    if (!more || busy) continue;
    first = wait.end;
    line = wait.line;
  }
  return line;
}
}  // namespace the_first_one

// Looks at what begins behind a wait, and not at what is running then.
namespace begins_only {
int LineOfStall(const std::vector<Bar>& timeline) {
  int line = 0;
  double longest = 0;
  for (const Bar& wait : timeline) {
    if (wait.row != Bar::kWait) continue;
    double next = 0;  // no work yet
    for (const Bar& work : timeline) {
      if (work.row != Bar::kDevice || work.begin < wait.end) continue;
      next = next == 0 ? work.begin : std::min(next, work.begin);
    }
    if (next - wait.end <= longest) continue;
    longest = next - wait.end;
    line = wait.line;
  }
  return line;
}
}  // namespace begins_only

D2L_MISTAKE("find_the_stall", last_wait, LineOfStall, "nothing is enqueued");
D2L_MISTAKE("find_the_stall", longest_wait, LineOfStall, "long and cost");
D2L_MISTAKE("find_the_stall", longest_idle_time, LineOfStall, "nobody waits");
D2L_MISTAKE("find_the_stall", never, LineOfStall,
            "At the end of a wait the device is idle");
D2L_MISTAKE("find_the_stall", the_first_one, LineOfStall,
            "Behind another wait");
D2L_MISTAKE("find_the_stall", begins_only, LineOfStall,
            "in the midst of its work");

}  // namespace
}  // namespace d2l
