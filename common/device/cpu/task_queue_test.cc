#include "common/device/cpu/task_queue.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/machine.h"
#include "common/base/timer.h"
#include "common/device/failure.h"
#include "common/device/op_label.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

constexpr std::chrono::milliseconds kGrace(20);

void SpinFor(std::int64_t nanos) {
  const Timer timer;
  while (timer.Nanos() < nanos) {
  }
}

// The one consumer. Runs every task, except those for which `skip` is true.
class Consumer {
 public:
  explicit Consumer(TaskQueue& queue, bool skip = false)
      : queue_(queue), thread_([this, skip] {
          while (TaskQueue::Slot* slot = queue_.Front()) {
            try {
              slot->run(
                  slot->payload,
                  skip ? TaskQueue::Action::kSkip : TaskQueue::Action::kRun,
                  nullptr);
            } catch (...) {
              ++thrown_;
            }
            queue_.PopFront();
          }
        }) {}
  ~Consumer() {
    queue_.Stop();
    thread_.join();
  }

  int thrown() const { return thrown_; }

 private:
  TaskQueue& queue_;
  std::atomic<int> thrown_{0};
  std::thread thread_;
};

TEST(TaskQueueTest, NumbersTasksFromZero) {
  TaskQueue queue(4);
  Consumer consumer(queue);
  for (std::uint64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(queue.Push(OpLabel("task"), [] {}), i);
  }
  EXPECT_EQ(queue.pushed(), 100u);
  queue.WaitUntilCompleted(100);
  EXPECT_EQ(queue.completed(), 100u);
}

TEST(TaskQueueTest, AMillionTasksFromEightThreads) {
  constexpr int kThreads = 8;
  constexpr std::uint64_t kPerThread = 125'000;
  TaskQueue queue(4096);
  std::array<std::uint64_t, kThreads> next{};  // the consumer's
  std::uint64_t out_of_order = 0;
  std::uint64_t count = 0;
  {
    Consumer consumer(queue);
    std::vector<std::thread> producers;
    // Each producer's numbers must rise, and the consumer must see them so.
    for (int t = 0; t < kThreads; ++t) {
      producers.emplace_back([&, t] {
        std::uint64_t last = 0;
        for (std::uint64_t i = 0; i < kPerThread; ++i) {
          const std::uint64_t number = queue.Push(OpLabel("task"), [&, t, i] {
            if (next[t]++ != i) ++out_of_order;
            ++count;
          });
          if (i > 0 && number <= last) ADD_FAILURE() << "numbers must rise";
          last = number;
        }
      });
    }
    for (std::thread& producer : producers) producer.join();
    queue.WaitUntilCompleted(kThreads * kPerThread);
  }
  EXPECT_EQ(count, kThreads * kPerThread);
  EXPECT_EQ(out_of_order, 0u);
  for (const std::uint64_t n : next) EXPECT_EQ(n, kPerThread);
}

class BoundTest : public testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Bounds, BoundTest, testing::Values(1, 2, 3, 7, 4096));

TEST_P(BoundTest, IsNeverExceeded) {
  const std::uint64_t bound = GetParam();
  constexpr int kThreads = 4;
  const std::uint64_t per_thread = bound > 1000 ? 20'000 : 5'000;
  const std::uint64_t total = 1 + kThreads * per_thread;
  TaskQueue queue(static_cast<std::int64_t>(bound));
  std::atomic<std::uint64_t> returned{0};  // pushes that have returned
  std::uint64_t run = 0;                   // the consumer's
  std::uint64_t exceeded = 0;
  std::promise<void> open;
  {
    Consumer consumer(queue);
    queue.Push(OpLabel("gate"), [&] {
      open.get_future().wait();
      ++run;
    });
    ++returned;
    std::vector<std::thread> producers;
    for (int t = 0; t < kThreads; ++t) {
      producers.emplace_back([&] {
        for (std::uint64_t i = 0; i < per_thread; ++i) {
          queue.Push(OpLabel("task"), [&] {
            // `run` tasks are done and this one is still queued.
            if (returned > run + bound) ++exceeded;
            ++run;
          });
          ++returned;
        }
      });
    }
    // The consumer is blocked, so exactly `bound` pushes can return.
    while (returned < bound) std::this_thread::yield();
    std::this_thread::sleep_for(kGrace);  // for more to return, wrongly
    EXPECT_EQ(returned, bound);
    EXPECT_EQ(queue.completed(), 0u);
    open.set_value();
    for (std::thread& producer : producers) producer.join();
    queue.WaitUntilCompleted(total);
  }
  EXPECT_EQ(run, total);
  EXPECT_EQ(exceeded, 0u);
}

