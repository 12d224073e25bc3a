// Several processes have the bits of one with all the devices: here threads,
// which add up in memory. With MPI: mpi/mpi_data_parallel_test.cc.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"
#include "common/base/source_location.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/failure.h"
#include "common/device/testing/testing.h"
#include "common/nn/module.h"
#include "common/nn/sgd.h"
#include "common/ops/ops.h"
#include "common/ops/testing/testing.h"
#include "common/parallel/collective/collective.h"
#include "common/parallel/data_parallel/data_parallel.h"
#include "common/parallel/data_parallel/data_parallel_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using testing::HasSubstr;

// The processes leave their arrays here, and find the results here.
class Meeting {
 public:
  explicit Meeting(int processes) : arrays_(processes) {}

  // For DataParallelOptions.
  Work Run(Collective what, int process, Replicas local, SourceLocation at) {
    std::vector<float*> arrays;
    for (const Tensor& x : local) {
      arrays.push_back(static_cast<float*>(x.data()));
    }
    const std::int64_t numel = local[0].numel();
    return RunOnOneStream(
        "meeting", local, [=] { Meet(what, process, arrays, numel); }, at);
  }

 private:
  void Meet(Collective what, int process, const std::vector<float*>& arrays,
            std::int64_t numel) {
    MutexLock lock(mutex_);
    const int round = round_;
    arrays_[process] = {arrays, {what, numel}};
    if (++arrived_ == static_cast<int>(arrays_.size())) {
      Exchange(what, numel);
      arrived_ = 0;
      ++round_;
      changed_.NotifyAll();
    }
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (round_ == round) {
      if (std::chrono::steady_clock::now() > deadline) {
        throw std::runtime_error("the others did not come");
      }
      changed_.WaitFor(mutex_, std::chrono::seconds(1));
    }
  }

  void Exchange(Collective what, std::int64_t numel)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::vector<float*> all;  // of each rank
    for (const auto& [arrays, call] : arrays_) {
      ASSERT_EQ(call, std::pair(what, numel));
      all.insert(all.end(), arrays.begin(), arrays.end());
    }
    const int ranks = static_cast<int>(all.size());
    for (int owner = 0; owner < ranks; ++owner) {
      for (std::int64_t i = ChunkBegin(numel, ranks, owner);
           i < ChunkBegin(numel, ranks, owner + 1); ++i) {
        float value = all[what == Collective::kAllGather ? owner : 0][i];
        for (int r = 1; r < ranks && what != Collective::kAllGather; ++r) {
          value += all[r][i];
        }
        // Elements that are undefined afterwards get wrong values.
        for (int r = 0; r < ranks; ++r) {
          all[r][i] =
              what == Collective::kReduceScatter && r != owner ? 1e9f : value;
        }
      }
    }
  }

  Mutex mutex_;
  CondVar changed_;
  std::vector<
      std::pair<std::vector<float*>, std::pair<Collective, std::int64_t>>>
      arrays_ ABSL_GUARDED_BY(mutex_);
  int arrived_ ABSL_GUARDED_BY(mutex_) = 0;
  int round_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Runs 20 steps; returns all replicas, the momentum, and the losses.
std::vector<std::vector<std::uint32_t>> Train(
    std::unique_ptr<nn::Module> net, const std::vector<int>& ids,
    const DataParallelOptions& options) {
  const Device device = Devices()[ids[0]].device;
  DataParallel many(std::move(net), ids, options);
  std::vector<std::vector<std::uint32_t>> result;
  for (int step = 0; step < 20; ++step) {
    const std::int64_t samples = 1 + step * 5 % 9;
    std::vector<float> values;
    std::vector<std::int64_t> labels;
    for (std::int64_t i = 0; i < samples; ++i) {
      labels.push_back((step + 3 * i) % kClasses);
      for (int k = 0; k < 7; ++k) {
        values.push_back(
            static_cast<float>((step * 31 + i * 17 + k * k) % 23) / 7 - 1.5f);
      }
    }
    result.push_back(
        BitsOf(many.Step(FromVector(values, {samples, 7}, device),
                         FromVector(labels, {samples}, device), {0.1, 0.9})
                   .loss));
  }
  for (const Tensor& v : many.sgd().momentum_buffers()) {
    result.push_back(BitsOf(v));
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    for (auto& bits : BitsOf(many.replica(static_cast<int>(i)))) {
      result.push_back(std::move(bits));
    }
  }
  return result;
}

