#include "common/exercise/simulated_streams.h"

#include <algorithm>
#include <cstddef>
#include <random>
#include <stdexcept>
#include <vector>

#include "gtest/gtest.h"

namespace d2l {
namespace {

double Seconds(const std::vector<SimulatedRequest>& requests) {
  return SimulateStreams(requests).seconds;
}

TEST(SimulatedStreams, EnqueueingOverlapsWithWork) {
  EXPECT_EQ(Seconds({}), 0);
  EXPECT_EQ(Seconds({{1, 4}}), 5);
  // The work sets the pace, or enqueueing does.
  EXPECT_EQ(Seconds({{1, 4}, {1, 4}, {1, 4}}), 13);
  EXPECT_EQ(Seconds({{4, 1}, {4, 1}, {4, 1}}), 13);
  // A wait for each, and then the front end's own work.
  EXPECT_EQ(Seconds({{1, 4, 0, {}, {0}, 2}, {1, 4, 0, {}, {1}, 2}}), 14);
  // Two streams, and one after the other.
  EXPECT_EQ(Seconds({{1, 4}, {1, 4, 1}}), 6);
  EXPECT_EQ(Seconds({{1, 4}, {1, 4, 1, {0}}}), 9);
}

TEST(SimulatedStreams, GivesTheTimesOfEachRequest) {
  // The header's example.
  const SimulatedRun run =
      SimulateStreams({{1, 4}, {1, 4, 1, {0}, {1}}, {1, 2}});
  ASSERT_EQ(run.times.size(), 3u);
  EXPECT_EQ(run.times[0].returned, 1);
  EXPECT_EQ(run.times[1].enqueued, 2);
  EXPECT_EQ(run.times[1].begin, 5);
  EXPECT_EQ(run.times[1].end, 9);
  EXPECT_EQ(run.times[1].returned, 9);
  EXPECT_EQ(run.times[2].begin, 10);
  EXPECT_EQ(run.seconds, 12);
}

TEST(SimulatedStreams, RefusesRequestsThatHaveNotBeenMade) {
  EXPECT_THROW(Seconds({{0, 1, -1}}), std::invalid_argument);
  EXPECT_THROW(Seconds({{0, 1, 0, {0}}}), std::invalid_argument);  // itself
  EXPECT_THROW(Seconds({{0, 1, 0, {1}}, {0, 1}}), std::invalid_argument);
  EXPECT_THROW(Seconds({{0, 1, 0, {-1}}}), std::invalid_argument);
  EXPECT_THROW(Seconds({{0, 1, 0, {}, {1}}, {0, 1}}), std::invalid_argument);
}

// The slow and obvious simulation, which goes from second to second.
class Clock {
 public:
  explicit Clock(const std::vector<SimulatedRequest>& requests)
      : requests_(requests), times_(requests.size()), done_(requests.size()) {}

  SimulatedRun Run() {
    for (now_ = 0; !AllDone(); ++now_) {
      bool changed = true;
      while (changed) {
        changed = FrontEnd();
        for (Stream& stream : streams_) changed = Work(stream) || changed;
      }
      if (AllDone()) break;
      --front_end_left_;
      for (Stream& stream : streams_) --stream.left;
    }
    return {static_cast<double>(now_), times_};
  }

 private:
  enum State { kIdle, kEnqueues, kWaits, kComputes };
  struct Stream {
    std::vector<int> queue;
    bool works = false;  // for the first of the queue
    int left = 0;
  };

  bool AllDone() const {
    return next_ == requests_.size() &&
           std::all_of(done_.begin(), done_.end(), [](bool d) { return d; });
  }
  bool Done(const std::vector<int>& requests) const {
    return std::all_of(requests.begin(), requests.end(),
                       [&](int i) { return done_[i]; });
  }

  // Goes one state on; false if the front end cannot yet.
  bool FrontEnd() {
    if (next_ == requests_.size()) return false;
    const SimulatedRequest& request = requests_[next_];
    switch (state_) {
      case kIdle:
        front_end_left_ = static_cast<int>(request.enqueue);
        state_ = kEnqueues;
        return true;
      case kEnqueues:
        if (front_end_left_ > 0) return false;
        times_[next_].enqueued = now_;
        streams_[request.stream].queue.push_back(static_cast<int>(next_));
        state_ = kWaits;
        return true;
      case kWaits:
        if (!Done(request.awaits)) return false;
        times_[next_].returned = now_;
        front_end_left_ = static_cast<int>(request.host_work);
        state_ = kComputes;
        return true;
      case kComputes:
        if (front_end_left_ > 0) return false;
        ++next_;
        state_ = kIdle;
        return true;
    }
    return false;
  }

  // Begins or ends the first work of the queue; false if it cannot yet.
  bool Work(Stream& stream) {
    if (stream.queue.empty()) return false;
    const int first = stream.queue[0];
    if (!stream.works) {
      if (!Done(requests_[first].after)) return false;
      times_[first].begin = now_;
      stream.left = static_cast<int>(requests_[first].work);
      stream.works = true;
      return true;
    }
    if (stream.left > 0) return false;
    times_[first].end = now_;
    done_[first] = true;
    stream.works = false;
    stream.queue.erase(stream.queue.begin());
    return true;
  }

  const std::vector<SimulatedRequest>& requests_;
  int now_ = 0;
  std::vector<RequestTimes> times_;
  std::vector<bool> done_;  // the work of each request
  std::size_t next_ = 0;    // the front end's request
  State state_ = kIdle;
  int front_end_left_ = 0;
  std::vector<Stream> streams_ = std::vector<Stream>(4);
};

TEST(SimulatedStreams, SimulatesRandomRequestsAsAClockDoes) {
  for (unsigned seed = 0; seed < 3000; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int n) { return static_cast<int>(random() % n); };
    const int streams = 1 + below(4);
    std::vector<SimulatedRequest> requests(below(40));
    for (int i = 0; i < static_cast<int>(requests.size()); ++i) {
      SimulatedRequest& request = requests[i];
      request.enqueue = below(4) * below(2);
      request.work = below(9) * below(2);
      request.stream = below(streams);
      request.host_work = below(3) == 0 ? below(4) : 0;
      if (i > 0 && below(3) == 0) request.after = {below(i), below(i)};
      if (below(5) == 0) request.awaits = {below(i + 1), below(i + 1)};
    }
    const SimulatedRun expected = Clock(requests).Run();
    const SimulatedRun run = SimulateStreams(requests);
    ASSERT_EQ(run.seconds, expected.seconds) << seed;
    ASSERT_EQ(run.times.size(), expected.times.size()) << seed;
    for (std::size_t i = 0; i < run.times.size(); ++i) {
      const RequestTimes &got = run.times[i], &clock = expected.times[i];
      ASSERT_EQ(got.enqueued, clock.enqueued) << seed << ", " << i;
      ASSERT_EQ(got.begin, clock.begin) << seed << ", " << i;
      ASSERT_EQ(got.end, clock.end) << seed << ", " << i;
      ASSERT_EQ(got.returned, clock.returned) << seed << ", " << i;
    }
  }
}

}  // namespace
}  // namespace d2l
