#include "common/profiler/play.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace d2l {
namespace {

constexpr int kHost = PlayedRequest::kHost;

double Seconds(std::vector<PlayedRequest> requests,
               const PlayedMachine& machine = {}) {
  return Play({std::move(requests)}, machine).seconds;
}

TEST(PlayTest, AskingOverlapsWithWork) {
  EXPECT_EQ(Seconds({}), 0);
  EXPECT_EQ(Seconds({{1, 4}}), 5);
  // The work sets the pace, or enqueueing does.
  EXPECT_EQ(Seconds({{1, 4}, {1, 4}, {1, 4}}), 13);
  EXPECT_EQ(Seconds({{4, 1}, {4, 1}, {4, 1}}), 13);
  // A wait for each, and then the thread's own work.
  EXPECT_EQ(Seconds({{1, 4, 0, {}, {0}, 2}, {1, 4, 0, {}, {1}, 2}}), 14);
  // Two streams, and one behind the other.
  EXPECT_EQ(Seconds({{1, 4}, {1, 4, 1}}), 6);
  EXPECT_EQ(Seconds({{1, 4}, {1, 4, 1, {0}}}), 9);
}

TEST(PlayTest, ABlockedThreadGoesOnWhenHalfOfTheQueueIsFree) {
  std::vector<PlayedRequest> requests(9, {0, 1});
  PlayedMachine machine;
  machine.queue = 4;
  const Played played = Play({requests}, machine);
  const std::vector<double> asked = {0, 0, 0, 0, 3, 3, 3, 6, 6};
  for (std::size_t i = 0; i < asked.size(); ++i) {
    EXPECT_EQ(played.times[i].asked, asked[i]) << i;
  }
  EXPECT_EQ(played.times[4].room, 3);
  EXPECT_EQ(played.seconds, 9);
  // A request may take several places.
  requests[1].slots = 3;
  EXPECT_EQ(Play({requests}, machine).times[2].asked, 2);
}

TEST(PlayTest, StreamsTakeTurnsOnACore) {
  PlayedProgram program;
  program.device_of = {0, 0};
  for (int i = 0; i < 6; ++i) program.requests.push_back({0, 2, i % 2});
  PlayedMachine machine;
  machine.cores = 1;
  EXPECT_EQ(Play(program, machine).seconds, 12);
  machine.cores = 2;
  EXPECT_EQ(Play(program, machine).seconds, 6);
  machine.cores = 1;
  for (PlayedRequest& request : program.requests) {
    request.beside = request.stream == 1;
  }
  EXPECT_EQ(Play(program, machine).seconds, 6);
}

TEST(PlayTest, AWakeUpOfAnotherKindIsTheMachines) {
  PlayedMachine machine;
  machine.sleeps_after = 10;
  machine.wake_up = {{WakeUp::kBehind, 0.25},
                     {WakeUp::kSoon, 1},
                     {WakeUp::kLate, 5},
                     {WakeUp::kReturnSoon, 0.5}};
  std::vector<PlayedRequest> requests = {{2, 4}, {1, 4}, {1, 4}};
  for (PlayedRequest& request : requests) request.wake_up = {WakeUp::kSoon, 3};
  // The worker sleeps first; then 0.25 behind the one before, twice.
  EXPECT_EQ(Seconds(requests, machine), 2 + 5 + 4 + 2 * 4.25);
  requests[0].wake_up = {WakeUp::kLate, 3};  // as recorded
  EXPECT_EQ(Seconds(requests, machine), 2 + 3 + 4 + 2 * 4.25);
  requests[2].ask = 100;  // the worker sleeps
  requests[2].awaits = {2};
  requests[2].return_from_wait = {WakeUp::kReturnLate, 9};
  EXPECT_EQ(Seconds(requests, machine), 103 + 5 + 4 + 0.5);
}

TEST(PlayTest, RefusesWhatWouldNeverHappen) {
  EXPECT_THROW(Seconds({{0, 1, 0, {1}}}), std::invalid_argument);
  EXPECT_THROW(Seconds({{0, 1, 0, {1}}, {0, 1, 0, {0}}}),
               std::invalid_argument);
  EXPECT_THROW(Seconds({{0, 1, 0, {1}, {0}}, {0, 1}}), std::invalid_argument);
}

TEST(PlayTest, ThePathLeadsFromTheEndToTheBegin) {
  const PlayedProgram program = {
      {{1, 4}, {1, 1, 1}, {1, 0, kHost, {}, {0}}, {1, 2, 1}, {1, 1}}};
  const Played played = Play(program, {});
  EXPECT_EQ(played.seconds, 8);
  // Work 3, enqueued behind the wait for work 0.
  const std::vector<PlayedNode> path = PathOf(played);
  const std::vector<std::pair<int, bool>> expected = {
      {3, true}, {3, false}, {0, true}, {0, false}};
  ASSERT_EQ(path.size(), expected.size());
  double seconds = 0;
  for (std::size_t i = 0; i < path.size(); ++i) {
    EXPECT_EQ(path[i].request, expected[i].first);
    EXPECT_EQ(path[i].work, expected[i].second);
    seconds += path[i].seconds;
  }
  EXPECT_EQ(seconds, played.seconds);
}

// The slow and obvious player, which goes from second to second. Gives nothing
// for a program that waits for ever.
class Clock {
 public:
  Clock(const PlayedProgram& program, const PlayedMachine& machine)
      : program_(program),
        machine_(machine),
        done_(program.requests.size(), -1),
        streams_(program.device_of.size()),
        threads_(3) {
    for (std::size_t i = 0; i < program.requests.size(); ++i) {
      threads_[program.requests[i].thread].todo.push_back(i);
    }
    for (Thread& thread : threads_) Prepare(thread);
  }