TEST_P(BoundTest, OneThreadGoesRoundManyTimes) {
  TaskQueue queue(static_cast<std::int64_t>(GetParam()));
  std::uint64_t sum = 0;
  {
    Consumer consumer(queue);
    for (std::uint64_t i = 0; i < 20'000; ++i) {
      queue.Push(OpLabel("task"), [&sum, i] { sum = sum * 31 + i; });
    }
  }  // Stop lets the consumer finish
  std::uint64_t expected = 0;
  for (std::uint64_t i = 0; i < 20'000; ++i) expected = expected * 31 + i;
  EXPECT_EQ(sum, expected);
}

TEST(TaskQueueTest, AnIdleConsumerSleepsAndIsWoken) {
  TaskQueue queue(16);
  Consumer consumer(queue);
  std::uint64_t pushed = 0;
  // Until it has been found asleep twenty times; each time the task must run.
  while (queue.wakeups() < 20) {
    // The consumer needs a core to notice that it has nothing to do.
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::int64_t wakeups = queue.wakeups(), begin = NowNanos();
    queue.Push(OpLabel("task"), [] {});
    if (queue.wakeups() > wakeups) {
      EXPECT_GE(queue.woken_at(), begin);
      EXPECT_LE(queue.woken_at(), NowNanos());
    }
    queue.WaitUntilCompleted(++pushed);
  }
}

TEST(TaskQueueTest, SleepingConsumersOfOtherQueuesLetThisOnePoll) {
  std::vector<std::unique_ptr<TaskQueue>> others;
  std::vector<std::unique_ptr<Consumer>> asleep;
  for (int i = 0; i < UsableCores() + 2; ++i) {
    others.push_back(std::make_unique<TaskQueue>(16));
    asleep.push_back(std::make_unique<Consumer>(*others.back()));
  }
  TaskQueue queue(16);
  Consumer consumer(queue);
  std::uint64_t pushed = 0;
  // The gaps are shorter than the consumer polls. It sleeps nevertheless while
  // another program has its core; and if it shares the producer's core, it is
  // awake in some gaps even if it hardly polls.
  constexpr int kGaps = 2000;
  std::int64_t fewest = kGaps;
  for (const Timer timer; fewest > kGaps / 4 && timer.Seconds() < 60;) {
    const std::int64_t before = queue.wakeups();
    for (int i = 0; i < kGaps; ++i) {
      SpinFor(80'000);
      queue.Push(OpLabel("task"), [] {});
      queue.WaitUntilCompleted(++pushed);
    }
    fewest = std::min(fewest, queue.wakeups() - before);
  }
  EXPECT_LE(fewest, kGaps / 4);
}

TEST(TaskQueueTest, PushesAtTheMomentOfFallingAsleep) {
  // The consumer polls for about 120 us before it sleeps, so these gaps hit the
  // moment of falling asleep. A lost wake-up would hang.
  std::mt19937_64 random(1);
  TaskQueue queue(16);
  Consumer consumer(queue);
  std::uint64_t pushed = 0;
  for (int i = 0; i < 3000; ++i) {
    SpinFor(static_cast<std::int64_t>(100'000 + random() % 50'000));
    queue.Push(OpLabel("task"), [] {});
    queue.WaitUntilCompleted(++pushed);
  }
}

TEST(TaskQueueTest, SeveralProducersWakeASleepingConsumer) {
  constexpr int kThreads = 4;
  std::uint64_t total = 0;
  for (int round = 0; round < 50; ++round) {
    std::uint64_t run = 0;
    TaskQueue fresh(2);
    Consumer consumer(fresh);
    SpinFor(200'000);
    std::vector<std::thread> producers;
    for (int t = 0; t < kThreads; ++t) {
      producers.emplace_back([&] {
        for (int i = 0; i < 5; ++i) fresh.Push(OpLabel("task"), [&] { ++run; });
      });
    }
    for (std::thread& producer : producers) producer.join();
    fresh.WaitUntilCompleted(kThreads * 5);
    total += run;
  }
  EXPECT_EQ(total, 50u * kThreads * 5);
}

TEST(TaskQueueTest, ABusyConsumerIsNotWokenForEachTask) {
  TaskQueue queue(4096);
  std::promise<void> entered;
  std::promise<void> open;
  Consumer consumer(queue);
  queue.Push(OpLabel("gate"), [&] {
    entered.set_value();
    open.get_future().wait();
  });
  entered.get_future().wait();
  const std::int64_t before = queue.wakeups();
  for (int i = 0; i < 1000; ++i) queue.Push(OpLabel("task"), [] {});
  EXPECT_EQ(queue.wakeups(), before);
  open.set_value();
  queue.WaitUntilCompleted(1001);
  EXPECT_LE(queue.wakeups(), before + 1);
}

TEST(TaskQueueTest, WaitsUntilACertainTaskIsDone) {
  TaskQueue queue(100);
  std::promise<void> open;
  std::atomic<int> run{0};
  Consumer consumer(queue);
  for (int i = 0; i < 10; ++i) queue.Push(OpLabel("task"), [&run] { ++run; });
  queue.Push(OpLabel("gate"), [&open] { open.get_future().wait(); });
  queue.Push(OpLabel("task"), [&run] { ++run; });
  queue.WaitUntilCompleted(10);  // does not wait for the gate
  EXPECT_EQ(run, 10);
  std::vector<std::future<int>> waiters;
  for (const std::uint64_t count : {12, 11, 12}) {
    waiters.push_back(std::async(std::launch::async, [&queue, &run, count] {
      queue.WaitUntilCompleted(count);
      return run.load();
    }));
  }
  for (auto& waiter : waiters) {
    EXPECT_EQ(waiter.wait_for(kGrace), std::future_status::timeout);
  }
  open.set_value();
  EXPECT_EQ(waiters[0].get(), 11);
  EXPECT_GE(waiters[1].get(), 10);
  EXPECT_EQ(waiters[2].get(), 11);
}

// Counts how many live instances there are that have not been moved from.
struct Counted {
  explicit Counted(std::atomic<int>* live) : live(live) { ++*live; }
  Counted(Counted&& other) noexcept
      : live(std::exchange(other.live, nullptr)) {}
  ~Counted() {
    if (live != nullptr) --*live;
  }
  std::atomic<int>* live;
};

TEST(TaskQueueTest, DestroysEachTaskOnceWhateverHappensToIt) {
  for (const bool skip : {false, true}) {
    std::atomic<int> live{0};
    int run = 0;
    TaskQueue queue(64);
    {
      Consumer consumer(queue, skip);
      for (int i = 0; i < 1000; ++i) {
        queue.Push(OpLabel("task"), [counted = Counted(&live), &run, i] {
          ++run;
          if (i % 3 == 0) throw std::runtime_error("no");
          if (i % 3 == 1) throw i;
        });
      }
      queue.WaitUntilCompleted(1000);
      EXPECT_EQ(live, 0);
      EXPECT_EQ(consumer.thrown(), skip ? 0 : 667);
    }
    EXPECT_EQ(live, 0);
    EXPECT_EQ(run, skip ? 0 : 1000);
  }
}

TEST(TaskQueueTest, TakesLargeAndMoveOnlyTasks) {
  struct Large {
    std::array<std::uint64_t, 11> numbers;
    std::unique_ptr<std::uint64_t> sum;
    std::promise<std::uint64_t>* result;
    void operator()() {
      for (const std::uint64_t n : numbers) *sum += n;
      result->set_value(*sum);
    }
  };
  static_assert(sizeof(Large) <= TaskQueue::kInlineBytes);
  TaskQueue queue(4);
  Consumer consumer(queue);
  for (std::uint64_t i = 0; i < 100; ++i) {
    std::promise<std::uint64_t> result;
    Large task{{}, std::make_unique<std::uint64_t>(0), &result};
    for (std::uint64_t k = 0; k < 11; ++k) task.numbers[k] = i + k;
    queue.Push(OpLabel("task"), std::move(task));
    EXPECT_EQ(result.get_future().get(), 11 * i + 55);
  }
}

TEST(TaskQueueTest, PushAlwaysRunsOnASkippingConsumerToo) {
  TaskQueue queue(4);
  bool ran = false;
  bool always = false;
  {
    Consumer consumer(queue, /*skip=*/true);
    queue.Push(OpLabel("task"), [&ran] { ran = true; });
    queue.PushAlways(OpLabel("event"),
                     [&always](const FailurePtr&) { always = true; });
  }
  EXPECT_FALSE(ran);
  EXPECT_TRUE(always);
}

}  // namespace
}  // namespace d2l
