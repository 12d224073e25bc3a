#include "common/device/cpu/parallel_for.h"

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "common/base/timer.h"
#include "common/device/backend.h"
#include "common/device/cpu/cpu_stream.h"
#include "common/device/device.h"
#include "common/device/failure.h"
#include "common/device/op_label.h"
#include "common/device/stream.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

const Device kDevice(DeviceType::kCpu, 1);

// More threads than most machines that run this have cores.
const int kCores[] = {1, 2, 3, 7, 33};

// Runs `task` on a stream of a device with `cores` cores.
void RunOn(int cores, const std::function<void()>& task) {
  CpuStream stream(kDevice, 0, StreamOptions(),
                   std::make_shared<ThreadPool>(cores));
  stream.Enqueue(OpLabel("task"), [&task] { task(); });
  stream.Synchronize();
}

// Waits until `ready` returns true; false after a minute.
bool WaitUntil(const std::function<bool()>& ready) {
  const Timer timer;
  while (!ready()) {
    if (timer.Seconds() > 60) return false;
    std::this_thread::yield();
  }
  return true;
}

struct Range {
  std::int64_t begin;
  std::int64_t end;
};

// The parts of one ParallelFor, sorted.
std::vector<Range> PartsOf(std::int64_t n, std::int64_t grain) {
  std::mutex mutex;
  std::vector<Range> parts;
  ParallelFor(n, grain, [&](std::int64_t begin, std::int64_t end) {
    std::lock_guard<std::mutex> lock(mutex);
    parts.push_back({begin, end});
  });
  std::sort(parts.begin(), parts.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  return parts;
}

// Expects that the parts make up [0, n), in whole grains.
void ExpectCovers(const std::vector<Range>& parts, std::int64_t n,
                  std::int64_t grain) {
  std::int64_t at = 0;
  for (const Range& part : parts) {
    EXPECT_EQ(part.begin, at);
    EXPECT_GT(part.end, part.begin);
    if (part.end != n) {
      EXPECT_EQ((part.end - part.begin) % grain, 0);
    }
    at = part.end;
  }
  EXPECT_EQ(at, n);
}

TEST(ParallelForTest, TakesEveryIndexOnceInWholeGrains) {
  for (const int cores : kCores) {
    RunOn(cores, [cores] {
      for (const std::int64_t n : {0, 1, 2, 3, 7, 64, 100, 1000, 4097}) {
        for (const std::int64_t grain : {1, 2, 3, 16, 999, 5000}) {
          SCOPED_TRACE(testing::Message() << cores << " cores, n = " << n
                                          << ", grain = " << grain);
          ExpectCovers(PartsOf(n, grain), n, grain);
          // Each index is written by one thread, and seen by this one.
          std::vector<int> times(static_cast<std::size_t>(n), 0);
          ParallelFor(n, grain, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i) ++times[i];
          });
          EXPECT_EQ(std::count(times.begin(), times.end(), 1), n);
        }
      }
    });
  }
}

TEST(ParallelForTest, PartsAreBalanced) {
  RunOn(3, [] {
    const std::vector<Range> parts = PartsOf(1000, 7);
    ASSERT_GT(parts.size(), 3u);
    std::int64_t least = 1000, most = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      least = std::min(least, parts[i].end - parts[i].begin);
      most = std::max(most, parts[i].end - parts[i].begin);
    }
    EXPECT_LE(most - least, 7);
  });
}

TEST(ParallelForTest, NothingOverflows) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  RunOn(7, [] {
    for (const std::int64_t grain :
         {std::int64_t{1}, kMost / 3, kMost / 2 + 1, kMost - 1, kMost}) {
      ExpectCovers(PartsOf(kMost, grain), kMost, grain);
    }
  });
}

