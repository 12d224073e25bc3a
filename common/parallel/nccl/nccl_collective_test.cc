// AllReduce by NCCL on tensors, on models of two GPUs: cuda:0 and cuda:1 are on
// one each, cuda:2 shares that of cuda:0.

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/source_location.h"
#include "common/device/cuda/fake/fake_backend.h"
#include "common/device/cuda/stream/cuda_stream.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/failure.h"
#include "common/device/stream_stall.h"
#include "common/nn/layers.h"
#include "common/ops/ops.h"
#include "common/parallel/collective/collective.h"
#include "common/parallel/collective/schedule.h"
#include "common/parallel/data_parallel/data_parallel.h"
#include "common/parallel/nccl/fake_nccl.h"
#include "common/parallel/nccl/nccl.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr Device kFirst(DeviceType::kCuda, 0);
constexpr Device kSecond(DeviceType::kCuda, 1);
constexpr Device kShares(DeviceType::kCuda, 2);
constexpr Device kCpu(DeviceType::kCpu, 0);

// Lives as long as the streams of the table.
FakeNccl& Nccl() {
  static FakeNccl& nccl = *[] {
    auto* const made = new FakeNccl(FakeCudaOfBackend());
    for (const Device device : {kFirst, kSecond}) {
      auto& stream = static_cast<CudaStream&>(CommunicationStream(device));
      stream.Launch(OpLabel("look"), [&](const CudaLaunch& to) {
        made->AddStream(to.stream, stream.gpu().index());
      });
    }
    ReplaceNcclForTesting(&FakeNccl::library());
    return made;
  }();
  return nccl;
}

