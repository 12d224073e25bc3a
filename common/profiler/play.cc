#include "common/profiler/play.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"

namespace d2l {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Of all that can happen next the earliest does, so cores go to those that have
// waited for them the longest.
class Player {
 public:
  Player(const PlayedProgram& program, const PlayedMachine& machine)
      : program_(program), machine_(machine) {
    const int count = static_cast<int>(program.requests.size());
    // When the work is done; unknown until it begins.
    played_.times.assign(count, {0, 0, kNever});
    for (int i = 0; i < count; ++i) {
      const PlayedRequest& request = program.requests[i];
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
      played_.seconds = std::max(played_.seconds, thread.now);
    }
    for (const Stream& stream : streams_) {
      if (stream.head < stream.queue.size()) Refuse(stream.queue[stream.head]);
      played_.seconds = std::max(played_.seconds, stream.free);
    }
    return std::move(played_);
  }

 private:
  struct Thread {
    std::vector<int> requests;
    std::size_t next = 0;
    double now = 0;
    enum { kAsks, kBlocked, kWaits } state = kAsks;  // with the next
    int room = -1;  // when this is done, there is
  };
  struct Stream {
    int device = 0;
    std::vector<int> queue;            // all that was asked of it
    std::vector<std::int64_t> places;  // that these take, up to each
    std::size_t head = 0;              // the first that has not begun
    double free = 0;                   // when what has begun is done
    double idle_since = -kNever;       // of work; before the first it slept
    int last = -1;                     // done at `free`
  };
  struct Core {
    double free = 0;
    int last = -1;
  };
  // Of the first in a stream's queue.
  struct Start {
    double ready = kNever;  // but for a core
    double time = kNever;
    int cause = -1;
    double events = 0;
    Core* core = nullptr;
  };

  [[noreturn]] static void Refuse(int request) {
    throw std::invalid_argument(
        absl::StrCat("[play] request ", request, " would wait for ever"));
  }
  void CheckNumbers(int request, const std::vector<int>& numbers) const {
    const int count = static_cast<int>(played_.times.size());
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
    // At the same time, work before threads, and what has waited for longest.
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

  // The last of these to be done, and when; kNever if that is not known yet.
  std::pair<double, int> LastOf(const std::vector<int>& requests) const {
    std::pair<double, int> last = {0, -1};
    for (const int request : requests) {
      if (EndOf(request) >= last.first) last = {EndOf(request), request};
    }
    return last;
  }

  double Seconds(const RecordedWakeUp& recorded, WakeUp kind) const {
    return recorded.kind == WakeUp::kNone || recorded.kind == kind
               ? recorded.seconds
               : machine_.wake_up[static_cast<std::size_t>(kind)];
  }

  // ---- Threads.

  // When it goes on; kNever if that is not known yet.
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
    if (thread.state == Thread::kAsks) {
      thread.now += request.ask;
      times.asked = kNever;
      thread.state =
          TakePlace(thread, number) ? Thread::kWaits : Thread::kBlocked;
      if (thread.state == Thread::kBlocked) return;
    } else if (thread.state == Thread::kBlocked) {
      times.ask_cause = thread.room;
      times.room = EndOf(thread.room) - thread.now;
      thread.now = EndOf(thread.room) +
                   machine_.wake_up[static_cast<int>(WakeUp::kReturnLate)];
    } else if (const auto [end, last] = LastOf(request.awaits);
               end > thread.now) {
      times.return_cause = last;
      const bool late = end - thread.now > machine_.sleeps_after;
      times.returned = thread.now =
          end + Seconds(request.return_from_wait,
                        late ? WakeUp::kReturnLate : WakeUp::kReturnSoon);
    }
    if (times.asked == kNever) {
      times.asked = times.returned = thread.now;
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
    if (stream.free > start.ready) {
      start.ready = stream.free, start.cause = stream.last;
    }
    if (events > start.ready) start.ready = events, start.cause = last;
    start.time = start.ready;
    if (request.beside || machine_.cores == 0) return start;
    std::vector<Core>& cores = cores_[stream.device];
    start.core = &*std::min_element(
        cores.begin(), cores.end(),
        [](const Core& a, const Core& b) { return a.free < b.free; });
    if (start.core->free > start.ready) {
      start.time = start.core->free, start.cause = start.core->last;
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
    times.work_cause = start.cause;
    times.begin = start.time + Seconds(request.wake_up, kind);
    times.end = stream.free = times.begin + request.work;
    stream.last = number;
    if (request.work > 0) stream.idle_since = times.end;
    if (start.core != nullptr) *start.core = {times.end, number};
  }

  const PlayedProgram& program_;
  const PlayedMachine& machine_;
  Played played_;
  std::map<int, Thread> threads_;
  std::vector<Stream> streams_;
  std::vector<std::vector<Core>> cores_;  // by device
};

}  // namespace

WakeUp WakeUpOf(double asked, double free, double events, double sleeps_after) {
  if (asked >= std::max(free, events)) {
    return asked - free > sleeps_after ? WakeUp::kLate : WakeUp::kSoon;
  }
  return events > free ? WakeUp::kEvent : WakeUp::kBehind;
}

Played Play(const PlayedProgram& program, const PlayedMachine& machine) {
  return Player(program, machine).Play();
}

std::vector<PlayedNode> PathOf(const PlayedProgram& program,
                               const Played& played) {
  std::vector<int> before(program.requests.size(), -1);  // on its thread
  std::map<int, int> last_of;
  PlayedNode node;
  double now = -1;
  for (std::size_t i = 0; i < program.requests.size(); ++i) {
    const int number = static_cast<int>(i);
    const auto [last, first] = last_of.emplace(program.requests[i].thread, -1);
    before[i] = std::exchange(last->second, number);
    const PlayedTimes& times = played.times[i];
    if (times.end > now) now = times.end, node = {number, true, 0};
  }
  // A thread ends behind its last request.
  for (const auto& [thread, last] : last_of) {
    const PlayedTimes& times = played.times[last];
    const double end = times.returned + program.requests[last].then;
    if (end <= now) continue;
    now = end;
    node = times.return_cause >= 0 ? PlayedNode{times.return_cause, true, 0}
                                   : PlayedNode{last, false, 0};
  }
  std::vector<PlayedNode> path;
  while (node.request >= 0) {
    const PlayedTimes& times = played.times[node.request];
    PlayedNode next;
    double from = 0;
    if (node.work) {
      next = times.work_cause >= 0 ? PlayedNode{times.work_cause, true, 0}
                                   : PlayedNode{node.request, false, 0};
      from = next.work ? played.times[next.request].end : times.asked;
    } else if (times.ask_cause >= 0) {
      next = {times.ask_cause, true, 0};
      from = played.times[next.request].end;
    } else if (const int previous = before[node.request]; previous >= 0) {
      const PlayedTimes& of_previous = played.times[previous];
      next = of_previous.return_cause >= 0
                 ? PlayedNode{of_previous.return_cause, true, 0}
                 : PlayedNode{previous, false, 0};
      from = next.work ? played.times[next.request].end : of_previous.asked;
    }
    node.seconds = now - from;
    now = from;
    path.push_back(node);
    node = next;
  }
  return path;
}

}  // namespace d2l