TEST(ParallelForTest, TooLittleWorkIsOnePartOnTheSameThread) {
  RunOn(3, [] {
    const std::thread::id worker = std::this_thread::get_id();
    int calls = 0;
    ParallelFor(16, 16, [&](std::int64_t begin, std::int64_t end) {
      ++calls;
      EXPECT_EQ(begin, 0);
      EXPECT_EQ(end, 16);
      EXPECT_EQ(std::this_thread::get_id(), worker);
    });
    EXPECT_EQ(calls, 1);
    ParallelFor(0, 1, [&](std::int64_t, std::int64_t) { ++calls; });
    ParallelFor(-1, 1, [&](std::int64_t, std::int64_t) { ++calls; });
    EXPECT_EQ(calls, 1);
  });
}

TEST(ParallelForTest, OffAWorkerItIsAPlainCall) {
  int calls = 0;
  ParallelFor(1000, 1, [&](std::int64_t begin, std::int64_t end) {
    ++calls;
    EXPECT_EQ(begin, 0);
    EXPECT_EQ(end, 1000);
  });
  EXPECT_EQ(calls, 1);
}

TEST(ParallelForTest, AStreamWithoutATeamComputesAlone) {
  CpuStream stream(kDevice, 0, StreamOptions());
  int calls = 0;
  stream.Enqueue(OpLabel("task"), [&calls] {
    ParallelFor(1000, 1, [&](std::int64_t, std::int64_t) { ++calls; });
  });
  stream.Synchronize();
  EXPECT_EQ(calls, 1);
}

TEST(ParallelForTest, AllCoresWorkAtTheSameTime) {
  for (const int cores : {2, 3, 7}) {
    RunOn(cores, [cores] {
      std::atomic<int> begun{0};
      std::atomic<int> alone{0};
      // There are as many parts as cores, and none ends before all have begun.
      ParallelFor(cores, 1, [&](std::int64_t, std::int64_t) {
        ++begun;
        if (!WaitUntil([&] { return begun == cores; })) ++alone;
      });
      EXPECT_EQ(alone, 0);
    });
  }
}

TEST(ParallelForTest, ThrowsWhatTheLowestPartThrew) {
  for (const int cores : kCores) {
    RunOn(cores, [] {
      for (int round = 0; round < 200; ++round) {
        const std::int64_t from = round % 20;
        std::atomic<std::int64_t> done{0};
        try {
          ParallelFor(20, 1, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i) {
              if (i >= from) throw std::runtime_error(std::to_string(i));
              ++done;
            }
          });
          ADD_FAILURE() << "nothing was thrown";
        } catch (const std::runtime_error& error) {
          EXPECT_EQ(error.what(), std::to_string(from));
        }
        EXPECT_EQ(done, from) << "the parts before it are not cut short";
      }
      // The pool works as before.
      ExpectCovers(PartsOf(100, 3), 100, 3);
    });
  }
}

TEST(ParallelForTest, WhatAPartThrowsPoisonsTheStream) {
  CpuStream stream(kDevice, 0, StreamOptions(),
                   std::make_shared<ThreadPool>(3));
  stream.Enqueue(OpLabel("select"), [] {
    ParallelFor(100, 1, [](std::int64_t begin, std::int64_t) {
      if (begin > 50) throw std::out_of_range("an index");
    });
  });
  try {
    stream.Synchronize();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const AsyncError& error) {
    EXPECT_EQ(error.failure().operation, "select");
    EXPECT_EQ(error.failure().what, "an index");
  }
}

TEST(ParallelForTest, WithinAPartItIsAPlainCall) {
  RunOn(3, [] {
    std::atomic<int> inner{0};
    std::atomic<int> elsewhere{0};
    for (int round = 0; round < 100; ++round) {
      inner = 0;
      ParallelFor(12, 1, [&](std::int64_t begin, std::int64_t end) {
        const std::thread::id here = std::this_thread::get_id();
        ParallelFor(100, 1, [&](std::int64_t first, std::int64_t last) {
          inner += static_cast<int>((end - begin) * (last - first));
          if (first != 0 || std::this_thread::get_id() != here) ++elsewhere;
        });
      });
      EXPECT_EQ(inner, 12 * 100);
    }
    EXPECT_EQ(elsewhere, 0);
    // After the parts the next operation is spread again.
    EXPECT_GT(PartsOf(12, 1).size(), 1u);
  });
}

