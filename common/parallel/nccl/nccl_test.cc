#include "common/parallel/nccl/nccl.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/timer.h"
#include "common/device/backend.h"
#include "common/device/cuda/cuda_gpu.h"
#include "common/device/cuda/fake/fake_cuda.h"
#include "common/device/cuda/stream/cuda_stream.h"
#include "common/device/device.h"
#include "common/device/failure.h"
#include "common/parallel/nccl/fake_nccl.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int kMostGpus = 3;

FakeCuda::Options Gpus() {
  FakeCuda::Options options;
  options.gpus = kMostGpus;
  return options;
}

class NcclTest : public testing::Test {
 protected:
  NcclTest() : cuda_(Gpus()), nccl_(cuda_) {
    for (int i = 0; i < kMostGpus; ++i) {
      gpus_.push_back(std::make_unique<CudaGpu>(cuda_, i, "sm_90", 4,
                                                std::vector<int>{900}));
      streams_.push_back(NewStream(i));
    }
  }
  void TearDown() override {
    streams_.clear();
    EXPECT_THAT(cuda_.violations(), IsEmpty());
    EXPECT_THAT(nccl_.violations(), IsEmpty());
  }

  std::unique_ptr<CudaStream> NewStream(int gpu) {
    auto stream = std::make_unique<CudaStream>(
        *gpus_[gpu], Device(DeviceType::kCuda, gpu), 0, StreamOptions());
    stream->Launch(OpLabel("look"), [&](const CudaLaunch& to) {
      nccl_.AddStream(to.stream, gpu);
    });
    return stream;
  }

  std::vector<CudaStream*> Streams(int count) {
    std::vector<CudaStream*> streams;
    for (int i = 0; i < count; ++i) streams.push_back(streams_[i].get());
    return streams;
  }

  // Memory of each GPU, with these values.
  template <typename T>
  std::vector<void*> Upload(const std::vector<std::vector<T>>& values) {
    std::vector<void*> data;
    for (std::size_t i = 0; i < values.size(); ++i) {
      gpus_[i]->MakeCurrent();
      data.push_back(nullptr);
      const std::size_t bytes = values[i].size() * sizeof(T);
      EXPECT_EQ(cuda_.Allocate(bytes + 1, &data.back()), 0);
      streams_[i]->CopyAsync(data[i], values[i].data(), bytes,
                             CopyKind::kHostToDevice);
    }
    return data;
  }
  template <typename T>
  std::vector<T> Download(int gpu, const void* data, std::size_t count) {
    std::vector<T> values(count);
    streams_[gpu]->CopyAsync(values.data(), data, count * sizeof(T),
                             CopyKind::kDeviceToHost);
    return values;
  }

  template <typename T>
  void CheckSum(int ranks, std::size_t count, DType dtype, int nccl_type) {
    SCOPED_TRACE(testing::Message()
                 << ranks << " x " << count << " " << DTypeName(dtype));
    std::mt19937 random(static_cast<unsigned>(count + 31 * ranks));
    std::vector<std::vector<T>> values(ranks);
    std::vector<T> sum(count);
    for (std::vector<T>& of_rank : values) {
      for (std::size_t i = 0; i < count; ++i) {
        of_rank.push_back(static_cast<T>(random() % 80));
        sum[i] = static_cast<T>(sum[i] + of_rank[i]);
      }
    }
    NcclGroup group(nccl_.library(), Streams(ranks));
    nccl_.TakeCalls();
    const std::vector<void*> data = Upload(values);
    const std::vector<NcclGroup::Sum> sums = group.AllReduce(
        Labels(ranks), data, static_cast<std::int64_t>(count), dtype);
    std::vector<std::string> calls = {"group_start"};
    for (int i = 0; i < ranks; ++i) {
      calls.push_back("all_reduce " + std::to_string(count) + " x " +
                      std::to_string(nccl_type));
    }
    calls.push_back("group_end");
    EXPECT_EQ(nccl_.TakeCalls(), calls);
    for (int i = 0; i < ranks; ++i) {
      EXPECT_EQ(Download<T>(i, data[i], count), sum) << "on GPU " << i;
      streams_[i]->Synchronize();
      EXPECT_TRUE(sums[i].done.Query());
      gpus_[i]->MakeCurrent();
      cuda_.Free(data[i]);
    }
  }

