// Starts itself with mpirun: each test is a run of Ranks below in several
// processes.

#include "common/parallel/mpi/mpi_world.h"

#include <signal.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/child_process.h"
#include "common/base/timer.h"
#include "common/device/device_table.h"
#include "common/device/event.h"
#include "common/device/failure.h"
#include "common/device/stream_stall.h"
#include "common/ops/ops.h"
#include "common/parallel/collective/collective.h"
#include "common/parallel/mpi/mpi_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// ---- In each of the processes.

// The values of a rank's tensor, which differ between ranks.
std::vector<float> ValuesOf(int rank, std::int64_t numel) {
  std::vector<float> values(numel);
  std::uint32_t state = 12345 + rank;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) / 1e5f - 80.0f;
  }
  return values;
}

Device Cpu(int i) { return Devices()[i].device; }

std::vector<Tensor> TensorsOf(int first, int count, std::int64_t numel) {
  std::vector<Tensor> tensors;
  for (int i = 0; i < count; ++i) {
    tensors.push_back(FromVector(ValuesOf(first + i, numel), {numel}, Cpu(i)));
  }
  return tensors;
}

// The results equal those of one process with all devices, bit for bit.
int CompareAlgorithms(MpiWorld& world, int each) {
  const int ranks = world.processes() * each;
  int wrong = 0;
  const auto compare = [&](const std::vector<Tensor>& got,
                           const Tensor& expected, const char* name) {
    for (const Tensor& x : got) {
      const std::vector<float> a = ToVector<float>(x);
      const std::vector<float> b = ToVector<float>(expected);
      if (a.size() == b.size() &&
          (a.empty() ||
           std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0)) {
        continue;
      }
      ++wrong;
      std::cerr << name << " of " << x.numel() << " differs in process "
                << world.process() << "\n";
    }
  };
  for (const std::int64_t numel : {0, 1, 7, 1'000'001}) {
    for (const AllReduceAlgorithm algorithm : kAllReduceAlgorithms) {
      if (algorithm == AllReduceAlgorithm::kHost) continue;
      const std::vector<Tensor> expected = TensorsOf(0, ranks, numel);
      AllReduce(expected, algorithm);
      const std::vector<Tensor> got =
          TensorsOf(world.process() * each, each, numel);
      world.AllReduceAsync(got, algorithm).Wait();
      compare(got, expected[0], AllReduceAlgorithmName(algorithm));
    }
    const std::vector<Tensor> sums = TensorsOf(0, ranks, numel);
    AllReduce(sums);
    const auto mine = [&] {
      return TensorsOf(world.process() * each, each, numel);
    };
    const std::vector<Tensor> halves = mine();
    world.RunAsync(Collective::kReduceScatter, halves, std::nullopt).Wait();
    world.RunAsync(Collective::kAllGather, halves, std::nullopt).Wait();
    compare(halves, sums[0], "a reduce-scatter and an all-gather");
    const std::vector<Tensor> got = mine();
    world.AllReduceAsync(got, std::nullopt).Wait();
    for (const Tensor& x : got) {
      const std::vector<float> a = ToVector<float>(x);
      const std::vector<float> b = ToVector<float>(sums[0]);
      const auto close = [](float u, float v) {
        return std::abs(u - v) < 0.01;
      };
      if (std::equal(a.begin(), a.end(), b.begin(), b.end(), close)) continue;
      ++wrong;
      std::cerr << "MPI_Allreduce of " << numel << " differs\n";
    }
  }
  std::vector<std::uint64_t> expected;
  for (int p = 0; p < world.processes(); ++p) expected.push_back(p * 7);
  if (world.Gather(world.process() * 7) != expected) ++wrong;
  return wrong;
}