TEST(ParallelForTest, PartsMustNotCallIntoStreams) {
  CpuStream stream(kDevice, 0, StreamOptions(),
                   std::make_shared<ThreadPool>(2));
  std::atomic<int> refused{0};
  stream.Enqueue(OpLabel("task"), [&] {
    std::atomic<int> begun{0};
    ParallelFor(2, 1, [&](std::int64_t, std::int64_t) {
      ++begun;
      WaitUntil([&] { return begun == 2; });  // one of the two is a helper
      try {
        stream.Synchronize();
      } catch (const std::logic_error&) {
        ++refused;
      }
    });
  });
  stream.Synchronize();
  EXPECT_EQ(refused, 2);
}

TEST(ParallelForTest, ManyShortOnesInARow) {
  for (const int cores : {2, 3, 7}) {
    RunOn(cores, [] {
      std::vector<std::int64_t> sums(8);
      for (int round = 0; round < 20'000; ++round) {
        ParallelFor(2 + round % 7, 1,
                    [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t i = begin; i < end; ++i) ++sums[i];
                    });
      }
      for (std::int64_t i = 0; i < 8; ++i) {
        std::int64_t expected = 0;
        for (int round = 0; round < 20'000; ++round) {
          expected += i < 2 + round % 7;
        }
        EXPECT_EQ(sums[i], expected);
      }
    });
  }
}

TEST(ParallelForTest, HelpersWakeFromSleep) {
  for (int round = 0; round < 5; ++round) {
    RunOn(3, [] {
      for (int i = 0; i < 40; ++i) {
        // Shorter than, longer than and about as long as helpers poll for work.
        std::this_thread::sleep_for(std::chrono::microseconds(50 * (i % 8)));
        // Each part waits for the others: a helper that sleeps on is noticed.
        std::atomic<int> begun{0};
        std::atomic<int> alone{0};
        ParallelFor(3, 1, [&](std::int64_t, std::int64_t) {
          ++begun;
          if (!WaitUntil([&] { return begun == 3; })) ++alone;
        });
        EXPECT_EQ(alone, 0);
      }
    });
  }
}

TEST(ParallelForTest, TheCallerWaitsForALatePart) {
  RunOn(2, [] {
    for (int round = 0; round < 20; ++round) {
      const std::thread::id caller = std::this_thread::get_id();
      std::atomic<int> begun{0};
      std::atomic<bool> late{false};
      ParallelFor(2, 1, [&](std::int64_t, std::int64_t) {
        ++begun;
        WaitUntil([&] { return begun == 2; });
        if (std::this_thread::get_id() == caller) return;
        // Long enough for the caller to go to sleep, or about to.
        std::this_thread::sleep_for(std::chrono::microseconds(100 * round));
        late = true;
      });
      EXPECT_TRUE(late);
    }
  });
}

TEST(ParallelForTest, AStreamThatFindsTheTeamBusyComputesAlone) {
  // a's worker and two helpers, which may take both parts, leave a core to b.
  auto pool = std::make_shared<ThreadPool>(4);
  CpuStream a(kDevice, 0, StreamOptions(), pool);
  CpuStream b(kDevice, 1, StreamOptions(), pool);
  std::atomic<int> in_a{0};
  std::atomic<bool> go{false};
  std::vector<Range> alone;
  a.Enqueue(OpLabel("a"), [&] {
    ParallelFor(2, 1, [&](std::int64_t, std::int64_t) {
      ++in_a;
      WaitUntil([&] { return go.load(); });
    });
  });
  EXPECT_TRUE(WaitUntil([&] { return in_a == 2; }));
  b.Enqueue(OpLabel("b"), [&] { alone = PartsOf(1000, 1); });
  b.Synchronize();
  EXPECT_EQ(alone.size(), 1u);
  go = true;
  a.Synchronize();
  b.Enqueue(OpLabel("b"), [&] { alone = PartsOf(1000, 1); });
  b.Synchronize();
  EXPECT_GT(alone.size(), 1u) << "the pool is free again";
}