  static std::vector<OpLabel> Labels(int ranks) {
    return std::vector<OpLabel>(ranks, OpLabel("allreduce"));
  }

  FakeCuda cuda_;
  FakeNccl nccl_;
  std::vector<std::unique_ptr<CudaGpu>> gpus_;
  std::vector<std::unique_ptr<CudaStream>> streams_;
};

TEST_F(NcclTest, Adds) {
  for (int ranks = 1; ranks <= kMostGpus; ++ranks) {
    for (const std::size_t count : {0, 1, 7, 1000}) {
      CheckSum<float>(ranks, count, DType::kFloat32, 7);
      CheckSum<double>(ranks, count, DType::kFloat64, 8);
      CheckSum<std::int64_t>(ranks, count, DType::kInt64, 4);
      CheckSum<std::uint8_t>(ranks, count, DType::kUInt8, 1);
    }
  }
}

TEST_F(NcclTest, MakesACommunicatorForEachGpuInOneGroup) {
  const NcclGroup group(nccl_.library(), Streams(3));
  EXPECT_THAT(nccl_.TakeCalls(),
              ElementsAre("get_unique_id", "group_start", "comm_init_rank 0",
                          "comm_init_rank 1", "comm_init_rank 2", "group_end"));
}

// Far more operations than a stream has checkpoints for.
TEST_F(NcclTest, EachSumIsBehindTheOneBefore) {
  NcclGroup group(nccl_.library(), Streams(2));
  const std::vector<void*> data = Upload<double>({{1}, {2}});
  for (int i = 0; i < 50; ++i) {
    group.AllReduce(Labels(2), data, 1, DType::kFloat64);
    if (i % 7 == 0) group.Poll();
  }
  const double sum = 3 * static_cast<double>(std::int64_t{1} << 49);
  EXPECT_EQ(Download<double>(0, data[0], 1)[0], sum);
  EXPECT_EQ(Download<double>(1, data[1], 1)[0], sum);
}

TEST_F(NcclTest, TheOperationsHaveTimes) {
  NcclGroup group(nccl_.library(), Streams(2));
  const std::vector<void*> data = Upload<float>({{1}, {2}});
  std::vector<OpStamps> stamps(2);
  std::vector<OpLabel> labels = Labels(2);
  for (int i = 0; i < 2; ++i) labels[i].set_stamps(&stamps[i]);
  group.AllReduce(labels, data, 1, DType::kFloat32);
  for (int i = 0; i < 2; ++i) {
    streams_[i]->Synchronize();
    EXPECT_GT(stamps[i].begin, 0);
    EXPECT_GT(stamps[i].end, stamps[i].begin);
  }
}

// As two processes would.
TEST_F(NcclTest, RanksOfTwoProcesses) {
  NcclRanks first = {{}, 0, 3};
  EXPECT_EQ(nccl_.library().get_unique_id(&first.id), 0);
  const NcclRanks rest = {first.id, 1, 3};
  std::unique_ptr<NcclGroup> other;
  std::thread process([&] {
    other = std::make_unique<NcclGroup>(
        nccl_.library(),
        std::vector<CudaStream*>{streams_[1].get(), streams_[2].get()}, rest);
  });
  NcclGroup one(nccl_.library(), {streams_[0].get()}, first);
  process.join();
  NcclGroup& two = *other;
  const std::vector<void*> data = Upload<float>({{1, 10}, {2, 20}, {4, 40}});
  two.AllReduce(Labels(2), {data[1], data[2]}, 2, DType::kFloat32);
  one.AllReduce(Labels(1), {data[0]}, 2, DType::kFloat32);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(Download<float>(i, data[i], 2), ElementsAre(7, 70));
  }
}

// The other process is stopped.
TEST_F(NcclTest, AProcessThatDoesNotConnectIsGivenUp) {
  NcclRanks first = {{}, 0, 2, /*timeout_seconds=*/0.05};
  EXPECT_EQ(nccl_.library().get_unique_id(&first.id), 0);
  EXPECT_EQ(
      ErrorOf([&] { NcclGroup(nccl_.library(), {streams_[0].get()}, first); }),
      "[nccl] NCCL cannot connect the GPUs: another process has not "
      "answered for 0.05 s");
  EXPECT_EQ(nccl_.TakeCalls().back(), "comm_abort");
}