TEST(DataParallelProcessesTest, TrainToTheBitsOfOne) {
  const std::vector<int> ids = Ids(4);
  if (ids.size() < 4) GTEST_SKIP() << "needs 4 devices";
  for (const int id : ids) {
    if (Devices()[id].device.type() != DeviceType::kCpu) {
      GTEST_SKIP() << "the threads meet in the memory of CPU devices";
    }
  }
  ManualSeed(3);
  const nn::Sequential net = Mlp();
  using Case = std::tuple<Shard, bool, int>;
  for (const auto& [shard, overlap, each] :
       {Case{Shard::kNone, true, 1}, Case{Shard::kNone, false, 2},
        Case{Shard::kOptimizer, true, 1}, Case{Shard::kOptimizer, false, 2},
        Case{Shard::kGradients, true, 2}, Case{Shard::kGradients, false, 1}}) {
    const int processes = 4 / each;
    DataParallelOptions options = WithBuckets(300, overlap);
    const auto expected = Train(nn::Clone(net, First()), ids, options);
    options.shard = shard;
    Meeting meeting(processes);
    std::vector<std::vector<std::vector<std::uint32_t>>> got(processes);
    // Made here: a thread that copied from another thread's device would wait
    // for that thread.
    std::vector<std::unique_ptr<nn::Module>> nets;
    for (int p = 0; p < processes; ++p) {
      nets.push_back(nn::Clone(net, Devices()[ids[p * each]].device));
    }
    for (const int id : ids) Synchronize(Devices()[id].device);
    std::vector<std::thread> threads;
    for (int p = 0; p < processes; ++p) {
      threads.emplace_back([&, p, each = each] {
        DataParallelOptions mine = options;
        mine.processes = processes;
        mine.process = p;
        mine.collective = [&, p](Collective what, Replicas local,
                                 SourceLocation at) {
          return meeting.Run(what, p, local, at);
        };
        got[p] =
            Train(std::move(nets[p]),
                  {ids.begin() + p * each, ids.begin() + (p + 1) * each}, mine);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (int p = 0; p < processes; ++p) {
      // All replicas are alike.
      ASSERT_LE(got[p].size(), expected.size());
      for (std::size_t i = 0; i < got[p].size(); ++i) {
        EXPECT_EQ(got[p][i], expected[i]) << p << ": " << i;
      }
    }
  }
}

TEST(DataParallelProcessesTest, SeveralNeedAFunctionThatAddsUp) {
  DataParallelOptions options;
  options.processes = 2;
  EXPECT_THAT(ThrownText([&] { DataParallel(Mlp(), {0}, options); }),
              HasSubstr("process 0 of 2 wanted, and a function that adds up"));
}

TEST(DataParallelProcessesTest, AShareIsTheDevicesPartOfTheBatch) {
  DataParallelOptions options;
  options.processes = 3;
  options.process = 1;
  options.collective = [](Collective, Replicas, SourceLocation) {
    return Work();
  };
  options.split = {2, 1, 1};
  const DataParallel net(Mlp(), {0}, options);
  EXPECT_EQ(net.ShareOf(9).begin, 5);
  EXPECT_EQ(net.ShareOf(9).sizes, std::vector<std::int64_t>{2});
  EXPECT_EQ(net.ShareOf(1).sizes, std::vector<std::int64_t>{0});
}

}  // namespace
}  // namespace d2l
