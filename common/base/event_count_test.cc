#include "common/base/event_count.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace d2l {
namespace {

TEST(EventCount, WhatHoldsAlreadyIsNotWaitedFor) {
  EventCount changed;
  changed.Notify();
  changed.Sleep([] { return true; });
  changed.Await(0, [] { return true; });
  EXPECT_EQ(changed.sleepers(), 0);
}

TEST(EventCount, SleepsOnceUnlessItHolds) {
  EventCount changed;
  changed.SleepUnless([] { return true; });
  std::atomic<bool> back{false};
  std::thread sleeper([&] {
    changed.SleepUnless([] { return false; });
    back = true;
  });
  while (!back) {
    changed.Notify();
    std::this_thread::yield();
  }
  sleeper.join();
  EXPECT_EQ(changed.sleepers(), 0);
}

// Each thread waits for the other's number: one that misses a wake-up hangs.
TEST(EventCount, NoWakeUpIsMissedThereAndBack) {
  constexpr int kRounds = 20'000;
  for (const std::int64_t spin_nanos : {0, 1'000}) {
    EventCount changed[2];
    std::atomic<int> number{0};
    const auto play = [&](int self) {
      for (int i = self; i < kRounds; i += 2) {
        changed[self].Await(spin_nanos, [&] { return number.load() == i; });
        number = i + 1;
        changed[1 - self].Notify();
      }
    };
    std::thread other([&] { play(1); });
    play(0);
    other.join();
    EXPECT_EQ(number, kRounds);
  }
}

TEST(EventCount, WakesAsManyAsItIsTold) {
  constexpr int kThreads = 6;
  EventCount changed;
  std::atomic<bool> over{false};
  std::atomic<int> looks{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      changed.Sleep([&] {
        ++looks;
        return over.load();
      });
    });
  }
  while (looks < kThreads) std::this_thread::yield();
  EXPECT_EQ(changed.sleepers(), kThreads);
  // More threads may poll: those that had not fallen asleep yet.
  changed.Notify(2);
  while (looks < kThreads + 2) std::this_thread::yield();
  // No condition holds.
  while (changed.sleepers() < kThreads) std::this_thread::yield();
  over = true;
  changed.Notify();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(changed.sleepers(), 0);
}

// Each thread waits for its own number, and is woken in the lane of it.
TEST(EventCount, LanesAreWokenApart) {
  constexpr std::uint64_t kThreads = 40;  // more than there are lanes
  EventCount changed;
  std::atomic<std::uint64_t> served{0};
  std::atomic<std::uint64_t> through{0};
  std::vector<std::thread> threads;
  for (std::uint64_t n = 0; n < kThreads; ++n) {
    threads.emplace_back([&, n] {
      changed.Sleep([&] { return served.load() > n; }, EventCount::Lane(n));
      ++through;
    });
  }
  for (std::uint64_t n = 0; n < kThreads; ++n) {
    ++served;
    changed.Notify(EventCount::kAll, EventCount::Lane(n));
    while (through <= n) std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(through, kThreads);
}

}  // namespace
}  // namespace d2l
