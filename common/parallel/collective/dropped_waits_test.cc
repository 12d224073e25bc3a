#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/stream.h"
#include "common/ops/ops.h"
#include "common/parallel/collective/collective.h"
#include "common/parallel/collective/collective_testing.h"
#include "common/parallel/collective/schedule.h"
#include "common/tensor/tensor.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

// Work that holds a stream back until released, but never for longer than
// kPatience, so that a wait that should not be there fails a test and ends.
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

// Drops each wait of a plan, and holds the awaited work until the move that
// should wait is done: that must be possible, and the result must be wrong.
// schedule_test.cc proves it of the schedules; here real streams show it.
TEST(AllReduce, WithoutAWaitStreamsGetItWrong) {
  const std::vector<Device> devices = CpuDevices(3);
  const int ranks = static_cast<int>(devices.size());
  for (const AllReduceAlgorithm algorithm : kAllReduceAlgorithms) {
    const CollectivePlan plan = MakePlan(AllReduceSchedule(algorithm, ranks));
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
        CollectivePlan broken = plan;
        std::vector<int>& waits = broken.moves[i].waits;
        waits.erase(std::find(waits.begin(), waits.end(), awaited));
        const auto arrays = RandomArrays(ranks, 60);
        const std::vector<Tensor> sources = Place(arrays, devices);
        const std::vector<Tensor> x =
            Place(std::vector<Values>(ranks, Values(60, 99)), devices);
        Gate gate;
        for (int r = 0; r < ranks; ++r) {
          // kBegin stands for the computation of the inputs.
          if (of_begin && r == plan.moves[awaited].move.to) {
            gate.Hold(DefaultStream(devices[r]));
          }
          CopyTo(sources[r], x[r]);
        }
        {
          const auto in_plan = [ranks = plan.participants](int number) {
            return number + ranks;  // behind the kBegins
          };
          const MoveListener listener(
              [&](int move, Stream& stream) {
                if (in_plan(move) == awaited) gate.Hold(stream);
              },
              [&](int move, Stream& stream) {
                if (in_plan(move) == static_cast<int>(i)) {
                  stream.HostCallback([&gate] { gate.Open(); });
                }
              });
          RunPlan("allreduce", broken, x).Wait();
        }
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
