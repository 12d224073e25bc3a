// DataParallel over several processes has the bits of one process with as many
// devices. Starts itself with mpirun: each test is a run of Ranks below.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
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
#include "common/nn/layers.h"
#include "common/ops/creation.h"
#include "common/ops/ops.h"
#include "common/parallel/data_parallel/data_parallel.h"
#include "common/parallel/data_parallel/split_batch.h"
#include "common/parallel/mpi/mpi_testing.h"
#include "common/parallel/mpi/mpi_world.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

// ---- In each of the processes.

constexpr int kSteps = 20;
constexpr int kClasses = 10;

std::vector<int> FirstIds(int count) {
  std::vector<int> ids(count);
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

// With running statistics, and with numbers that differ between devices.
nn::Sequential Net() {
  const Device device = Devices()[0].device;
  return nn::Sequential(nn::Conv2d(1, 3, 3, {}, true, device),
                        nn::BatchNorm2d(3, 1e-5, 0.1, device), nn::ReLU(),
                        nn::Flatten(), nn::Dropout(0.25),
                        nn::Linear(3 * 25, kClasses, true, device));
}

// What 20 steps with batches of 1 to 9 samples leave: the losses, and the
// parameters and buffers of each of its devices.
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
  for (int d = 0; d < devices; ++d) {
    for (const auto& [name, x] : nn::NamedState(net.replica(d))) {
      result.push_back(ToVector<float>(To(x, DType::kFloat32)));
    }
  }
  return result;
}

// "2 ring": two devices in each process.
int Ranks(const std::string& what) {
  const std::vector<std::string> words = absl::StrSplit(what, ' ');
  const int each = std::stoi(words[0]);
  const bool by_mpi = words[1] == "mpi";
  const auto world = MpiWorld::Start({.timeout_seconds = 30}).value();
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

  options.processes = world->processes();
  options.process = world->process();
  options.sum = [&](Replicas local, SourceLocation at) {
    return world->AllReduceAsync(local, algorithm, at);
  };
  SetFirstDeviceIndex(world->process() * each);
  const std::vector<std::vector<float>> got = Train(options, each);
  const auto close = [by_mpi](float a, float b) {
    return by_mpi ? std::abs(a - b) < 1e-4 : a == b;
  };
  // The rest of what is expected is of devices of other processes.
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
  // All processes have the same.
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

// ---- In the test.

class MpiDataParallelTest : public testing::TestWithParam<std::string> {};

TEST_P(MpiDataParallelTest, ProcessesTrainToTheBitsOfOneProcess) {
  for (const auto& [processes, each] :
       {std::pair{1, 2}, {2, 1}, {2, 2}, {3, 1}}) {
    const ProgramResult run =
        MpiRun(processes, absl::StrCat(each, " ", GetParam()));
    EXPECT_EQ(run.exit_code, 0)
        << processes << " x " << each << ": " << run.output;
  }
}
INSTANTIATE_TEST_SUITE_P(Algorithms, MpiDataParallelTest,
                         testing::Values("split even", "ring even",
                                         "mpi even"));

// One process has samples only where there are many.
TEST(MpiDataParallelTest, UnevenSplits) {
  for (const char* what : {"1 split 5:1", "1 split 0:1"}) {
    const ProgramResult run = MpiRun(2, what);
    EXPECT_EQ(run.exit_code, 0) << what << ": " << run.output;
  }
}

}  // namespace

int MainOfTest(int argc, char** argv) {
  if (!InitializeDevices("cpu:0,cpu:1,cpu:2,cpu:3").ok()) return 1;
  if (const char* const what = std::getenv("D2L_RANKS")) return Ranks(what);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace d2l

int main(int argc, char** argv) { return d2l::MainOfTest(argc, argv); }