TEST(ParallelForTest, TwoStreamsOfADeviceAtOnce) {
  constexpr std::int64_t kN = 1000;
  auto pool = std::make_shared<ThreadPool>(3);
  CpuStream a(kDevice, 0, StreamOptions(), pool);
  CpuStream b(kDevice, 1, StreamOptions(), pool);
  std::vector<std::int64_t> in_a(kN), in_b(kN);
  const auto add = [](std::vector<std::int64_t>& to) {
    ParallelFor(kN, 10, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) to[i] += i;
    });
  };
  for (int i = 0; i < 2000; ++i) {
    a.Enqueue(OpLabel("a"), [&] { add(in_a); });
    b.Enqueue(OpLabel("b"), [&] { add(in_b); });
  }
  a.Synchronize();
  b.Synchronize();
  for (std::int64_t i = 0; i < kN; ++i) {
    EXPECT_EQ(in_a[i], 2000 * i);
    EXPECT_EQ(in_b[i], 2000 * i);
  }
}

TEST(ParallelForTest, AThreadThatWaitsComputesParts) {
  CpuStream stream(kDevice, 0, StreamOptions(),
                   std::make_shared<ThreadPool>(2));
  const std::thread::id here = std::this_thread::get_id();
  std::atomic<int> parts{0}, refused{0};
  const Timer timer;
  while (parts == 0 && timer.Seconds() < 60) {
    stream.Enqueue(OpLabel("task"), [&] {
      ParallelFor(8, 1, [&](std::int64_t, std::int64_t) {
        const Timer part;
        while (part.Nanos() < 20'000) {
        }
        if (std::this_thread::get_id() != here) return;
        ++parts;
        try {
          stream.Enqueue(OpLabel("from a part"), [] {});
        } catch (const std::logic_error&) {
          ++refused;
        }
      });
    });
    stream.Synchronize();
  }
  EXPECT_GT(parts, 0);
  EXPECT_EQ(refused, parts);
  stream.Enqueue(OpLabel("afterwards"), [] {});
}

struct AtEnd {
  ~AtEnd() { call(); }
  std::function<void()> call;
};

TEST(ParallelForTest, AGuestComputesOnlyWhatItWaitsFor) {
  ThreadPool pool(4);
  const int a = 0, b = 0;  // stand for two streams
  const std::thread::id here = std::this_thread::get_id();
  std::atomic<bool> go{false};
  std::atomic<int> begun{0}, mine{0};
  std::thread worker([&] {
    internal::SetCurrentPool(&pool, &a);
    // Up to four threads block; a core and most parts are left.
    ParallelFor(16, 1, [&](std::int64_t, std::int64_t) {
      ++begun;
      if (std::this_thread::get_id() == here) {
        ++mine;
      } else {
        WaitUntil([&] { return go.load(); });
      }
    });
  });
  EXPECT_TRUE(WaitUntil([&] { return begun > 0; }));
  const auto no = [] { return false; };
  EXPECT_FALSE(ThreadPool::Guest(pool, &b).Help(no)) << "of another stream";
  EXPECT_FALSE(ThreadPool::Guest(pool, &a).Help([] { return true; }))
      << "of a later operation";
  bool helped = true;
  std::thread([&] {
    thread_local AtEnd end;  // destroyed after those of Help
    end.call = [&] { helped = ThreadPool::Guest(pool, &a).Help(no); };
    ThreadPool::Guest(pool, &b).Help(no);
  }).join();
  EXPECT_FALSE(helped) << "without its thread_local objects";
  EXPECT_EQ(mine, 0);
  {
    ThreadPool::Guest guest(pool, &a);
    EXPECT_TRUE(WaitUntil([&] { return guest.Help(no); }));
  }
  EXPECT_GT(mine, 0);
  go = true;
  worker.join();
  EXPECT_EQ(begun, 16);
  EXPECT_FALSE(ThreadPool::Guest(pool, &a).Help(no)) << "nothing is left";
}

TEST(ParallelForTest, AGuestOfAnotherStreamReplacesNoHelper) {
  ThreadPool pool(2);
  const int a = 0, b = 0;  // stand for two streams
  ThreadPool::Guest guest(pool, &b);
  guest.Help([] { return false; });
  std::thread([&] {
    internal::SetCurrentPool(&pool, &a);
    for (int i = 0; i < 100; ++i) {
      std::atomic<int> begun{0};
      ParallelFor(2, 1, [&](std::int64_t, std::int64_t) {
        ++begun;
        EXPECT_TRUE(WaitUntil([&] { return begun == 2; }));
      });
    }
  }).join();
}

