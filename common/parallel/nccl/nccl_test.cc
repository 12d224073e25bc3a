// AllReduce by NCCL on models of two GPUs: cuda:0 and cuda:1 are on one each,
// cuda:2 shares that of cuda:0. The functions that stand for NCCL's do nothing
// before a group ends; then each GPU has a kernel that waits for the others.

#include "common/parallel/nccl/nccl.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "common/device/cuda/fake/fake_backend.h"
#include "common/device/cuda/fake/fake_cuda.h"
#include "common/device/device_table.h"
#include "common/device/failure.h"
#include "common/device/stream_stall.h"
#include "common/nn/layers.h"
#include "common/ops/ops.h"
#include "common/parallel/data_parallel/data_parallel.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

struct ncclComm {
  int gpu;
};

namespace d2l {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr Device kFirst(DeviceType::kCuda, 0);
constexpr Device kSecond(DeviceType::kCuda, 1);
constexpr Device kShares(DeviceType::kCuda, 2);

struct Addend {
  int gpu;
  CudaStreamHandle stream;
  float* data;
  std::size_t numel;
};
using Addends = std::vector<Addend>;

Addends& addends = *new Addends;  // of the group that has begun
int groups = 0;
int next_result = 0;

int EndGroup() {
  ++groups;
  const Addends all = std::exchange(addends, {});
  if (next_result != 0) return std::exchange(next_result, 0);
  const auto done = std::make_shared<std::promise<void>>();
  const std::shared_future<void> wait(done->get_future());
  const auto running = std::make_shared<std::atomic<std::size_t>>(0);
  for (const Addend& addend : all) {
    FakeCudaOfBackend().SetDevice(addend.gpu);
    FakeCudaOfBackend().LaunchKernel(addend.stream, [=] {
      if (++*running < all.size()) {
        EXPECT_EQ(wait.wait_for(std::chrono::seconds(20)),
                  std::future_status::ready);
        return;
      }
      for (std::size_t i = 0; i < all[0].numel; ++i) {
        float sum = 0;
        for (const Addend& each : all) sum += each.data[i];
        for (const Addend& each : all) each.data[i] = sum;
      }
      done->set_value();
    });
  }
  return 0;
}

const NcclLibrary kFake = {
    [](NcclComm* comms, int count, const int* gpus) {
      for (int i = 0; i < count; ++i) comms[i] = new ncclComm{gpus[i]};
      return 0;
    },
    [](const void* send, void* receive, std::size_t count, int dtype,
       int operation, NcclComm comm, CudaStreamHandle stream) {
      EXPECT_TRUE(send == receive && dtype == 7 && operation == 0);
      addends.push_back(
          {comm->gpu, stream, static_cast<float*>(receive), count});
      return 0;
    },
    [] { return 0; }, &EndGroup, [](int) { return "invalid usage"; }};

std::vector<Tensor> Values(std::int64_t length) {
  return {Randn({length}, kFirst), Randn({length}, kSecond)};
}

class AllReduceByNccl : public testing::Test {
 protected:
  AllReduceByNccl() {
    ReplaceNcclForTesting(&kFake);
    // CUDA makes no stream while another is stalled.
    for (const Device device : {kFirst, kSecond}) CommunicationStream(device);
  }
  ~AllReduceByNccl() override {
    EXPECT_THAT(FakeCudaOfBackend().violations(), testing::IsEmpty());
  }
};

TEST_F(AllReduceByNccl, EveryReplicaBecomesTheSumBehindTheWorkBefore) {
  for (const std::int64_t length : {0, 1, 7, 1'001}) {
    const std::vector<Tensor> x = Values(length);
    const Tensor late = x[1] * 2;
    const std::vector<float> sum = ToVector<float>(x[0] + To(late, kFirst));
    Work work;
    {
      const StreamStall stall(DefaultStream(kSecond));
      CopyTo(late, x[1]);
      work = AllReduceAsync(x, AllReduceAlgorithm::kNccl);
      EXPECT_FALSE(CommunicationStream(kFirst).Record().Query());
    }
    work.Wait();
    EXPECT_EQ(ToVector<float>(x[0]), sum);
    EXPECT_EQ(ToVector<float>(x[1]), sum);
  }
}

// Two threads name the GPUs in different orders.
TEST_F(AllReduceByNccl, EachSumIsBehindTheOneBefore) {
  const std::vector<Tensor> x = {Ones({1}, kFirst), Ones({1}, kSecond)};
  const std::vector<Tensor> y = {Ones({1}, kSecond), Ones({1}, kFirst)};
  const auto add = [](const std::vector<Tensor>& replicas) {
    for (int i = 0; i < 40; ++i) AllReduce(replicas, AllReduceAlgorithm::kNccl);
  };
  std::thread other([&] { add(y); });
  add(x);
  other.join();
  for (const Tensor& t : {x[0], x[1], y[0], y[1]}) {
    EXPECT_EQ(Item(t), static_cast<double>(std::int64_t{1} << 40));
  }
}

// A step has the bits of one that adds by a schedule, since two addends have
// only one sum.
TEST_F(AllReduceByNccl, TrainsAsASchedule) {
  const nn::Linear net(7, 4, true, kFirst);
  const Tensor x = Randn({9, 7}, kFirst);
  const Tensor labels = RandInt(0, 4, {9}, kFirst);
  std::vector<std::vector<float>> weights;
  groups = 0;
  for (const AllReduceAlgorithm algorithm :
       {AllReduceAlgorithm::kSplit, AllReduceAlgorithm::kNccl}) {
    DataParallelOptions options;
    options.allreduce = algorithm;
    options.first_bucket_bytes = 16;  // several
    DataParallel parallel(nn::Clone(net, kFirst), {0, 1}, options);
    for (int step = 0; step < 5; ++step) {
      parallel.Step(x, labels, {/*lr=*/0.1});
    }
    for (int i = 0; i < 2; ++i) {
      weights.push_back(
          ToVector<float>(nn::Parameters(parallel.replica(i))[0]));
      EXPECT_EQ(weights.back(), weights[0]);
    }
  }
  EXPECT_EQ(groups, 10);
}

TEST_F(AllReduceByNccl, WhatNcclRefusesFailsEveryReplica) {
  const std::vector<Tensor> x = Values(3);
  next_result = 5;
  EXPECT_THAT([&] { AllReduce(x, AllReduceAlgorithm::kNccl); },
              ThrowsMessage<AsyncError>(HasSubstr("NCCL: invalid usage; ")));
  EXPECT_TRUE(CommunicationStream(kFirst).ever_failed());
  EXPECT_TRUE(CommunicationStream(kSecond).ever_failed());
}

TEST_F(AllReduceByNccl, RefusesWhatItCannotUse) {
  EXPECT_EQ(CheckNccl({kFirst, kSecond, kShares}).message(),
            "NCCL takes each GPU once, and cuda:0 and cuda:2 share GPU 0; add "
            "up by a schedule, such as split (--allreduce=split)");
  setenv("CUDA_LAUNCH_BLOCKING", "1", /*overwrite=*/1);
  EXPECT_THAT([] { AllReduce(Values(3), AllReduceAlgorithm::kNccl); },
              ThrowsMessage<std::invalid_argument>(
                  HasSubstr("the first GPU's kernel would wait for ever, ")));
  unsetenv("CUDA_LAUNCH_BLOCKING");
}

}  // namespace
}  // namespace d2l
