// DataParallel over several processes has the bits of one process with as many
// devices. Starts itself with mpirun: each test is a run of Ranks below.

#include <signal.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/child_process.h"
#include "common/device/device_table.h"
#include "common/device/failure.h"
#include "common/nn/layers.h"
#include "common/ops/creation.h"
#include "common/ops/ops.h"
#include "common/parallel/data_parallel/data_parallel.h"
#include "common/parallel/data_parallel/split_batch.h"
#include "common/parallel/mpi/mpi_testing.h"
#include "common/parallel/mpi/mpi_world.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using testing::HasSubstr;

// ---- In each of the processes.

constexpr int kSteps = 20;
constexpr int kClasses = 10;

std::vector<int> FirstIds(int count) {
  std::vector<int> ids(count);
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

// With running statistics, and with dropout, which differs between devices.
nn::Sequential Net() {
  const Device device = Devices()[0].device;
  return nn::Sequential(nn::Conv2d(1, 3, 3, {}, true, device),
                        nn::BatchNorm2d(3, 1e-5, 0.1, device), nn::ReLU(),
                        nn::Flatten(), nn::Dropout(0.25),
                        nn::Linear(3 * 25, kClasses, true, device));
}

// Runs 20 steps with batches of 1 to 9 samples; returns the losses, the
// momentum, and the parameters and buffers of each of its devices.
std::vector<std::vector<float>> Train(const DataParallelOptions& options,
                                      int devices) {
  ManualSeed(11);
  DataParallel net(Net(), FirstIds(devices), options);
  ManualSeed(12);
  std::vector<std::vector<float>> result;
  for (int step = 0; step < kSteps; ++step) {
    // The same in every process.
    const std::int64_t samples = 1 + step * 5 % 9;
    std::vector<float> pixels(samples * 49);
    std::vector<std::int64_t> labels;
    std::uint32_t state = 77 + step;
    for (float& pixel : pixels) {
      state = state * 1664525u + 1013904223u;
      pixel = static_cast<float>(state >> 8) / 1e7f - 0.8f;
    }
    for (std::int64_t i = 0; i < samples; ++i) {
      labels.push_back((step * 7 + i * 3) % kClasses);
    }
    const Device device = Devices()[0].device;
    if (step == kSteps / 2) net.Eval();  // writes no buffers, drops nothing
    result.push_back(ToVector<float>(
        net.Step(FromVector(pixels, {samples, 1, 7, 7}, device),
                 FromVector(labels, {samples}, device), {0.05, 0.9})
            .loss));
  }
  for (const Tensor& v : net.sgd().momentum_buffers()) {
    result.push_back(ToVector<float>(v));
  }
  for (int d = 0; d < devices; ++d) {
    for (const auto& [name, x] : nn::NamedState(net.replica(d))) {
      result.push_back(ToVector<float>(To(x, DType::kFloat32)));
    }
  }
  return result;
}

// Sets the options to train over all processes.
void Join(MpiWorld& world, std::optional<AllReduceAlgorithm> algorithm,
          DataParallelOptions* options) {
  options->processes = world.processes();
  options->process = world.process();
  options->collective = [&world, algorithm](Collective what, Replicas local,
                                            SourceLocation at) {
    return world.RunAsync(what, local, algorithm, at);
  };
}

// "2 ring even 0": two devices in each process, and nothing sharded.
int Ranks(const std::string& what) {
  const std::vector<std::string> words = absl::StrSplit(what, ' ');
  const int each = std::stoi(words[0]);
  const bool by_mpi = words[1] == "mpi";
  const auto world = MpiWorld::Start(/*timeout_seconds=*/30).value();
  std::optional<AllReduceAlgorithm> algorithm;
  if (!by_mpi) algorithm = ParseAllReduceAlgorithm(words[1]).value();
  DataParallelOptions options;
  options.first_bucket_bytes = options.bucket_bytes = 500;  // several buckets
  if (words[2] != "even") {
    options.split = ParseSplit(words[2], world->processes() * each).value();
  }
  if (algorithm) options.allreduce = *algorithm;
  const std::vector<std::vector<float>> expected =
      Train(options, world->processes() * each);
  options.shard = static_cast<Shard>(std::stoi(words[3]));
  Join(*world, algorithm, &options);
  SetFirstDeviceIndex(world->process() * each);
  const std::vector<std::vector<float>> got = Train(options, each);
  const auto close = [by_mpi](float a, float b) {
    return by_mpi ? std::abs(a - b) < 1e-4 : a == b;
  };
  // The rest of `expected` belongs to devices of other processes.
  for (std::size_t i = 0; i < got.size(); ++i) {
    for (std::size_t k = 0; k < got[i].size(); ++k) {
      if (got[i].size() == expected[i].size() &&
          close(got[i][k], expected[i][k])) {
        continue;
      }
      std::cerr << "process " << world->process() << ": number " << k
                << " of result " << i << " is " << got[i][k] << ", and not "
                << expected[i][k] << "\n";
      MpiWorld::Abort(1);
    }
  }
  // All processes must have the same bits.
  const std::vector<float>& last = got.back();
  std::uint64_t bits = 0;
  for (const float x : last) {
    std::uint32_t of;
    std::memcpy(&of, &x, sizeof(of));
    bits = bits * 31 + of;
  }
  for (const std::uint64_t other : world->Gather(bits)) {
    if (other != bits) MpiWorld::Abort(2);
  }
  return 0;
}

// Process 1 has a bad label, or process 0 alone calls sgd().
int MeetAFault(const std::string& fault) {
  const auto world = MpiWorld::Start(/*timeout_seconds=*/3).value();
  DataParallelOptions options;
  Join(*world, AllReduceAlgorithm::kSplit, &options);
  options.first_bucket_bytes = options.bucket_bytes = 500;
  options.shard = Shard::kGradients;
  const Device device = Devices()[0].device;
  try {
    DataParallel net(Net(), {0}, options);
    for (int step = 0; step < 3; ++step) {
      if (step == 1 && fault == "alone" && world->process() == 0) net.sgd();
      std::vector<std::int64_t> labels = {1, 2, 3, 4};
      if (step == 1 && fault == "label") labels[3] = kClasses;
      Item(net.Step(Randn({4, 1, 7, 7}, device),
                    FromVector(labels, {4}, device), {0.1, 0.9})
               .loss);
    }
  } catch (const AsyncError& error) {
    std::cerr << "process " << world->process() << ": " << error.what() << "\n";
    // So that process 0 names the process for which it has waited.
    if (world->process() == 1) raise(SIGSTOP);
    MpiWorld::Abort(4);
  }
  return 0;
}

// Each stage takes less than the one before it, and as the formula says.
int MeasureMemory() {
  constexpr int kLayers = 6;
  constexpr std::int64_t kWidth = 384, kRows = 5;
  const auto world = MpiWorld::Start(/*timeout_seconds=*/30).value();
  DataParallelOptions options;
  Join(*world, AllReduceAlgorithm::kSplit, &options);
  options.first_bucket_bytes = options.bucket_bytes = 4 * kWidth * kWidth;
  options.measure_memory = true;
  const Device device = Devices()[0].device;
  const std::int64_t rows = kRows * world->processes();
  std::int64_t before = std::numeric_limits<std::int64_t>::max();
  for (const Shard shard :
       {Shard::kNone, Shard::kOptimizer, Shard::kGradients}) {
    options.shard = shard;
    nn::Sequential layers;
    for (int i = 0; i < kLayers; ++i) {
      layers.Append(nn::Linear(kWidth, kWidth, true, device));
      layers.Append(nn::ReLU());
    }
    DataParallel net(std::move(layers), {0}, options);
    for (int step = 0; step < 3; ++step) {
      net.Step(Randn({rows, kWidth}, device), RandInt(0, 10, {rows}, device),
               {0.01, 0.9});
    }
    const std::int64_t peak = net.memory(0).peak();
    const std::int64_t predicted =
        net.PredictMemory(0, kLayers * 4 * kRows * kWidth, 4 * kWidth * kWidth,
                          /*momentum=*/true)
            .peak();
    if (peak >= before || std::abs(peak - predicted) > predicted / 20) {
      std::cerr << "process " << world->process() << ", stage "
                << static_cast<int>(shard) << ": a peak of " << peak
                << " bytes; predicted " << predicted << "; before " << before
                << "\n";
      MpiWorld::Abort(3);
    }
    before = peak;
  }
  return 0;
}

// ---- In the test.

class MpiDataParallelTest : public testing::TestWithParam<std::string> {};

TEST_P(MpiDataParallelTest, ProcessesTrainToTheBitsOfOneProcess) {
  for (const auto& [processes, each] :
       {std::pair{1, 2}, {2, 1}, {2, 2}, {3, 1}}) {
    const ProgramResult run =
        MpiRun(processes, absl::StrCat(each, " ", GetParam(), " 0"));
    EXPECT_EQ(run.exit_code, 0)
        << processes << " x " << each << ": " << run.output;
  }
}
INSTANTIATE_TEST_SUITE_P(Algorithms, MpiDataParallelTest,
                         testing::Values("split even", "ring even",
                                         "mpi even"));

TEST(MpiDataParallelTest, ShardsOverProcessesHaveTheSameBits) {
  for (const int stage : {1, 2}) {
    for (const auto& [processes, each] :
         {std::pair{1, 1}, {2, 1}, {3, 1}, {4, 1}, {2, 2}}) {
      const ProgramResult run =
          MpiRun(processes, absl::StrCat(each, " split even ", stage));
      EXPECT_EQ(run.exit_code, 0) << "stage " << stage << ", " << processes
                                  << " x " << each << ": " << run.output;
    }
  }
}

TEST(MpiDataParallelTest, ShardsTakeTheMemoryOfTheFormula) {
  for (const int processes : {2, 4}) {
    const ProgramResult run = MpiRun(processes, "memory");
    EXPECT_EQ(run.exit_code, 0) << processes << ": " << run.output;
  }
}

TEST(MpiDataParallelTest, AFaultOfOneIsWaitedForInVain) {
  for (const char* fault : {"alone", "label"}) {
    const ProgramResult run = MpiRun(2, fault);
    EXPECT_EQ(run.exit_code, 4) << fault << ": " << run.output;
    EXPECT_FALSE(run.timed_out);
    EXPECT_THAT(run.output, HasSubstr("rank 1 has not answered for 3 s"));
  }
}

// One process has samples only in large batches.
TEST(MpiDataParallelTest, UnevenSplits) {
  for (const char* what :
       {"1 split 5:1 0", "1 split 0:1 0", "1 split 0:1 2", "1 split 5:1 2"}) {
    const ProgramResult run = MpiRun(2, what);
    EXPECT_EQ(run.exit_code, 0) << what << ": " << run.output;
  }
}

}  // namespace

int MainOfTest(int argc, char** argv) {
  if (!InitializeDevices("cpu:0,cpu:1,cpu:2,cpu:3").ok()) return 1;
  if (const char* const what = std::getenv("D2L_RANKS")) {
    const std::string fault = what;
    if (fault == "alone" || fault == "label") return MeetAFault(fault);
    return fault == "memory" ? MeasureMemory() : Ranks(what);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace d2l

int main(int argc, char** argv) { return d2l::MainOfTest(argc, argv); }