TEST_F(NcclTest, AProcessThatDoesNotAnswerACallIsGivenUp) {
  NcclRanks all = {{}, 0, 2, /*timeout_seconds=*/0.05};
  EXPECT_EQ(nccl_.library().get_unique_id(&all.id), 0);
  NcclGroup group(nccl_.library(), Streams(2), all);
  const std::vector<void*> data = Upload<float>({{1}, {2}});
  for (const auto& stream : streams_) stream->Synchronize();
  nccl_.Hang();
  const auto add = [&] {
    group.AllReduce(Labels(2), data, 1, DType::kFloat32);
  };
  EXPECT_THAT(ErrorOf(add), HasSubstr("another process has not answered for "
                                      "0.05 s; start the program again"));
  EXPECT_THAT(ErrorOf(add), HasSubstr("start the program again"));
}

TEST_F(NcclTest, AProcessThatDoesNotAddIsGivenUp) {
  NcclRanks mine = {{}, 0, 2, /*timeout_seconds=*/0.05};
  EXPECT_EQ(nccl_.library().get_unique_id(&mine.id), 0);
  const NcclRanks others = {mine.id, 1, 2};
  std::thread process(
      [&] { NcclGroup(nccl_.library(), {streams_[1].get()}, others); });
  NcclGroup group(nccl_.library(), {streams_[0].get()}, mine);
  process.join();
  const std::vector<void*> data = Upload<float>({{1}});
  streams_[0]->Synchronize();
  nccl_.TakeCalls();
  const auto look_for = [&](double seconds) {
    std::vector<std::string> calls;
    for (const Timer timer; calls.empty() && timer.Seconds() < seconds;) {
      group.Poll();
      calls = nccl_.TakeCalls();
    }
    return calls;
  };
  const std::function<void()> go_on = streams_[0]->Stall();
  group.AllReduce(Labels(1), data, 1, DType::kFloat32);
  nccl_.TakeCalls();
  // Time counts only after the stream has come to the operation.
  EXPECT_THAT(look_for(0.2), IsEmpty());
  go_on();
  EXPECT_THAT(look_for(20), ElementsAre("comm_abort"));
  EXPECT_THAT(ErrorOf([&] { streams_[0]->Synchronize(); }),
              AllOf(HasSubstr("allreduce"),
                    HasSubstr("another process has not answered in time")));
}

TEST_F(NcclTest, ThreadsMayNameTheGpusInAnyOrder) {
  NcclGroup forth(nccl_.library(), Streams(2));
  NcclGroup back(nccl_.library(), {streams_[1].get(), streams_[0].get()});
  const std::vector<void*> data = Upload<double>({{1}, {1}});
  const auto run = [](NcclGroup& group, const std::vector<void*>& in) {
    for (int i = 0; i < 20; ++i) {
      group.AllReduce(Labels(2), in, 1, DType::kFloat64);
    }
  };
  std::thread other([&] { run(back, {data[1], data[0]}); });
  run(forth, data);
  other.join();
  EXPECT_EQ(Download<double>(0, data[0], 1)[0],
            static_cast<double>(std::int64_t{1} << 40));
}

TEST_F(NcclTest, WhatNcclDoesNotTakeFailsOnEveryStream) {
  NcclGroup group(nccl_.library(), Streams(3));
  for (const char* function : {"group_start", "all_reduce", "group_end"}) {
    SCOPED_TRACE(function);
    const std::vector<void*> data = Upload<float>({{1}, {2}, {3}});
    for (const auto& stream : streams_) stream->Synchronize();
    nccl_.TakeCalls();
    nccl_.FailNext(function, 5);
    EXPECT_THAT(
        ErrorOf([&] { group.AllReduce(Labels(3), data, 1, DType::kFloat32); }),
        AllOf(HasSubstr("allreduce"), HasSubstr("NCCL: invalid usage")));
    EXPECT_EQ(nccl_.TakeCalls().back(), "group_end");
    for (const auto& stream : streams_) {
      EXPECT_TRUE(stream->ever_failed());
      EXPECT_EQ(ErrorOf([&] { stream->Synchronize(); }), "nothing thrown")
          << "it has been thrown";
    }
  }
  CheckSum<float>(3, 5, DType::kFloat32, 7);
}

