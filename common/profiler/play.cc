#include "common/profiler/play.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"

namespace d2l {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// The wake-up of work that was enqueued at `asked`, on a stream that has been
// idle since `free`, and whose events were done at `events`.
WakeUp WakeUpOf(double asked, double free, double events, double sleeps_after) {
  if (asked >= std::max(free, events)) {
    return asked - free > sleeps_after ? WakeUp::kLate : WakeUp::kSoon;
  }
  return events > free ? WakeUp::kEvent : WakeUp::kBehind;
}

// Each step does the earliest of all that can happen next, so cores go to the
// streams that have waited for them the longest.
class Player {
 public:
  Player(const PlayedProgram& program, const PlayedMachine& machine)
      : program_(program), machine_(machine) {
    const int count = static_cast<int>(program.requests.size());
    for (int i = 0; i < count; ++i) {
      const PlayedRequest& request = program.requests[i];
      // Not known yet: when it is enqueued, until it is; when the work is done,
      // until it begins.
      played_.times.push_back({kNever, 0, kNever, 0, 0, {}, {i, false}});
      threads_[request.thread].requests.push_back(i);
      CheckNumbers(i, request.after);
      CheckNumbers(i, request.awaits);
      if (request.stream >= static_cast<int>(streams_.size())) {
        streams_.resize(request.stream + 1);
      }
    }
    for (std::size_t s = 0; s < streams_.size(); ++s) {
      Stream& stream = streams_[s];
      stream.device = s < program.device_of.size() ? program.device_of[s]
                                                   : static_cast<int>(s);
      if (cores_.size() <= static_cast<std::size_t>(stream.device)) {
        cores_.resize(stream.device + 1, std::vector<Core>(machine.cores));
      }
    }
  }

  Played Play() {
    while (Step()) {
    }
    for (const auto& [number, thread] : threads_) {
      if (thread.next < thread.requests.size()) {
        Refuse(thread.requests[thread.next]);
      }
      EndWith(thread.now, thread.last);
    }
    for (const Stream& stream : streams_) {
      if (stream.head < stream.queue.size()) Refuse(stream.queue[stream.head]);
      EndWith(stream.free, {stream.last, true});
    }
    return std::move(played_);
  }

 private:
  struct Thread {
    std::vector<int> requests;
    std::size_t next = 0;
    double now = 0;
    enum { kAsks, kBlocked, kWaits } state = kAsks;  // with the next
    int room = -1;    // the request whose end makes room
    PlayedNode last;  // what it enqueued, or waited for
  };
  struct Stream {
    int device = 0;
    std::vector<int> queue;            // all requests to it
    std::vector<std::int64_t> places;  // taken by these, up to each
    std::size_t head = 0;              // the first that has not begun
    double free = 0;                   // when all begun work is done
    double idle_since = -kNever;       // when work ended; asleep at first
    int last = -1;                     // done at `free`
  };
  struct Core {
    double free = 0;
    int last = -1;
  };
  // When the first request in a stream's queue starts, and after what.
  struct Start {
    double ready = kNever;  // except for a core
    double time = kNever;
    PlayedNode before;
    double events = 0;
    Core* core = nullptr;
  };

  [[noreturn]] static void Refuse(int request) {
    throw std::invalid_argument(
        absl::StrCat("[play] request ", request, " would wait for ever"));
  }
  void EndWith(double seconds, PlayedNode last) {
    if (seconds < played_.seconds) return;
    played_.seconds = seconds;
    played_.last = last;
  }
  void CheckNumbers(int request, const std::vector<int>& numbers) const {
    const int count = static_cast<int>(program_.requests.size());
    for (const int number : numbers) {
      if (number >= 0 && number < count) continue;
      throw std::invalid_argument(absl::StrCat("[play] request ", request,
                                               " needs number ", number,
                                               ", and there are ", count));
    }
  }

  // False if nothing can happen any more.
  bool Step() {
    Thread* thread = nullptr;
    double earliest = kNever;
    for (auto& [number, candidate] : threads_) {
      const double time = TimeOf(candidate);
      if (time < earliest) earliest = time, thread = &candidate;
    }
    // At equal times, work goes before threads, and the longest wait first.
    Stream* stream = nullptr;
    Start first;
    for (Stream& candidate : streams_) {
      const Start start = StartOf(candidate);
      if (start.time == kNever || start.time > earliest) continue;
      if (start.time == earliest && stream != nullptr &&
          start.ready >= first.ready) {
        continue;
      }
      earliest = start.time, stream = &candidate, first = start;
    }
    if (stream != nullptr) {
      Begin(*stream, first);
    } else if (thread != nullptr) {
      GoOn(*thread);
    }
    return stream != nullptr || thread != nullptr;
  }

