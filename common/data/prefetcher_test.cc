#include "common/data/prefetcher.h"

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <thread>

#include "common/base/mutex.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using std::chrono::seconds;

TEST(Prefetcher, KeepsTheOrder) {
  int next = 0;
  Prefetcher<std::unique_ptr<int>> values(
      [&] { return std::make_unique<int>(next++); }, 3);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(*values.Next(), i);
}

// Runs as a user who may create no more threads; root has no limit.
[[noreturn]] void PrefetchWithoutAThread() {
  constexpr int kNobody = 65534;
  const rlimit none = {0, 0};
  if (geteuid() == 0 && setresuid(kNobody, kNobody, kNobody) != 0) {
    std::cerr << "needs a thread: the user cannot be changed";
  } else if (setrlimit(RLIMIT_NPROC, &none) == 0) {
    try {
      Prefetcher<int> values([] { return 1; }, 1);
    } catch (const std::runtime_error& error) {
      std::cerr << error.what();
    }
  }
  std::_Exit(0);
}

TEST(Prefetcher, SaysThatItNeedsAThread) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(PrefetchWithoutAThread(), testing::ExitedWithCode(0),
              "needs a thread");
}

TEST(Prefetcher, MakesAsManyAheadAsItsDepthAndNoMore) {
  std::atomic<int> made{0};
  std::promise<void> third;
  {
    Prefetcher<int> values(
        [&] {
          if (made == 2) third.set_value();
          return made++;
        },
        2);
    std::future<void> begun = third.get_future();
    const auto deadline = std::chrono::steady_clock::now() + seconds(60);
    while (made < 2 && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
    EXPECT_EQ(made, 2);
    EXPECT_EQ(begun.wait_for(seconds(0)), std::future_status::timeout);
    EXPECT_EQ(values.Next(), 0);
    EXPECT_EQ(begun.wait_for(seconds(60)), std::future_status::ready);
  }
  EXPECT_EQ(made, 3);
}

TEST(Prefetcher, ThrowsWhereTheValueWouldBe) {
  int calls = 0;
  {
    Prefetcher<int> values(
        [&] {
          if (calls == 2) {
            ++calls;
            throw std::runtime_error("no third value");
          }
          return calls++;
        },
        4);
    EXPECT_EQ(values.Next(), 0);
    EXPECT_EQ(values.Next(), 1);
    for (int i = 0; i < 3; ++i) {
      try {
        values.Next();
        ADD_FAILURE() << "nothing thrown";
      } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "no third value");
      }
    }
  }
  EXPECT_EQ(calls, 3);
}

TEST(Prefetcher, StopsWhereverItIs) {
  // Ends with a full queue, an empty one, an unseen failure, and at once.
  for (int i = 0; i < 200; ++i) {
    int n = 0;
    Prefetcher<int> values(
        [&n, i] {
          if (i % 3 == 0 && n == 3) throw std::runtime_error("unseen");
          return n++;
        },
        1 + i % 3);
    for (int taken = 0; taken < i % 4 && taken < 3; ++taken) {
      EXPECT_EQ(values.Next(), taken);
    }
  }
}

TEST(Prefetcher, WaitsForTheCallThatIsRunning) {
  std::promise<void> begun;
  std::promise<void> go_on;
  std::shared_future<void> may_go_on = go_on.get_future().share();
  std::atomic<bool> finished{false};
  auto values = std::make_unique<Prefetcher<int>>(
      [&] {
        begun.set_value();
        EXPECT_EQ(may_go_on.wait_for(seconds(60)), std::future_status::ready);
        finished = true;
        return 0;
      },
      1);
  EXPECT_EQ(begun.get_future().wait_for(seconds(60)),
            std::future_status::ready);
  std::thread stop([&] {
    values.reset();
    EXPECT_TRUE(finished);
  });
  go_on.set_value();
  stop.join();
}

}  // namespace
}  // namespace d2l
