#include "common/parallel/collective.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <deque>
#include <random>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/device/device_table.h"
#include "common/device/stream_stall.h"
#include "common/ops/ops.h"
#include "common/ops/testing.h"
#include "common/parallel/plan.h"
#include "common/parallel/schedule.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using Values = std::vector<float>;

// The devices of the table that are of one type, and, once, of both.
std::vector<std::vector<Device>> Groups() {
  std::vector<Device> cpu, cuda;
  for (const DeviceInfo& info : Devices()) {
    (info.device.type() == DeviceType::kCpu ? cpu : cuda)
        .push_back(info.device);
  }
  std::vector<std::vector<Device>> groups = {cpu};
  if (cuda.size() > 1) groups.push_back(cuda);
  if (!cuda.empty()) groups.push_back({cuda[0], cpu[0], cpu[1]});
  return groups;
}

std::vector<Values> RandomArrays(int ranks, std::int64_t length) {
  std::vector<Values> arrays;
  for (int r = 0; r < ranks; ++r) {
    const std::vector<double> values = RandomValues(length, DType::kFloat32);
    arrays.emplace_back(values.begin(), values.end());
  }
  return arrays;
}

std::vector<Tensor> Place(const std::vector<Values>& arrays,
                          const std::vector<Device>& devices) {
  std::vector<Tensor> tensors;
  for (std::size_t r = 0; r < arrays.size(); ++r) {
    const auto length = static_cast<std::int64_t>(arrays[r].size());
    tensors.push_back(FromVector(arrays[r], {length}, devices[r]));
  }
  return tensors;
}

// The sum of elements [begin, end), from rank `first` on in that direction.
void SumInOrder(const std::vector<Values>& arrays, std::int64_t begin,
                std::int64_t end, int first, int direction, Values* sum) {
  const int ranks = static_cast<int>(arrays.size());
  for (std::int64_t i = begin; i < end; ++i) {
    float total = arrays[first][i];
    for (int k = 1; k < ranks; ++k) {
      total += arrays[(first + ranks + direction * k) % ranks][i];
    }
    (*sum)[i] = total;
  }
}

Values Expected(const std::vector<Values>& arrays,
                AllReduceAlgorithm algorithm) {
  const int ranks = static_cast<int>(arrays.size());
  const auto length = static_cast<std::int64_t>(arrays[0].size());
  Values sum(length);
  const bool both = algorithm == AllReduceAlgorithm::kBidirectionalRing;
  if (!both && algorithm != AllReduceAlgorithm::kRing) {
    SumInOrder(arrays, 0, length, 0, 1, &sum);
    return sum;
  }
  const int chunks = both ? 2 * ranks : ranks;
  for (int c = 0; c < chunks; ++c) {
    SumInOrder(arrays, ChunkBegin(length, chunks, c),
               ChunkBegin(length, chunks, c + 1), c % ranks, c < ranks ? 1 : -1,
               &sum);
  }
  return sum;
}

bool SameBits(const Tensor& x, const Values& expected) {
  const auto found = ToVector<float>(x);
  return found.size() == expected.size() &&
         (found.empty() || std::memcmp(found.data(), expected.data(),
                                       found.size() * sizeof(float)) == 0);
}

TEST(AllReduce, MakesTheSumOnEveryDeviceBitForBit) {
  for (std::vector<Device> devices : Groups()) {
    const int most = std::min(8, static_cast<int>(devices.size()));
    for (int ranks = 1; ranks <= most; ++ranks) {
      for (const AllReduceAlgorithm algorithm : kAllReduceAlgorithms) {
        for (const std::int64_t length : {0, 1, 7, 1'000'001}) {
          SCOPED_TRACE(absl::StrCat(AllReduceAlgorithmName(algorithm), " of ",
                                    ranks, ", ", length));
          const auto arrays = RandomArrays(ranks, length);
          const std::vector<Tensor> x = Place(arrays, devices);
          AllReduce(x, algorithm);
          const Values expected = Expected(arrays, algorithm);
          for (const Tensor& t : x) ASSERT_TRUE(SameBits(t, expected));
        }
      }
      // Ranks are places in the list, not the devices' numbers.
      std::rotate(devices.begin(), devices.begin() + 1, devices.end());
    }
  }
}

TEST(AllReduce, OfAnyDTypeAndOfPartsOfMemory) {
  for (const std::vector<Device>& devices : Groups()) {
    for (const DType dtype : kAllDTypes) {
      for (const AllReduceAlgorithm algorithm : kAllReduceAlgorithms) {
        const Tensor a = RandomTensor({5, 7}, devices[0], dtype);
        const Tensor b =
            RandomTensor({5, 7}, devices[1], dtype, Placement::kOffset);
        const Tensor before = MemoryOf(b);
        const std::vector<double> sum = ValuesOf(a + To(b, a.device()));
        const auto memory = WithValues(ValuesOf(before), b, sum);
        AllReduce({a, b}, algorithm);
        EXPECT_EQ(ValuesOf(a), sum);
        EXPECT_EQ(ValuesOf(before), memory);
      }
    }
  }
}