TEST_F(NcclTest, WhatOneStreamCannotTakeFailsOnEveryStream) {
  NcclGroup group(nccl_.library(), Streams(2));
  const std::vector<void*> data = Upload<float>({{1}, {2}});
  for (const auto& stream : streams_) stream->Synchronize();
  nccl_.TakeCalls();
  cuda_.Crash(1, 700);
  EXPECT_THAT(
      ErrorOf([&] { group.AllReduce(Labels(2), data, 1, DType::kFloat32); }),
      AllOf(HasSubstr("stream cuda:0"), HasSubstr("stream cuda:1"),
            HasSubstr("cudaErrorIllegalAddress")));
  EXPECT_THAT(nccl_.TakeCalls(), IsEmpty());
}

TEST_F(NcclTest, AnErrorThatComesLaterEndsTheKernelsAndFails) {
  NcclGroup group(nccl_.library(), Streams(3));
  const std::vector<void*> data = Upload<float>({{1}, {2}, {3}});
  group.AllReduce(Labels(3), data, 1, DType::kFloat32);
  EXPECT_EQ(Download<float>(0, data[0], 1)[0], 6);
  for (const auto& stream : streams_) stream->Synchronize();
  group.Poll();
  nccl_.TakeCalls();

  nccl_.Break(6);
  group.Poll();  // nothing is in progress
  EXPECT_THAT(nccl_.TakeCalls(), IsEmpty());
  const auto sums = group.AllReduce(Labels(3), data, 1, DType::kFloat32);
  group.AllReduce(Labels(3), data, 1, DType::kFloat32);
  EXPECT_FALSE(sums[0].done.Query());
  nccl_.TakeCalls();
  group.Poll();
  EXPECT_THAT(nccl_.TakeCalls(),
              ElementsAre("comm_abort", "comm_abort", "comm_abort"));
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    const std::string text = ErrorOf([&] { streams_[i]->Synchronize(); });
    EXPECT_THAT(text, AllOf(HasSubstr("allreduce"),
                            HasSubstr("NCCL gave up its communication between "
                                      "GPUs, with error 6 (another process is "
                                      "gone, or the network)")));
    EXPECT_NE(streams_[i]->FailureOf(sums[i].number), nullptr);
  }
  group.Poll();  // once is enough
  EXPECT_THAT(nccl_.TakeCalls(), IsEmpty());
  EXPECT_THAT(
      ErrorOf([&] { group.AllReduce(Labels(3), data, 1, DType::kFloat32); }),
      HasSubstr("NCCL: remote process exited; start the program again"));
}

TEST_F(NcclTest, SaysWhyThereIsNoGroup) {
  for (const char* function : {"comm_init_rank", "group_end"}) {
    nccl_.FailNext(function, 5);
    EXPECT_EQ(ErrorOf([&] { NcclGroup(nccl_.library(), Streams(2)); }),
              "[nccl] NCCL cannot connect the GPUs: invalid usage");
  }
  NcclRanks ranks = {{}, 0, 2};
  EXPECT_EQ(nccl_.library().get_unique_id(&ranks.id), 0);
  nccl_.FailNext("group_end", 5);
  EXPECT_THAT(ErrorOf([&] { NcclGroup(nccl_.library(), Streams(2), ranks); }),
              HasSubstr("invalid usage; processes need GPUs of their own"));
}

TEST(NcclLibrary, SaysWhatIsMissing) {
  const auto text = [](const std::string& name) {
    return std::string(LoadNccl(name).status().message());
  };
  EXPECT_EQ(text("libnccl_that_is_not_there.so.2"),
            "there is no libnccl_that_is_not_there.so.2, NVIDIA's NCCL, in "
            "LD_LIBRARY_PATH and the system's folders. Install NVIDIA's "
            "package (sudo apt-get install libnccl2, from the repository that "
            "CUDA comes from), or set LD_LIBRARY_PATH to the folder of another "
            "one; PyTorch brings one, which find / -name 'libnccl.so.2' shows; "
            "or add up without it: --allreduce=split");
  // A version that is too old lacks ncclCommInitRankConfig in the same way.
  EXPECT_THAT(text("libm.so.6"),
              AllOf(HasSubstr("libm.so.6 lacks a function that NCCL has from "
                              "2.14 on ("),
                    HasSubstr("undefined symbol: ncclGetUniqueId). Install")));
}

}  // namespace
}  // namespace d2l