  std::optional<int> Seconds() {
    for (now_ = 0; now_ < 10'000; ++now_) {
      while (Work() || Ask()) {
      }
      bool idle = true;
      for (Stream& stream : streams_) {
        idle = idle && stream.queue.empty();
        if (stream.left > 0) --stream.left;
      }
      for (Thread& thread : threads_) {
        idle = idle && thread.todo.empty() && thread.left == 0;
        if (thread.left > 0) --thread.left;
      }
      if (idle) return now_;
    }
    return std::nullopt;
  }

 private:
  enum State { kAsking, kBlocked, kWaiting };
  struct Thread {
    std::vector<int> todo;
    State state = kAsking;
    int left = 0;  // seconds until it continues
    int enough = 0;
  };
  struct Stream {
    std::vector<int> queue;
    int asked = 0, finished = 0;  // places
    bool working = false;
    int left = 0, free_since = 0;
  };

  const PlayedRequest& At(int i) const { return program_.requests[i]; }
  void Prepare(Thread& thread) {
    if (!thread.todo.empty()) {
      thread.left += static_cast<int>(At(thread.todo[0]).ask);
    }
  }
  bool Done(const std::vector<int>& requests) const {
    return std::all_of(requests.begin(), requests.end(),
                       [&](int i) { return done_[i] >= 0; });
  }

  // Ends or begins something; false if there is nothing.
  bool Work() {
    for (Stream& stream : streams_) {
      if (!stream.working || stream.left > 0) continue;
      done_[stream.queue[0]] = now_;
      stream.finished += At(stream.queue[0]).slots;
      stream.queue.erase(stream.queue.begin());
      stream.working = false;
      stream.free_since = now_;
      return true;
    }
    int best = -1, best_since = 0;
    for (std::size_t s = 0; s < streams_.size(); ++s) {
      Stream& stream = streams_[s];
      if (stream.working || stream.queue.empty()) continue;
      const PlayedRequest& request = At(stream.queue[0]);
      if (!Done(request.after) || asked_at_[stream.queue[0]] < 0) continue;
      int since = std::max(asked_at_[stream.queue[0]], stream.free_since);
      for (const int i : request.after) since = std::max(since, done_[i]);
      int used = 0;
      for (std::size_t other = 0; other < streams_.size(); ++other) {
        used += streams_[other].working &&
                !At(streams_[other].queue[0]).beside &&
                program_.device_of[other] == program_.device_of[s];
      }
      if (!request.beside && machine_.cores > 0 && used >= machine_.cores) {
        continue;
      }
      if (best < 0 || since < best_since) {
        best = static_cast<int>(s), best_since = since;
      }
    }
    if (best < 0) return false;
    streams_[best].working = true;
    streams_[best].left = static_cast<int>(At(streams_[best].queue[0]).work);
    return true;
  }

  bool Ask() {
    for (Thread& thread : threads_) {
      if (thread.left > 0 || thread.todo.empty()) continue;
      const int number = thread.todo[0];
      const PlayedRequest& request = At(number);
      if (thread.state != kWaiting && request.stream >= 0) {
        Stream& stream = streams_[request.stream];
        const int queue = static_cast<int>(machine_.queue);
        if (thread.state == kAsking) {
          const int before = stream.asked;
          thread.enough = std::min(before, before + request.slots - queue);
          stream.asked += request.slots;
          stream.queue.push_back(number);
          asked_at_[number] = -1;  // only its place is taken
          if (stream.finished < thread.enough) {
            thread.state = kBlocked;
            thread.enough = std::min(before, thread.enough + queue / 2);
            return true;
          }
        }
        if (stream.finished < thread.enough) continue;
      }
      if (thread.state != kWaiting) {
        if (request.stream < 0) {
          done_[number] = now_;
        } else {
          asked_at_[number] = now_;
        }
        thread.state = kWaiting;
        return true;
      }
      if (!Done(request.awaits)) continue;
      thread.left = static_cast<int>(request.then);
      thread.todo.erase(thread.todo.begin());
      thread.state = kAsking;
      Prepare(thread);
      return true;
    }
    return false;
  }