  double EndOf(int request) const { return played_.times[request].end; }

  // The latest end of these, and whose it is; kNever if it is not known yet.
  std::pair<double, int> LastOf(const std::vector<int>& requests) const {
    std::pair<double, int> last = {0, -1};
    for (const int request : requests) {
      if (EndOf(request) >= last.first) last = {EndOf(request), request};
    }
    return last;
  }

  double Seconds(const RecordedWakeUp& recorded, WakeUp kind) {
    return recorded.kind == WakeUp::kNone || recorded.kind == kind
               ? recorded.seconds
               : machine_.wake_up[kind];
  }

  // ---- Threads.

  // When the thread continues; kNever if that is not known yet.
  double TimeOf(const Thread& thread) const {
    if (thread.next == thread.requests.size()) return kNever;
    const PlayedRequest& request = Next(thread);
    if (thread.state == Thread::kAsks) return thread.now + request.ask;
    if (thread.state == Thread::kBlocked) return EndOf(thread.room);
    return std::max(thread.now, LastOf(request.awaits).first);
  }

  const PlayedRequest& Next(const Thread& thread) const {
    return program_.requests[thread.requests[thread.next]];
  }

  void GoOn(Thread& thread) {
    const int number = thread.requests[thread.next];
    const PlayedRequest& request = program_.requests[number];
    PlayedTimes& times = played_.times[number];
    if (thread.state == Thread::kWaits) {
      const auto [end, last] = LastOf(request.awaits);
      if (end > thread.now) {
        const bool late = end - thread.now > machine_.sleeps_after;
        times.returned = thread.now =
            end + Seconds(request.return_from_wait,
                          late ? WakeUp::kReturnLate : WakeUp::kReturnSoon);
        thread.last = {last, true};
      }
    } else {
      if (thread.state == Thread::kBlocked) {
        times.room = EndOf(thread.room) - thread.now;
        thread.now = EndOf(thread.room) + machine_.wake_up[WakeUp::kReturnLate];
        thread.last = {thread.room, true};
      } else {
        thread.now += request.ask;
        if (!TakePlace(thread, number)) {
          thread.state = Thread::kBlocked;
          return;
        }
      }
      times.asked = times.returned = thread.now;
      times.before_asking = std::exchange(thread.last, {number, false});
      if (request.stream < 0) times.begin = times.end = thread.now;
      thread.state = Thread::kWaits;
      if (!request.awaits.empty()) return;
    }
    thread.now += request.then;
    thread.state = Thread::kAsks;
    ++thread.next;
  }

  // Puts the request into the queue; false if the thread is blocked there.
  bool TakePlace(Thread& thread, int number) {
    const PlayedRequest& request = program_.requests[number];
    if (request.stream < 0) return true;
    Stream& stream = streams_[request.stream];
    const std::int64_t before =
        stream.places.empty() ? 0 : stream.places.back();
    const auto holder = [&](std::int64_t place) {
      return stream.queue[std::lower_bound(stream.places.begin(),
                                           stream.places.end(), place) -
                          stream.places.begin()];
    };
    const std::int64_t enough = before + request.slots - machine_.queue;
    bool room = enough <= 0 || before == 0;
    if (!room) {
      room = EndOf(holder(std::min(enough, before))) <= thread.now;
      thread.room = holder(std::min(before, enough + machine_.queue / 2));
    }
    stream.places.push_back(before + request.slots);
    stream.queue.push_back(number);
    return room;
  }

  // ---- Streams.

  Start StartOf(Stream& stream) {
    Start start;
    if (stream.head == stream.queue.size()) return start;
    const int number = stream.queue[stream.head];
    const PlayedRequest& request = program_.requests[number];
    const auto [events, last] = LastOf(request.after);
    if (events == kNever || played_.times[number].asked == kNever) return start;
    start.events = events;
    start.ready = played_.times[number].asked;
    start.before = {number, false};
    if (stream.free > start.ready) {
      start.ready = stream.free, start.before = {stream.last, true};
    }
    if (events > start.ready) start.ready = events, start.before = {last, true};
    start.time = start.ready;
    if (request.beside || machine_.cores == 0) return start;
    std::vector<Core>& cores = cores_[stream.device];
    start.core = &*std::min_element(
        cores.begin(), cores.end(),
        [](const Core& a, const Core& b) { return a.free < b.free; });
    if (start.core->free > start.ready) {
      start.time = start.core->free, start.before = {start.core->last, true};
    }
    return start;
  }

