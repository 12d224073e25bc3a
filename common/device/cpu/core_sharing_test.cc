// The streams of a virtual device share its cores: see device.h.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "common/base/timer.h"
#include "common/device/cpu/cpu_stream.h"
#include "common/device/cpu/parallel_for.h"
#include "common/device/device.h"
#include "common/device/event.h"
#include "common/device/failure.h"
#include "common/device/op_label.h"
#include "common/device/stream.h"
#include "common/device/stream_stall.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

// Waits until `ready` returns true; false after a minute.
bool WaitUntil(const std::function<bool()>& ready) {
  const Timer timer;
  while (!ready()) {
    if (timer.Seconds() > 60) return false;
    std::this_thread::yield();
  }
  return true;
}

// Counts how many threads are in SpendTime at once.
class Meter {
 public:
  void SpendTime() {
    const int here = ++now_;
    int most = most_;
    while (most < here && !most_.compare_exchange_weak(most, here)) {
    }
    const Timer timer;
    while (timer.Nanos() < 10'000) {
    }
    --now_;
  }
  int most() const { return most_; }

 private:
  std::atomic<int> now_{0};
  std::atomic<int> most_{0};
};

// ---- FairSemaphore.

TEST(FairSemaphoreTest, LetsInAsManyAsThereAreCores) {
  for (const int cores : {1, 2, 3}) {
    FairSemaphore gate(cores);
    Meter meter;
    std::vector<std::thread> threads;
    for (int t = 0; t < 5; ++t) {
      threads.emplace_back([&gate, &meter, t] {
        for (int i = 0; i < 500; ++i) {
          if ((t + i) % 3 != 0) {
            gate.Take();
          } else if (!gate.TryTake()) {
            continue;
          }
          meter.SpendTime();
          gate.Release();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_LE(meter.most(), cores);
    EXPECT_EQ(gate.free(), cores);
    EXPECT_FALSE(gate.wanted());
  }
}

TEST(FairSemaphoreTest, AReleasedCoreBelongsToTheThreadThatWaits) {
  FairSemaphore gate(1);
  gate.Take();
  std::atomic<bool> done{false};
  std::thread waits([&] {
    gate.Take();
    EXPECT_TRUE(WaitUntil([&] { return done.load(); }));
    gate.Release();
  });
  EXPECT_TRUE(WaitUntil([&] { return gate.wanted(); }));
  EXPECT_FALSE(gate.Release());
  EXPECT_FALSE(gate.TryTake()) << "although that thread is still asleep";
  done = true;
  waits.join();
  EXPECT_TRUE(gate.TryTake());
  EXPECT_TRUE(gate.Release());
}

// ---- The streams of one device.

class CoreSharingTest : public testing::Test {
 protected:
  void MakeDevice(int cores, int streams) {
    streams_.clear();
    pool_ = std::make_shared<ThreadPool>(cores);
    for (int i = 0; i < streams; ++i) {
      streams_.push_back(std::make_unique<CpuStream>(
          Device(DeviceType::kCpu, 0), i, StreamOptions(), pool_));
    }
  }
  template <typename F>
  void Enqueue(int stream, F task) {
    streams_[stream]->Enqueue(OpLabel("task"), std::move(task));
  }
  // False after a minute.
  bool Done(int stream) {
    return WaitUntil([&] { return streams_[stream]->Query(); });
  }

  std::shared_ptr<ThreadPool> pool_;
  std::vector<std::unique_ptr<CpuStream>> streams_;
};

TEST_F(CoreSharingTest, NoMoreTasksComputeAtOnceThanThereAreCores) {
  for (const int cores : {1, 2, 3}) {
    MakeDevice(cores, 4);
    Meter meter;
    for (int i = 0; i < 2000; ++i) {
      Enqueue(i % 4, [&meter] { meter.SpendTime(); });
    }
    for (const auto& stream : streams_) stream->Synchronize();
    EXPECT_LE(meter.most(), cores);
  }
}

TEST_F(CoreSharingTest, AsManyTasksComputeAtOnceAsThereAreCores) {
  for (const int cores : {1, 2, 3}) {
    MakeDevice(cores, 4);
    for (int round = 0; round < 100; ++round) {
      std::atomic<int> begun{0};
      for (int s = 0; s < cores; ++s) {
        Enqueue((round + s) % 4, [&begun, cores] {
          ++begun;
          EXPECT_TRUE(WaitUntil([&] { return begun == cores; }));
        });
      }
      for (const auto& stream : streams_) stream->Synchronize();
    }
  }
}

TEST_F(CoreSharingTest, CopiesAndCallbacksGoBeside) {
  MakeDevice(1, 2);
  std::vector<char> from(1000, 'x'), to(1000, ' ');
  std::atomic<bool> begun{false}, called{false};
  Enqueue(0, [&] {
    begun = true;
    EXPECT_TRUE(WaitUntil([&] { return called.load(); }));
  });
  EXPECT_TRUE(WaitUntil([&] { return begun.load(); }));
  streams_[1]->CopyAsync(to.data(), from.data(), 1000,
                         CopyKind::kDeviceToDevice);
  streams_[1]->HostCallback([&] { called = true; });
  EXPECT_TRUE(Done(0));
  EXPECT_EQ(to, from);
}

// A callback between two queued tasks runs without a core.
TEST_F(CoreSharingTest, ACallbackGivesUpTheCore) {
  MakeDevice(1, 2);
  std::atomic<bool> computed{false};
  {
    StreamStall stall(*streams_[0]);
    Enqueue(0, [] {});
    streams_[0]->HostCallback(
        [&] { EXPECT_TRUE(WaitUntil([&] { return computed.load(); })); });
    Enqueue(0, [] {});
  }
  Enqueue(1, [&] { computed = true; });
  EXPECT_TRUE(Done(0));
}

TEST_F(CoreSharingTest, AWaitGivesUpTheCore) {
  MakeDevice(1, 2);
  std::atomic<bool> before{false};
  StreamStall first(*streams_[0]), second(*streams_[1]);
  Enqueue(1, [] {});
  Enqueue(0, [&] { before = true; });
  streams_[0]->Wait(streams_[1]->Record());
  Enqueue(0, [] {});
  first.Release();
  EXPECT_TRUE(WaitUntil([&] { return before.load(); }));
  second.Release();
  EXPECT_TRUE(Done(0));
}

TEST_F(CoreSharingTest, AStalledStreamGivesUpTheCore) {
  MakeDevice(1, 2);
  std::atomic<bool> stalling{false};
  Enqueue(0, [&] { WaitUntil([&] { return stalling.load(); }); });
  std::thread other([&] {
    WaitUntil([&] { return streams_[0]->QueuedOperations() == 2; });
    stalling = true;
  });
  StreamStall stall(*streams_[0]);
  other.join();
  Enqueue(1, [] {});
  EXPECT_TRUE(Done(1));
}

TEST_F(CoreSharingTest, SkippingTakesNoCore) {
  MakeDevice(1, 2);
  Enqueue(1, [] { throw std::runtime_error("poison"); });
  EXPECT_TRUE(Done(1));
  std::atomic<bool> begun{false}, skipped{false};
  Enqueue(0, [&] {
    begun = true;
    EXPECT_TRUE(WaitUntil([&] { return skipped.load(); }));
  });
  EXPECT_TRUE(WaitUntil([&] { return begun.load(); }));
  Enqueue(1, [] { ADD_FAILURE() << "not skipped"; });
  EXPECT_TRUE(Done(1));
  skipped = true;
  EXPECT_TRUE(Done(0));
  EXPECT_THROW(streams_[1]->Synchronize(), AsyncError);
}

TEST_F(CoreSharingTest, StreamsTakeTurns) {
  MakeDevice(1, 2);
  constexpr int kTasks = 2000;  // for 20 turns
  int done = 0, done_before = kTasks;
  std::atomic<bool> begun{false};
  Enqueue(0, [&] {
    begun = true;
    EXPECT_TRUE(WaitUntil([&] { return pool_->core_wanted(); }));
  });
  for (int i = 0; i < kTasks; ++i) {
    Enqueue(0, [&done] {
      const Timer timer;
      while (timer.Nanos() < 10'000) {
      }
      ++done;
    });
  }
  EXPECT_TRUE(WaitUntil([&] { return begun.load(); }));
  Enqueue(1, [&] { done_before = done; });
  EXPECT_TRUE(Done(0) && Done(1));
  EXPECT_LT(done_before, kTasks);
  EXPECT_EQ(done, kTasks);
}

// ---- Operations that are spread over the cores.

TEST_F(CoreSharingTest, OneLargeOperationFillsTheDevice) {
  for (const int cores : {2, 3, 7}) {
    MakeDevice(cores, 2);
    for (int round = 0; round < 50; ++round) {
      Enqueue(1, [] {});  // another stream has computed, too, and is idle
      streams_[1]->Synchronize();
      Enqueue(0, [cores] {
        std::atomic<int> begun{0};
        ParallelFor(cores, 1, [&](std::int64_t, std::int64_t) {
          ++begun;
          EXPECT_TRUE(WaitUntil([&] { return begun == cores; }));
        });
      });
      streams_[0]->Synchronize();
    }
  }
}

TEST_F(CoreSharingTest, LargeOperationsOfTwoStreamsShareTheCores) {
  for (const int cores : {1, 2, 3}) {
    MakeDevice(cores, 3);
    Meter meter;
    std::atomic<std::int64_t> done{0};
    for (int i = 0; i < 300; ++i) {
      Enqueue(i % 3, [&] {
        ParallelFor(20, 1, [&](std::int64_t begin, std::int64_t end) {
          meter.SpendTime();
          done += end - begin;
        });
      });
    }
    for (const auto& stream : streams_) stream->Synchronize();
    EXPECT_EQ(done, 300 * 20);
    EXPECT_LE(meter.most(), cores);
  }
}

TEST_F(CoreSharingTest, AnOperationTakesTheCoreThatComesFree) {
  MakeDevice(2, 2);
  for (int round = 0; round < 50; ++round) {
    std::atomic<bool> computing{false}, end{false};
    Enqueue(1, [&] {
      computing = true;
      EXPECT_TRUE(WaitUntil([&] { return end.load(); }));
    });
    EXPECT_TRUE(WaitUntil([&] { return computing.load(); }));
    Enqueue(0, [&] {
      std::atomic<int> begun{0};
      ParallelFor(2, 1, [&](std::int64_t, std::int64_t) {
        if (++begun == 1) {
          // Sometimes long enough for the helper to fall asleep.
          const Timer timer;
          while (timer.Nanos() < 10'000 * (round % 20)) {
          }
        }
        end = true;
        EXPECT_TRUE(WaitUntil([&] { return begun == 2; }));
      });
    });
    for (const auto& stream : streams_) stream->Synchronize();
  }
}

TEST_F(CoreSharingTest, AHelperGivesItsCoreToAStreamThatWaits) {
  MakeDevice(2, 2);
  std::atomic<bool> both{false}, other_ran{false};
  std::atomic<int> begun{0}, helped_before{0};
  Enqueue(0, [&] {
    const std::thread::id worker = std::this_thread::get_id();
    ParallelFor(8, 1, [&](std::int64_t, std::int64_t) {
      if (++begun == 2) both = true;
      EXPECT_TRUE(WaitUntil([&] { return both.load(); }));
      if (std::this_thread::get_id() == worker) {
        EXPECT_TRUE(WaitUntil([&] { return other_ran.load(); }));
      } else if (!other_ran) {
        ++helped_before;
        EXPECT_TRUE(WaitUntil([&] { return pool_->core_wanted(); }));
      }
    });
  });
  EXPECT_TRUE(WaitUntil([&] { return both.load(); }));
  Enqueue(1, [&] { other_ran = true; });
  EXPECT_TRUE(Done(0) && Done(1));
  EXPECT_EQ(helped_before, 1);
}

// ---- Random work.

TEST_F(CoreSharingTest, RandomWork) {
  std::mt19937_64 random(13);
  for (int round = 0; round < 60; ++round) {
    const int cores = 1 + round % 3;
    constexpr int kStreams = 5;
    MakeDevice(cores, kStreams);
    Meter meter;
    std::atomic<int> computed{0}, called{0};
    int to_compute = 0, to_call = 0;
    std::vector<Event> events(1);
    std::vector<char> from(5000, 'x'), to(5000 * kStreams);
    for (int i = 0; i < 300; ++i) {
      const int s = static_cast<int>(random() % kStreams);
      switch (random() % 7) {
        case 0:
          events.push_back(streams_[s]->Record());
          break;
        case 1:
          streams_[s]->Wait(events[random() % events.size()]);
          break;
        case 2:
          streams_[s]->HostCallback([&called] { ++called; });
          ++to_call;
          break;
        case 3:
          streams_[s]->CopyAsync(to.data() + 5000 * s, from.data(), 5000,
                                 CopyKind::kDeviceToDevice);
          break;
        case 4:
          Enqueue(s, [&] {
            ParallelFor(8, 1, [&](std::int64_t begin, std::int64_t end) {
              meter.SpendTime();
              computed += static_cast<int>(end - begin);
            });
          });
          to_compute += 8;
          break;
        default:
          Enqueue(s, [&] {
            meter.SpendTime();
            ++computed;
          });
          ++to_compute;
      }
    }
    for (const auto& stream : streams_) stream->Synchronize();
    EXPECT_EQ(computed, to_compute);
    EXPECT_EQ(called, to_call);
    EXPECT_LE(meter.most(), cores);
  }
}

}  // namespace
}  // namespace d2l