  const PlayedProgram& program_;
  const PlayedMachine& machine_;
  int now_ = 0;
  std::vector<int> done_, asked_at_ = std::vector<int>(done_.size(), 0);
  std::vector<Stream> streams_;
  std::vector<Thread> threads_;
};

// One thread and many, queues of a place and more, cores or none; also programs
// that wait for ever.
TEST(PlayTest, PlaysRandomProgramsAsAClockDoes) {
  int endless = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int n) { return static_cast<int>(random() % n); };
    PlayedProgram program;
    for (int s = 1 + below(4); s > 0; --s) {
      program.device_of.push_back(below(2));
    }
    const int threads = 1 + below(3);
    const int count = below(40);
    for (int i = 0; i < count; ++i) {
      PlayedRequest request;
      request.ask = below(4) * below(2);
      request.work = below(9) * below(2);
      request.stream = below(5) == 0
                           ? kHost
                           : below(static_cast<int>(program.device_of.size()));
      request.then = below(3) == 0 ? below(4) : 0;
      request.thread = below(threads);
      request.beside = below(4) == 0;
      if (i > 0 && request.stream >= 0 && below(3) == 0) {
        request.after = {below(i), below(i)};
      }
      if (below(5) == 0) request.awaits = {below(i + 1)};
      if (request.stream == kHost) request.work = 0;
      program.requests.push_back(request);
    }
    PlayedMachine machine;
    machine.cores = below(3);
    machine.queue = 1 + below(below(2) == 0 ? 4 : 30);
    const std::optional<int> expected = Clock(program, machine).Seconds();
    if (!expected.has_value()) {
      EXPECT_THROW(Play(program, machine), std::invalid_argument) << seed;
      ++endless;
      continue;
    }
    const Played played = Play(program, machine);
    ASSERT_EQ(played.seconds, *expected) << seed;
    double path = 0;
    for (const PlayedNode& node : PathOf(played)) path += node.seconds;
    ASSERT_EQ(path, played.seconds) << seed;
  }
  EXPECT_LT(endless, 1000);
}

// Wake-ups that are found in the times of a play make these times again.
TEST(PlayTest, WakeUpsAreFoundInTheTimesThatTheyMake) {
  PlayedMachine machine;
  machine.sleeps_after = 10;
  machine.wake_up = {
      {WakeUp::kBehind, 1.0 / 64},    {WakeUp::kSoon, 1.0 / 32},
      {WakeUp::kLate, 1.0 / 16},      {WakeUp::kEvent, 1.0 / 8},
      {WakeUp::kReturnSoon, 1.0 / 4}, {WakeUp::kReturnLate, 1.0 / 2}};
  std::map<WakeUp, double> all;
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int n) { return static_cast<int>(random() % n); };
    PlayedProgram program;
    for (int s = 1 + below(4); s > 0; --s) {
      program.device_of.push_back(below(2));
    }
    for (int i = 0; i < 40; ++i) {
      PlayedRequest request;
      request.ask = below(4) == 0 ? 20 * below(2) : below(3);
      request.stream = below(static_cast<int>(program.device_of.size()));
      request.work = below(5) == 0 ? 0 : 1 + below(20);
      request.beside = request.work == 0 || below(4) == 0;
      if (i > 0 && below(3) == 0) request.after = {below(i)};
      if (below(5) == 0) request.awaits = {below(i + 1)};
      // It can never be of this kind, so the machine's time counts.
      if (request.work > 0) request.wake_up.kind = WakeUp::kReturnSoon;
      request.return_from_wait.kind = WakeUp::kSoon;
      program.requests.push_back(request);
    }
    machine.cores = below(2);
    const Played played = Play(program, machine);
    std::vector<PlayedTimes> seen = played.times;
    for (std::size_t i = 0; i < seen.size(); ++i) {
      PlayedRequest& request = program.requests[i];
      request.wake_up = request.return_from_wait = {};
      if (std::exchange(request.work, 0) == 0) seen[i].end = 0;
    }
    PlayedMachine found;
    found.cores = machine.cores;
    found.sleeps_after = machine.sleeps_after;
    FindWakeUps(seen, 1, program, found);
    for (const auto& [kind, seconds] : found.wake_up) {
      ASSERT_EQ(seconds, machine.wake_up[kind]) << seed;
      all[kind] = seconds;
    }
    found.wake_up = {};  // each request has its own
    const Played again = Play(program, found);
    for (std::size_t i = 0; i < seen.size(); ++i) {
      ASSERT_EQ(again.times[i].end, played.times[i].end) << seed << ", " << i;
      ASSERT_EQ(again.times[i].returned, played.times[i].returned) << seed;
    }
  }
  EXPECT_EQ(all, machine.wake_up);
}

}  // namespace
}  // namespace d2l
