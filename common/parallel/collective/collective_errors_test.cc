#include <atomic>
#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/device/cpu/cpu_stream.h"
#include "common/device/device_table.h"
#include "common/device/failure.h"
#include "common/device/op_label.h"
#include "common/device/stream_stall.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/record.h"
#include "common/ops/testing/testing.h"
#include "common/parallel/collective/collective.h"
#include "common/parallel/collective/schedule.h"
#include "common/parallel/nccl/nccl.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

constexpr Device kFirst(DeviceType::kCpu, 0);
constexpr Device kSecond(DeviceType::kCpu, 1);
constexpr Device kThird(DeviceType::kCpu, 2);

// The failure is not known yet when the collective is called.
TEST(AllReduce, AFailedInputFailsEveryReplica) {
  for (const AllReduceAlgorithm algorithm : kAllReduceAlgorithms) {
    SCOPED_TRACE(AllReduceAlgorithmName(algorithm));
    for (const std::int64_t length : {1, 7, 1'000}) {
      const std::vector<Tensor> x = {Ones({length}, kFirst),
                                     Ones({length}, kSecond),
                                     Ones({length}, kThird)};
      const Tensor index = FromVector<std::int64_t>({5}, {1}, kSecond);
      const Tensor table = Ones({2}, kSecond);
      int line = 0;
      {
        StreamStall stall(DefaultStream(kSecond));
        line = __LINE__ + 1;
        CopyTo(IndexSelect(table, 0, index), x[1]);
        AllReduce(x, algorithm);
      }
      for (const Tensor& t : x) {
        for (int again = 0; again < 2; ++again) {
          try {
            ToVector<float>(t);
            ADD_FAILURE() << t.Describe() << " looks computed";
          } catch (const AsyncError& error) {
            EXPECT_EQ(error.failure().operation, "index_select");
            EXPECT_EQ(error.failure().requested_at.line(), line);
          }
        }
      }
      // Now it is known.
      EXPECT_THROW(AllReduce(x, algorithm), AsyncError);
      for (const Tensor& t : x) {
        EXPECT_THROW(Synchronize(t.device()), AsyncError) << t.Describe();
        try {
          Synchronize(t.device());
        } catch (const AsyncError&) {  // of the other stream
        }
        FillInPlace(t, 2);
      }
      AllReduce(x, algorithm);
      for (const Tensor& t : x) {
        EXPECT_EQ(ToVector<float>(t), std::vector<float>(length, 6));
      }
    }
  }
}

TEST(AllReduce, OverlapsWithWorkUntilWait) {
  const std::vector<Tensor> x = {Full({4}, 1, kFirst), Full({4}, 2, kSecond)};
  StreamStall stall(CommunicationStream(kFirst));
  Work work = AllReduceAsync(x);
  // It would wait for ever if this were ordered behind the collective.
  EXPECT_EQ(Item(Sum(Full({3}, 2, kFirst) * 4)), 24);
  work.Wait();
  work.Wait();
  const Tensor y = x[0] * 10;
  stall.Release();
  EXPECT_EQ(ToVector<float>(y), std::vector<float>(4, 30));
}

TEST(AllReduce, TakesNoCoreOfItsDevices) {
  const std::vector<Tensor> x = {Full({4}, 1, kFirst), Full({4}, 2, kSecond)};
  AllReduce(x);
  // Operations that hold all cores until the sum is there, or for seconds.
  std::atomic<bool> summed{false};
  std::atomic<int> computing{0};
  int cores = 0;
  for (const Device device : {kFirst, kSecond}) {
    Synchronize(device);
    for (int i = 0; i < GetDeviceInfo(device).cores; ++i, ++cores) {
      static_cast<CpuStream&>(NewStream(device))
          .Enqueue(OpLabel("product"), [&summed, &computing] {
            ++computing;
            const auto now = std::chrono::steady_clock::now;
            const auto end = now() + std::chrono::seconds(5);
            while (!summed && now() < end) std::this_thread::yield();
            --computing;
          });
    }
  }
  while (computing < cores) std::this_thread::yield();
  AllReduceAsync(x);
  CommunicationStream(kFirst).Synchronize();
  CommunicationStream(kSecond).Synchronize();
  EXPECT_EQ(computing, cores);
  summed = true;
  for (const Tensor& t : x) {
    Synchronize(t.device());
    EXPECT_EQ(ToVector<float>(t), std::vector<float>(4, 6));
  }
}

TEST(AllReduce, MemoryIsKeptUntilItIsRead) {
  const Tensor mine = Full({1'000}, 1, kFirst);
  StreamStall stall(CommunicationStream(kFirst));
  {
    const Tensor other = Full({1'000}, 2, kSecond);
    AllReduceAsync({mine, other});
  }
  // It might get the memory of `other`, since it is on the same stream.
  const Tensor next = Full({1'000}, 50, kSecond);
  WaitToRead(next);
  stall.Release();
  EXPECT_EQ(ToVector<float>(mine), std::vector<float>(1'000, 3));
}

class Names : public OpListener {
 public:
  void OnOp(const OpRecord& record) override {
    if (record.stream == nullptr) return;
    seen.insert(absl::StrCat(record.primitive->name(), " on ",
                             record.stream->name(), " of ",
                             record.inputs.size()));
    lines.insert(record.requested_at.line());
  }
  std::set<std::string> seen;
  std::set<int> lines;
};

TEST(AllReduce, IsRecordedMoveByMove) {
  const std::vector<Tensor> x = {Ones({4}, kFirst), Ones({4}, kSecond)};
  Names names;
  int line = 0;
  {
    ScopedOpListener listen(&names);
    line = __LINE__ + 1;
    AllReduce(x);
  }
  const std::string first = CommunicationStream(kFirst).name();
  const std::string second = CommunicationStream(kSecond).name();
  EXPECT_EQ(names.seen,
            (std::set<std::string>{"allreduce on " + first + " of 2",
                                   "allreduce on " + first + " of 1",
                                   "allreduce on " + second + " of 2",
                                   "allreduce on " + second + " of 1"}));
  EXPECT_EQ(names.lines, std::set<int>{line});
}

TEST(AllReduce, RefusesWhatIsNoListOfReplicas) {
  const Tensor a = Ones({4}, kFirst);
  const Tensor b = Ones({4}, kSecond);
  EXPECT_REFUSED("[allreduce] a tensor for each device wanted; got none",
                 AllReduce({}));
  EXPECT_REFUSED(
      "[allreduce] each tensor must be on a device of its own; two "
      "are on cpu:0",
      AllReduce({a, b, Ones({4}, kFirst)}));
  EXPECT_REFUSED(
      "[allreduce] tensors of one dtype and length wanted; got a "
      "float32 tensor of shape (4) on cpu:0 and a float32 tensor of "
      "shape (3) on cpu:1",
      AllReduce({a, Ones({3}, kSecond)}));
  EXPECT_REFUSED(
      "[allreduce] tensors of one dtype and length wanted; got a "
      "float32 tensor of shape (4) on cpu:0 and an int64 tensor of "
      "shape (4) on cpu:1",
      AllReduce({a, Ones({4}, kSecond, DType::kInt64)}));
  EXPECT_REFUSED(
      "[allreduce] an operand is an undefined tensor (a Tensor that "
      "was declared and never assigned)",
      AllReduce({a, Tensor()}));
  EXPECT_REFUSED(
      "[allreduce] contiguous tensors wanted; got a float32 tensor "
      "of shape (3, 2) on cpu:0 with strides (1, 3); copy it first: "
      "Contiguous(x)",
      AllReduce(
          {Transpose(Ones({2, 3}, kFirst), 0, 1), Ones({3, 2}, kSecond)}));
  EXPECT_REFUSED(
      "[allreduce] a plan for 3 devices; got 2 tensors",
      RunPlan("allreduce",
              MakePlan(AllReduceSchedule(AllReduceAlgorithm::kSplit, 3)),
              {a, b}));
}

// A library that is not there, and one that lacks a function.
TEST(LoadNccl, SaysWhatToInstall) {
  for (const char* name : {"libnccl_that_is_not_there.so.2", "libm.so.6"}) {
    EXPECT_THAT(std::string(LoadNccl(name).status().message()),
                testing::ContainsRegex(
                    absl::StrCat("NCCL cannot be loaded \\(.*", name,
                                 ".*Install it \\(sudo apt-get install")));
  }
}

}  // namespace
}  // namespace d2l