TEST(ParallelForTest, AGuestRoundsAsThePoolDoes) {
  ThreadPool pool(2);
  const int a = 0;
  const std::thread::id here = std::this_thread::get_id();
  std::atomic<int> mine{0}, other{0};
  std::atomic<bool> ended{false};
  std::thread worker([&] {
    internal::SetCurrentPool(&pool, &a);
    for (const Timer timer; mine == 0 && timer.Seconds() < 60;) {
      ParallelFor(8, 1, [&](std::int64_t, std::int64_t) {
        if (std::this_thread::get_id() == here) ++mine;
        if (std::fegetround() != FE_TONEAREST) ++other;
      });
    }
    ended = true;
  });
  std::fesetround(FE_DOWNWARD);
  {
    ThreadPool::Guest guest(pool, &a);
    while (!ended) guest.Help([] { return false; });
  }
  EXPECT_EQ(std::fegetround(), FE_DOWNWARD);
  std::fesetround(FE_TONEAREST);
  worker.join();
  EXPECT_GT(mine, 0);
  EXPECT_EQ(other, 0);
}

TEST(ParallelForTest, ATeamMayEndBeforeItHasBegun) {
  for (int i = 0; i < 100; ++i) {
    RunOn(7, [] {});
    RunOn(7, [] { PartsOf(2, 1); });
  }
}

TEST(ParallelForTest, WithLaunchBlocking) {
  CpuStream stream(kDevice, 0, StreamOptions(),
                   std::make_shared<ThreadPool>(3));
  SetLaunchBlocking(true);
  std::vector<int> times(1000);
  for (int i = 1; i <= 10; ++i) {
    stream.Enqueue(OpLabel("task"), [&times] {
      ParallelFor(1000, 1, [&times](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) ++times[i];
      });
    });
    EXPECT_EQ(std::count(times.begin(), times.end(), i), 1000);
  }
  SetLaunchBlocking(false);
}

// The back end makes one pool for each device with several cores.
class DeviceTeamTest : public testing::Test {
 protected:
  std::unique_ptr<Stream> Make(int device, int cores) {
    StreamOptions options;
    options.cores = cores;
    return CpuBackend().NewStream(Device(DeviceType::kCpu, device), 0, 0,
                                  options);
  }
  // Into how many parts `stream` cuts an operation.
  std::size_t Parts(Stream& stream) {
    std::vector<Range> parts;
    static_cast<CpuStream&>(stream).Enqueue(
        OpLabel("parts"), [&parts] { parts = PartsOf(1000, 1); });
    stream.Synchronize();
    return parts.size();
  }
};

TEST_F(DeviceTeamTest, StreamsOfADeviceShareIt) {
  // Of four cores a's worker and two helpers, which may take both parts, leave
  // one to b.
  const std::unique_ptr<Stream> a = Make(50, 4);
  const std::unique_ptr<Stream> b = Make(50, 4);
  const std::unique_ptr<Stream> other = Make(51, 2);
  const std::unique_ptr<Stream> single = Make(52, 1);
  EXPECT_GT(Parts(*a), 1u);
  EXPECT_GT(Parts(*b), 1u);
  std::atomic<int> begun{0};
  std::atomic<bool> go{false};
  static_cast<CpuStream&>(*a).Enqueue(OpLabel("busy"), [&] {
    ParallelFor(2, 1, [&](std::int64_t, std::int64_t) {
      ++begun;
      WaitUntil([&] { return go.load(); });
    });
  });
  EXPECT_TRUE(WaitUntil([&] { return begun == 2; }));
  EXPECT_EQ(Parts(*b), 1u);
  EXPECT_GT(Parts(*other), 1u);
  EXPECT_EQ(Parts(*single), 1u);
  go = true;
  a->Synchronize();
}

}  // namespace
}  // namespace d2l
