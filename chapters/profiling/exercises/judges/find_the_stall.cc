// Judges find_the_stall by the timelines of simulated programs.

#include "chapters/profiling/exercises/judges/find_the_stall.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/exercise/exercise.h"
#include "common/exercise/simulated_streams.h"

namespace d2l {
namespace {

using LineOfStall = int(const std::vector<Bar>& timeline);

struct Program {
  const char* what;
  std::vector<SimulatedRequest> requests;
  int stall;  // the line of the wait; 0 for none
};

// Line 10 i + 10 enqueues operation i; the line below waits for what it awaits,
// and takes the front end's time.
std::vector<Bar> TimelineOf(const std::vector<SimulatedRequest>& requests,
                            std::mt19937& random) {
  std::vector<Bar> timeline;
  int line = 0;
  for (const RequestTimes& times : SimulateStreams(requests).times) {
    const SimulatedRequest& request = requests[line / 10];
    line += 10;
    timeline.push_back({Bar::kEnqueue, line, times.enqueued - request.enqueue,
                        times.enqueued});
    timeline.push_back({Bar::kDevice, line, times.begin, times.end});
    if (request.awaits.empty() && request.host_work == 0) continue;
    timeline.push_back({Bar::kWait, line + 1, times.enqueued,
                        times.returned + request.host_work});
  }
  // The order gives no hint.
  std::shuffle(timeline.begin(), timeline.end(), random);
  return timeline;
}

std::string Name(int line) {
  return line == 0 ? Say("0, no wait") : Say("the wait in line %d", line);
}

const char* LookAt(const std::vector<Bar>& timeline, int line) {
  const auto wait =
      std::find_if(timeline.begin(), timeline.end(), [&](const Bar& bar) {
        return bar.row == Bar::kWait && bar.line == line;
      });
  if (line == 0) {
    return "At the end of a wait the device is idle, and it works again only "
           "when the front end has enqueued more.";
  }
  if (wait == timeline.end()) {
    return "In that line nobody waits: there the front end enqueues. The "
           "device may be idle as well because the front end is slow.";
  }
  double next = -1;
  for (const Bar& bar : timeline) {
    if (bar.row != Bar::kDevice || bar.end <= wait->end) continue;
    if (bar.begin < wait->end) {
      return "When this wait ended, the device was in the midst of its work: "
             "until that is done it is not idle.";
    }
    if (bar.begin == wait->end) {
      return "When this wait ended, the device had more to do: a wait may be "
             "long and cost nothing.";
    }
    next = std::max(next, bar.begin);
  }
  if (next < 0) {
    return "Behind this wait nothing is enqueued: the device has no more to "
           "do, so it is not kept from it.";
  }
  return "Behind another wait the device is idle for longer.";
}

void JudgeLineOfStall(Judging& judging, LineOfStall* answer) {
  // 10 operations of 4 ms, each enqueued in 1 ms; then the last wait.
  std::vector<SimulatedRequest> loop(10, {1, 4});
  loop[9].awaits = {9};
  std::vector<SimulatedRequest> printed = loop;
  printed[3].awaits = {3};
  // The longest wait is for an older operation: the device goes on.
  std::vector<SimulatedRequest> bounded = {{1, 30}, {1, 9}, {1, 9}, {1, 5},
                                           {1, 3},  {2, 5}, {1, 5}};
  bounded[2].awaits = {0};
  for (const int i : {4, 6}) bounded[i].awaits = {i};
  // In line 80 the front end is slow. Behind the waits before, the device is
  // idle for 3 and 1 ms.
  std::vector<SimulatedRequest> slow = loop;
  for (const int i : {2, 5}) slow[i].awaits = {i};
  slow[3].enqueue = 3;
  slow[7] = {60, 4};
  // Behind the waits the device is idle for 2, 5 and 3 ms.
  std::vector<SimulatedRequest> thrice = loop;
  for (const int i : {2, 5, 7}) thrice[i].awaits = {i};
  thrice[3].enqueue = 2;
  thrice[6].enqueue = 5;
  thrice[8].enqueue = 3;
  std::vector<SimulatedRequest> elsewhere(3, {1, 9});
  elsewhere[1].host_work = 4;
  const std::vector<Program> programs = {
      {"a loop that prints its loss once", printed, 41},
      {"a loop that waits at its end only", loop, 0},
      {"a wait for an older operation, and one for a value", bounded, 51},
      {"a loop that prints twice, and loads data once", slow, 31},
      {"a loop with three needless waits", thrice, 61},
      {"a wait for another device", elsewhere, 0},
      {"no waits", {{1, 2}, {1, 2}, {3, 1}}, 0},
      {"an empty timeline", {}, 0}};
  std::mt19937 random(std::random_device{}());
  for (const Program& program : programs) {
    for (int order = 0; order < 5; ++order) {
      const std::vector<Bar> timeline = TimelineOf(program.requests, random);
      const int got = answer(timeline);
      if (got == program.stall) continue;
      judging.Wrong({Translated(program.what), Name(got), Name(program.stall),
                     LookAt(timeline, got)});
    }
  }
}

D2L_JUDGE("find_the_stall", JudgeLineOfStall);

}  // namespace
}  // namespace d2l