  void Begin(Stream& stream, const Start& start) {
    const int number = stream.queue[stream.head++];
    const PlayedRequest& request = program_.requests[number];
    PlayedTimes& times = played_.times[number];
    const WakeUp kind = start.time > start.ready
                            ? WakeUp::kBehind
                            : WakeUpOf(times.asked, stream.idle_since,
                                       start.events, machine_.sleeps_after);
    times.before_work = start.before;
    times.begin = start.time + Seconds(request.wake_up, kind);
    times.end = stream.free = times.begin + request.work;
    stream.last = number;
    if (request.work > 0) stream.idle_since = times.end;
    if (start.core != nullptr) *start.core = {times.end, number};
  }

  const PlayedProgram& program_;
  PlayedMachine machine_;
  Played played_;
  std::map<int, Thread> threads_;
  std::vector<Stream> streams_;
  std::vector<std::vector<Core>> cores_;  // by device
};

}  // namespace

Played Play(const PlayedProgram& program, const PlayedMachine& machine) {
  return Player(program, machine).Play();
}

std::vector<PlayedNode> PathOf(const Played& played) {
  std::vector<PlayedNode> path;
  double until = played.seconds;
  for (PlayedNode node = played.last; node.request >= 0;) {
    const PlayedTimes& times = played.times[node.request];
    const PlayedNode before =
        node.work ? times.before_work : times.before_asking;
    double from = 0;
    if (before.request >= 0) {
      const PlayedTimes& of_before = played.times[before.request];
      from = before.work ? of_before.end : of_before.asked;
    }
    node.seconds = until - from;
    path.push_back(node);
    until = from;
    node = before;
  }
  return path;
}

void FindWakeUps(std::vector<PlayedTimes> seen, std::size_t enough,
                 PlayedProgram& program, PlayedMachine& machine) {
  const std::vector<int>& device_of = program.device_of;
  // When a device's work ended, if streams may wait for its cores.
  std::map<int, std::set<double>> done;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const PlayedRequest& request = program.requests[i];
    if (request.beside || request.stream < 0 || machine.cores == 0) continue;
    const int device = device_of[request.stream];
    if (std::count(device_of.begin(), device_of.end(), device) >
        machine.cores) {
      done[device].insert(seen[i].end);
    }
  }
  std::map<WakeUp, std::vector<double>> all;
  const auto see = [&all](WakeUp kind, double seconds) {
    all[kind].push_back(std::max(0.0, seconds));
    return RecordedWakeUp{kind, std::max(0.0, seconds)};
  };
  std::vector<double> free(device_of.size(), 0);
  std::vector<double> idle_since(device_of.size(), -kNever);
  for (std::size_t i = 0; i < seen.size(); ++i) {
    PlayedRequest& request = program.requests[i];
    PlayedTimes& times = seen[i];
    if (request.stream < 0) {
      times.end = times.asked;
    } else {
      double events = 0;
      for (const int event : request.after) {
        events = std::max(events, seen[event].end);
      }
      double ready = std::max({times.asked, free[request.stream], events});
      if (times.end > 0) {
        WakeUp kind = WakeUpOf(times.asked, idle_since[request.stream], events,
                               machine.sleeps_after);
        if (!request.beside) {
          const std::set<double>& others = done[device_of[request.stream]];
          auto last = others.upper_bound(times.begin);
          if (last != others.begin() && *--last > ready) {
            ready = *last, kind = WakeUp::kBehind;
          }
        }
        const bool alone =
            request.slots <= 1 + static_cast<int>(request.after.size());
        if (alone) request.wake_up = see(kind, times.begin - ready);
        // Otherwise the work includes tasks before it that are no requests.
        request.work =
            times.end - (alone ? times.begin : std::min(ready, times.begin));
        idle_since[request.stream] = times.end;
      } else {
        times.end = ready;
      }
      free[request.stream] = times.end;
    }
    if (request.awaits.empty()) continue;
    const double until = seen[request.awaits[0]].end;
    if (until <= times.asked) continue;
    const bool late = until - times.asked > machine.sleeps_after;
    request.return_from_wait =
        see(late ? WakeUp::kReturnLate : WakeUp::kReturnSoon,
            times.returned - until);
  }
  // Without waits, workers are hardly ever idle, so kSoon is not typical.
  if (all[WakeUp::kReturnSoon].size() < enough) all.erase(WakeUp::kSoon);
  for (auto& [kind, seconds] : all) {
    if (seconds.size() < enough) continue;
    const auto middle = seconds.begin() + seconds.size() / 2;
    std::nth_element(seconds.begin(), middle, seconds.end());
    machine.wake_up[kind] = *middle;
  }
}

}  // namespace d2l