TEST(Collectives, MoveWhatTheySay) {
  for (const std::vector<Device>& devices : Groups()) {
    const int ranks = std::min(5, static_cast<int>(devices.size()));
    for (const std::int64_t length : {0, 1, 7, 1'001}) {
      for (const int root : {0, ranks - 1}) {
        const auto arrays = RandomArrays(ranks, length);
        const auto run = [&](auto collective) {
          std::vector<Tensor> x = Place(arrays, devices);
          collective(x);
          return x;
        };
        const auto broadcast = run([&](auto& x) { Broadcast(x, root); });
        const auto reduce = run([&](auto& x) { Reduce(x, root); });
        const auto scatter = run([&](auto& x) { Scatter(x, root); });
        const auto gather = run([&](auto& x) { AllGather(x); });
        Values gathered(length);
        for (int r = 0; r < ranks; ++r) {
          const std::int64_t begin = ChunkBegin(length, ranks, r);
          const std::int64_t end = ChunkBegin(length, ranks, r + 1);
          std::copy(arrays[r].begin() + begin, arrays[r].begin() + end,
                    gathered.begin() + begin);
          Values scattered = arrays[r];
          std::copy(arrays[root].begin() + begin, arrays[root].begin() + end,
                    scattered.begin() + begin);
          EXPECT_TRUE(SameBits(scatter[r], scattered));
          EXPECT_TRUE(SameBits(broadcast[r], arrays[root]));
          EXPECT_TRUE(SameBits(
              reduce[r], r == root ? Expected(arrays, AllReduceAlgorithm::kStar)
                                   : arrays[r]));
        }
        for (const Tensor& x : gather) EXPECT_TRUE(SameBits(x, gathered));
      }
    }
  }
}

// ---- Order.

// What a stream runs until released: holds it back. Never for longer than
// kPatience, so a wait that should not be there fails a test and ends.
class Gate {
 public:
  void Hold(Stream& stream) {
    stream.HostCallback([this] {
      MutexLock lock(mutex_);
      const auto until = std::chrono::steady_clock::now() + kPatience;
      while (!open_ && std::chrono::steady_clock::now() < until) {
        changed_.WaitFor(mutex_, kPatience);
      }
      in_time_ = open_;
    });
  }
  void Open() {
    MutexLock lock(mutex_);
    open_ = true;
    changed_.NotifyAll();
  }
  bool in_time() {
    MutexLock lock(mutex_);
    return in_time_;
  }

 private:
  static constexpr std::chrono::milliseconds kPatience{300};
  Mutex mutex_;
  CondVar changed_;
  bool open_ ABSL_GUARDED_BY(mutex_) = false;
  bool in_time_ ABSL_GUARDED_BY(mutex_) = false;
};

std::vector<Device> CpuDevices(std::size_t most) {
  std::vector<Device> devices = Groups()[0];
  devices.resize(std::min(devices.size(), most));
  return devices;
}

// Streams begin in a random order, and moves are delayed at random; what comes
// before and behind the collective writes to the same memory.
TEST(AllReduce, IsRightUnderAnyDelays) {
  const std::vector<Device> devices = CpuDevices(8);
  const int ranks = static_cast<int>(devices.size());
  std::mt19937 random(20);
  for (int round = 0; round < 200; ++round) {
    const AllReduceAlgorithm algorithm =
        kAllReduceAlgorithms[round % std::size(kAllReduceAlgorithms)];
    SCOPED_TRACE(
        absl::StrCat("round ", round, ", ", AllReduceAlgorithmName(algorithm)));
    const auto arrays = RandomArrays(ranks, 1'003);
    const std::vector<Tensor> sources = Place(arrays, devices);
    const std::vector<Tensor> x =
        Place(std::vector<Values>(ranks, Values(1'003, 99)), devices);
    PlanHooks hooks;
    hooks.before = [&](int, Stream& stream) {
      const int spins = random() % 4 == 0 ? random() % 20'000 : 0;
      if (spins == 0) return;
      stream.HostCallback([spins] {
        for (std::atomic<int> i{0}; i < spins;) ++i;
      });
    };
    std::deque<StreamStall> stalls;
    for (const Device device : devices) {
      stalls.emplace_back(DefaultStream(device));
      stalls.emplace_back(CommunicationStream(device));
    }
    std::vector<Tensor> kept;
    for (int r = 0; r < ranks; ++r) CopyTo(sources[r], x[r]);
    RunPlan("allreduce", MakePlan(AllReduceSchedule(algorithm, ranks)), x, {},
            hooks)
        .Wait();
    for (int r = 0; r < ranks; ++r) {
      kept.push_back(Clone(x[r]));
      FillInPlace(x[r], -1);
    }
    std::vector<StreamStall*> order;
    for (StreamStall& stall : stalls) order.push_back(&stall);
    std::shuffle(order.begin(), order.end(), random);
    for (StreamStall* const stall : order) {
      stall->Release();
      for (unsigned i = random() % 8; i > 0; --i) std::this_thread::yield();
    }
    const Values expected = Expected(arrays, algorithm);
    for (const Tensor& t : kept) ASSERT_TRUE(SameBits(t, expected));
    for (const Tensor& t : x) ASSERT_TRUE(SameBits(t, Values(1'003, -1)));
  }
}

// A device that is done overwrites its result at once. Its neighbour, which is
// late, must have read it.
TEST(AllReduce, OverwritingTheResultWaitsForTheLastReader) {
  const std::vector<Device> devices = CpuDevices(8);
  const int ranks = static_cast<int>(devices.size());
  for (const AllReduceAlgorithm algorithm : kAllReduceAlgorithms) {
    for (const Device late : devices) {
      const auto arrays = RandomArrays(ranks, 100);
      const std::vector<Tensor> x = Place(arrays, devices);
      StreamStall stall(CommunicationStream(late));
      AllReduce(x, algorithm);
      std::vector<Tensor> kept;
      for (const Tensor& t : x) {
        kept.push_back(Clone(t));
        FillInPlace(t, -1);
      }
      stall.Release();
      const Values expected = Expected(arrays, algorithm);
      for (const Tensor& t : kept) ASSERT_TRUE(SameBits(t, expected));
    }
  }
}

// Each wait of a plan is dropped, and what it waits for is held until the move
// that should wait is done: that must be possible, and the result be wrong. The
// checker says so for all sizes; here real streams do.
TEST(AllReduce, WithoutAWaitStreamsGetItWrong) {
  const std::vector<Device> devices = CpuDevices(3);
  const int ranks = static_cast<int>(devices.size());
  for (const AllReduceAlgorithm algorithm : kAllReduceAlgorithms) {
    const Plan plan = MakePlan(AllReduceSchedule(algorithm, ranks));
    int tried = 0;
    for (std::size_t i = 0; i < plan.moves.size(); ++i) {
      if (plan.moves[i].move.op == MoveOp::kEnd) continue;
      for (const int awaited : plan.moves[i].waits) {
        // The CPU's memory has the stream of the first CPU device.
        if (plan.moves[i].move.to % ranks ==
            plan.moves[awaited].move.to % ranks) {
          continue;
        }
        SCOPED_TRACE(absl::StrCat(AllReduceAlgorithmName(algorithm), " ", i,
                                  " without ", awaited));
        const bool of_begin = plan.moves[awaited].move.op == MoveOp::kBegin;
        Plan broken = plan;
        std::vector<int>& waits = broken.moves[i].waits;
        waits.erase(std::find(waits.begin(), waits.end(), awaited));
        const auto arrays = RandomArrays(ranks, 60);
        const std::vector<Tensor> sources = Place(arrays, devices);
        const std::vector<Tensor> x =
            Place(std::vector<Values>(ranks, Values(60, 99)), devices);
        Gate gate;
        for (int r = 0; r < ranks; ++r) {
          // What kBegin stands for: the computation of the inputs.
          if (of_begin && r == plan.moves[awaited].move.to) {
            gate.Hold(DefaultStream(devices[r]));
          }
          CopyTo(sources[r], x[r]);
        }
        PlanHooks hooks;
        hooks.before = [&](int move, Stream& stream) {
          if (move == awaited && !of_begin) gate.Hold(stream);
        };
        hooks.after = [&](int move, Stream& stream) {
          if (move == static_cast<int>(i)) {
            stream.HostCallback([&gate] { gate.Open(); });
          }
        };
        RunPlan("allreduce", broken, x, {}, hooks).Wait();
        const Values expected = Expected(arrays, algorithm);
        bool right = true;
        for (const Tensor& t : x) right = SameBits(t, expected) && right;
        for (const Device device : devices) Synchronize(device);
        EXPECT_TRUE(gate.in_time());
        EXPECT_FALSE(right);
        ++tried;
      }
    }
    EXPECT_GE(tried, 4);
  }
}

}  // namespace
}  // namespace d2l