// Process 1 does what `fault` says, in the third of many calls.
int MeetAFault(MpiWorld& world, const std::string& fault) {
  try {
    for (int i = 0;; ++i) {
      if (i == 3 && world.process() == 1) {
        raise(fault == "stop" ? SIGSTOP : SIGKILL);
      }
      const std::vector<Tensor> x = TensorsOf(world.process(), 1, 100'000);
      world.AllReduceAsync(x, AllReduceAlgorithm::kRing).Wait();
      ToVector<float>(x[0]);
    }
  } catch (const AsyncError& error) {
    std::cerr << "process " << world.process() << ": " << error.what() << "\n";
    return 3;
  }
}

// Process 1 leaves out a Gather.
int LeaveOutACall(MpiWorld& world) {
  try {
    for (int i = 0; i < 5; ++i) {
      if (i != 2 || world.process() != 1) world.Gather(7);
      const std::vector<Tensor> x = TensorsOf(world.process(), 1, 100'000);
      world.AllReduceAsync(x, AllReduceAlgorithm::kRing).Wait();
      ToVector<float>(x[0]);
    }
  } catch (const std::exception& error) {
    std::cerr << "process " << world.process() << ": " << error.what() << "\n";
    return 3;
  }
  return 4;
}

// MPI takes one call at a time, also if the next begins on another device.
int KeepTheOrder(MpiWorld& world) {
  const Tensor first = TensorsOf(0, 1, 7)[0], then = TensorsOf(0, 2, 7)[1];
  bool early = false;
  {
    const StreamStall stall(CurrentStream(Cpu(0)));
    world.AllReduceAsync({&first, 1}, AllReduceAlgorithm::kSplit);
    world.AllReduceAsync({&then, 1}, AllReduceAlgorithm::kSplit).Wait();
    const Event end = CurrentStream(Cpu(1)).Record();
    const Timer timer;
    while (timer.Seconds() < 0.2 && !early) early = end.Query();
  }
  return !early && ToVector<float>(then)[0] == 2 * ValuesOf(1, 7)[0] ? 0 : 5;
}

int Ranks(const std::string& what) {
  const auto world = MpiWorld::Start(/*timeout_seconds=*/5).value();
  const std::vector<std::string> words = absl::StrSplit(what, ' ');
  int code = 0;
  if (words[0] == "compare") {
    code = CompareAlgorithms(*world, std::stoi(words[1])) == 0 ? 0 : 1;
  } else if (words[0] == "leave_out") {
    code = LeaveOutACall(*world);
  } else if (words[0] == "order") {
    code = KeepTheOrder(*world);
  } else {
    code = MeetAFault(*world, words[0]);
  }
  if (code != 0) MpiWorld::Abort(code);
  return 0;
}

// ---- In the test.

TEST(MpiWorldTest, ProcessesGetTheBitsOfOneProcess) {
  for (const auto& [processes, each] :
       {std::pair{1, 2}, {2, 1}, {3, 1}, {2, 3}, {4, 1}}) {
    const ProgramResult run = MpiRun(processes, absl::StrCat("compare ", each));
    EXPECT_EQ(run.exit_code, 0)
        << processes << " x " << each << ": " << run.output;
  }
}

TEST(MpiWorldTest, CallsKeepTheirOrderOnAnyDevices) {
  const ProgramResult run = MpiRun(2, "order");
  EXPECT_EQ(run.exit_code, 0) << run.output;
}

TEST(MpiWorldTest, AProcessThatStopsIsNamed) {
  const ProgramResult run = MpiRun(3, "stop");
  EXPECT_EQ(run.exit_code, 3) << run.output;
  EXPECT_FALSE(run.timed_out);
  EXPECT_THAT(run.output, HasSubstr("rank 1 has not answered for 5 s"));
  EXPECT_THAT(run.output, HasSubstr("ring, step "));
  EXPECT_THAT(run.output, HasSubstr("mpi_world_test.cc:"));
}

// It must not take messages of another call for its own.
TEST(MpiWorldTest, AProcessThatLeavesOutACallIsWaitedForInVain) {
  const ProgramResult run = MpiRun(2, "leave_out");
  EXPECT_EQ(run.exit_code, 3) << run.output;
  EXPECT_FALSE(run.timed_out);
  EXPECT_THAT(run.output, AllOf(HasSubstr(" has not answered for 5 s"),
                                Not(HasSubstr("MPI says"))));
}

TEST(MpiWorldTest, AProcessThatIsKilledEndsAll) {
  const ProgramResult run = MpiRun(3, "kill");
  EXPECT_NE(run.exit_code, 0) << run.output;
  EXPECT_FALSE(run.timed_out);
}

}  // namespace

int MainOfTest(int argc, char** argv) {
  if (!InitializeDevices("cpu:0,cpu:1,cpu:2,cpu:3,cpu:4,cpu:5").ok()) return 1;
  if (const char* const what = std::getenv("D2L_RANKS")) return Ranks(what);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace d2l

int main(int argc, char** argv) { return d2l::MainOfTest(argc, argv); }