TEST(AllReduceByNccl, EveryReplicaBecomesTheSum) {
  Nccl();
  for (const std::int64_t length : {0, 1, 7, 1'001}) {
    ManualSeed(static_cast<std::uint64_t>(length));
    const std::vector<Tensor> x = {Randn({length}, kFirst),
                                   Randn({length}, kSecond)};
    std::vector<float> sum = ToVector<float>(x[0]);
    const std::vector<float> second = ToVector<float>(x[1]);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += second[i];
    AllReduce(x, AllReduceAlgorithm::kNccl);
    EXPECT_EQ(ToVector<float>(x[0]), sum);
    EXPECT_EQ(ToVector<float>(x[1]), sum);
    // Work behind it uses the sum, in the right order.
    AllReduce({x[0] * 2, x[1]}, AllReduceAlgorithm::kNccl);
    EXPECT_EQ(ToVector<float>(x[0]), sum);
    EXPECT_THAT(Nccl().violations(), IsEmpty());
  }
}

TEST(AllReduceByNccl, BeginsBehindTheWorkOfAllDevices) {
  Nccl();
  const std::vector<Tensor> x = {Ones({3}, kFirst), Ones({3}, kSecond)};
  const Tensor five = Full({3}, 5, kSecond);
  const Tensor seven = Full({3}, 7, kFirst);
  const Tensor copy = Ones({3}, kFirst);
  Work work;
  {
    const StreamStall stall(DefaultStream(kSecond));
    CopyTo(five, x[1]);
    work = AllReduceAsync(x, AllReduceAlgorithm::kNccl);
    CopyTo(seven, copy);
    EXPECT_EQ(ToVector<float>(copy)[0], 7);  // overlaps
    EXPECT_FALSE(CommunicationStream(kFirst).Record().Query());
  }
  work.Wait();
  EXPECT_EQ(ToVector<float>(x[0]), std::vector<float>(3, 6));
  EXPECT_EQ(ToVector<float>(x[1]), std::vector<float>(3, 6));
}

TEST(AllReduceByNccl, AFailedInputFailsEveryReplica) {
  Nccl();
  const std::vector<Tensor> x = {Ones({3}, kFirst), Ones({3}, kSecond)};
  const Tensor index = FromVector<std::int64_t>({5}, {1}, kSecond);
  const Tensor table = Ones({2}, kSecond);
  // Its memory is reused: CUDA allocates none while a stream is held.
  IndexSelect(table, 0, FromVector<std::int64_t>({0}, {1}, kSecond));
  {
    const StreamStall stall(DefaultStream(kSecond));
    CopyTo(IndexSelect(table, 0, index), x[1]);
    AllReduce(x, AllReduceAlgorithm::kNccl);
  }
  for (const Tensor& t : x) {
    EXPECT_THAT(ErrorOf([&] { ToVector<float>(t); }), HasSubstr("index 5"));
  }
  for (const Device device : {kFirst, kSecond, kFirst, kSecond}) {
    try {
      Synchronize(device);
    } catch (const AsyncError&) {  // NOLINT(bugprone-empty-catch): known
    }
  }
}

// A step of DataParallel has the bits of one that adds by a schedule, since two
// addends have only one sum.
TEST(AllReduceByNccl, TrainsAsASchedule) {
  Nccl().TakeCalls();
  ManualSeed(3);
  const nn::Linear net(7, 4, true, kFirst);
  const Tensor x = Randn({9, 7}, kFirst);
  const Tensor labels = RandInt(0, 4, {9}, kFirst);
  std::vector<std::vector<float>> weights;
  for (const AllReduceAlgorithm algorithm :
       {AllReduceAlgorithm::kSplit, AllReduceAlgorithm::kNccl}) {
    DataParallelOptions options;
    options.allreduce = algorithm;
    options.first_bucket_bytes = 16;  // several
    DataParallel parallel(nn::Clone(net, kFirst), {0, 1}, options);
    for (int step = 0; step < 5; ++step) {
      parallel.Step(x, labels, {/*lr=*/0.1});
    }
    weights.push_back(ToVector<float>(nn::Parameters(parallel.module())[0]));
    EXPECT_EQ(ToVector<float>(nn::Parameters(parallel.replica(1))[0]),
              weights.back());
  }
  EXPECT_EQ(weights[0], weights[1]);
  EXPECT_THAT(Nccl().TakeCalls(), testing::Contains("group_end").Times(10));
}

// Each waits for the other one, as two processes do.
TEST(AllReduceByNccl, GroupsAreMadeBesideEachOther) {
  NcclRanks first = {{}, 0, 2, /*timeout_seconds=*/20};
  EXPECT_EQ(Nccl().library().get_unique_id(&first.id), 0);
  const NcclRanks second = {first.id, 1, 2, 20};
  const std::vector<Tensor> x = {Ones({3}, kFirst), Full({3}, 4, kSecond)};
  const auto add = [&](int i, const NcclRanks& ranks) {
    AllReduceByNccl({x[i]}, SourceLocation::Current(), ranks).Wait();
  };
  std::thread process([&] { add(1, second); });
  add(0, first);
  process.join();
  for (const Tensor& sum : x) {
    EXPECT_EQ(ToVector<float>(sum), std::vector<float>(3, 5));
  }
}

TEST(AllReduceByNccl, RefusesDevicesThatItCannotUse) {
  Nccl();
  const auto error = [](std::vector<Device> devices) {
    std::vector<Tensor> x;
    for (const Device device : devices) x.push_back(Ones({2}, device));
    return ErrorOf([&] { AllReduce(x, AllReduceAlgorithm::kNccl); });
  };
  EXPECT_THAT(error({kFirst, kSecond, kShares}),
              HasSubstr("[allreduce] NCCL takes each GPU once, and cuda:0 and "
                        "cuda:2 share GPU 0; add up by a schedule, such as "
                        "split (--allreduce=split); requested at "));
  EXPECT_THAT(error({kFirst, kCpu}),
              HasSubstr("NCCL adds on GPUs, and cpu:0 is none"));
}

TEST(AllReduceByNccl, IsRefusedWhereEachLaunchWaitsForItsKernel) {
  const std::vector<Tensor> x = {Ones({3}, kFirst), Ones({3}, kSecond)};
  setenv("CUDA_LAUNCH_BLOCKING", "1", /*overwrite=*/1);
  const std::string two =
      ErrorOf([&] { AllReduce(x, AllReduceAlgorithm::kNccl); });
  const absl::Status one = CheckNccl({kFirst});
  unsetenv("CUDA_LAUNCH_BLOCKING");
  EXPECT_THAT(two, HasSubstr("the first GPU's kernel would wait for ever, "));
  EXPECT_TRUE(one.ok()) << one;
}

// An atexit function that runs before the streams are drained must not stop the
// thread that finds the error.
TEST(AllReduceByNcclDeathTest, TheEndOfTheProgramWaitsForNoProcessThatIsGone) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        Nccl().Break(6);
        AllReduce({Ones({3}, kFirst), Ones({3}, kSecond)},
                  AllReduceAlgorithm::kNccl);
        alarm(10);
        std::exit(0);
      },
      testing::ExitedWithCode(0), "NCCL gave up");
}

// The last test: NCCL cannot be used after it.
TEST(AllReduceByNcclAtTheEnd, AnErrorIsNoticedWithoutBeingAskedFor) {
  const std::vector<Tensor> x = {Ones({3}, kFirst), Ones({3}, kSecond)};
  Nccl().Break(6);
  AllReduce(x, AllReduceAlgorithm::kNccl);
  for (const Tensor& t : x) {
    EXPECT_THAT(ErrorOf([&] { ToVector<float>(t); }),
                HasSubstr("NCCL gave up its communication between GPUs"));
    ErrorOf([&] { Synchronize(t.device()); });  // forgets it
  }
  EXPECT_THAT(ErrorOf([&] {
                AllReduce({Ones({1}, kFirst), Ones({1}, kSecond)},
                          AllReduceAlgorithm::kNccl);
              }),
              HasSubstr("start the program again"));
  EXPECT_THAT(Nccl().violations(), IsEmpty());
}

}  // namespace
}  // namespace d2l
