// What nvcc makes of CUDA code, run by the interpreter behind the runtime's
// functions; and faults in kernels and in host code, which it must find.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ptx/compiled_testing.h"
#include "tests/ptx/report.h"

namespace d2l::ptx {
namespace {

using testing::Each;
using testing::ElementsAre;

// Memory of the current GPU; freed when the process ends.
template <typename T>
T* OnGpu(const std::vector<T>& values) {
  void* data = nullptr;
  EXPECT_EQ(cudaMalloc(&data, values.size() * sizeof(T)), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(data, values.data(), values.size() * sizeof(T),
                       cudaMemcpyHostToDevice),
            cudaSuccess);
  return static_cast<T*>(data);
}
template <typename T>
std::vector<T> FromGpu(const T* data, std::size_t count) {
  std::vector<T> values(count);
  EXPECT_EQ(cudaMemcpy(values.data(), data, count * sizeof(T),
                       cudaMemcpyDeviceToHost),
            cudaSuccess);
  return values;
}

TEST(CompiledTest, PassesParametersOfAllKinds) {
  int* const out = OnGpu(std::vector<int>(4));
  const Mixed mixed = {{1, 2, 3, 4, 5}, 21.5, 7};
  LaunchParameters(out, mixed, -3, 1000,
                   OnGpu(std::vector<int>{10, 20, 30, 40}), 3);
  EXPECT_THAT(FromGpu(out, 4), ElementsAre(4, 43, 1004, 40));
}

TEST(CompiledTest, RunsWarpFunctions) {
  auto* const out = OnGpu(std::vector<unsigned>(256));
  LaunchWarpFunctions(out);
  const std::vector<unsigned> got = FromGpu(out, 256);
  for (unsigned t = 0; t < 64; ++t) {
    unsigned sum = 0, ballot = 0;
    for (unsigned lane = 0; lane < 32; ++lane) {
      const unsigned u = t / 32 * 32 + lane;
      sum += 3 * u + 1;
      ballot |= (u % 3 == 0 ? 1u : 0u) << lane;
    }
    EXPECT_EQ(got[t], sum) << t;
    EXPECT_EQ(got[64 + t], t % 8 >= 3 ? t - 3 : t) << t;
    EXPECT_EQ(got[128 + t], ballot) << t;
    EXPECT_EQ(got[192 + t], t % 2 == 0 ? t / 32 * 32 + 2 : t) << t;
  }
}

TEST(CompiledTest, CallsFunctions) {
  std::vector<double> in(300);
  std::iota(in.begin(), in.end(), -7.5);
  double* const out = OnGpu(in);
  LaunchCalls(out, OnGpu(in), 300);
  const std::vector<double> got = FromGpu(out, 300);
  for (int i = 0; i < 300; ++i) EXPECT_EQ(got[i], Slow(in[i], i % 8)) << i;
}

TEST(CompiledTest, AddsAtomically) {
  std::vector<int> in, counts(16);
  for (int i = 0; i < 1000; ++i) {
    in.push_back(i * i % 37);
    ++counts[in.back() & 15];
  }
  int* const out = OnGpu(std::vector<int>(16));
  float* const sum = OnGpu(std::vector<float>(1));
  auto* const largest = OnGpu(std::vector<unsigned long long>(1));
  LaunchAtomics(out, sum, largest, OnGpu(in), 1000);
  EXPECT_EQ(FromGpu(out, 16), counts);
  EXPECT_THAT(FromGpu(sum, 1), ElementsAre(500));
  EXPECT_THAT(FromGpu(largest, 1), ElementsAre(36ull << 33));
}

TEST(CompiledTest, ComputesAsTheHost) {
  const double x = 2.718281828;
  const std::int64_t z = -1234567890123;
  double* const out = OnGpu(std::vector<double>(256));
  LaunchMath(out, x, z);
  const std::vector<double> got = FromGpu(out, 256);
  const auto f = static_cast<float>(x);
  for (int t = 0; t < 32; ++t) {
    const double exponential = std::exp(static_cast<double>(f + t));
    EXPECT_NEAR(got[t], exponential, exponential * 2.4e-7) << t;
    EXPECT_EQ(got[32 + t], f / (t + 3)) << t;
    EXPECT_DOUBLE_EQ(got[64 + t], std::exp(x + t)) << t;
    EXPECT_DOUBLE_EQ(got[96 + t], std::log(x + t)) << t;
    EXPECT_DOUBLE_EQ(got[128 + t], std::pow(x, t + 0.5)) << t;
    EXPECT_EQ(got[160 + t], std::fma(x, t + 0.1, -x)) << t;
    EXPECT_EQ(got[192 + t], z / (t + 1) - z % (t + 7)) << t;
    EXPECT_EQ(got[224 + t], std::trunc(x * t * -1.5)) << t;
  }
}

TEST(CompiledTest, HasDynamicSharedMemory) {
  std::vector<int> in(64);
  std::iota(in.begin(), in.end(), 5);
  int* const data = OnGpu(in);
  LaunchReverse(data);
  const std::vector<int> got = FromGpu(data, 64);
  EXPECT_TRUE(std::equal(got.begin(), got.end(), in.rbegin()));
}

TEST(CompiledTest, FillsNewMemoryWithNan) {
  void* data = nullptr;
  ASSERT_EQ(cudaMalloc(&data, 64), cudaSuccess);
  EXPECT_THAT(FromGpu(static_cast<const unsigned char*>(data), 64), Each(0xff));
  cudaFree(data);
}

TEST(CompiledTest, LetsKernelsUseMemoryOfPeers) {
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  int* const data = OnGpu(std::vector<int>(64));
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  ASSERT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaSuccess);
  LaunchBeyond(data, 5);
  EXPECT_EQ(FromGpu(data, 64)[5], 1);
}

TEST(CompiledTest, FindsNothingWrong) { EXPECT_EQ(TakeFindings().size(), 0u); }

// ---- Faults. Each in a process of its own: most lose the context.

struct FaultCase {
  const char* name;
  std::function<void()> run;
  int error;  // what the next wait, or the call, returns
  const char* finding;
};

int* Numbers() { return OnGpu(std::vector<int>(64)); }

cudaError_t last_call = cudaSuccess;

const std::vector<FaultCase>& FaultCases() {
  static const auto& cases = *new std::vector<FaultCase>{
      // In kernels.
      {"MisalignedVector",
       [] { LaunchMisaligned(OnGpu(std::vector<float>(64))); },
       cudaErrorMisalignedAddress, "reads 16 bytes at the misaligned address"},
      {"BeyondAllocation", [] { LaunchBeyond(Numbers(), 64); },
       cudaErrorIllegalAddress, "byte 256 of an allocation of 256"},
      // Whole pages, with other allocations beside them.
      {"BeyondPages",
       [] {
         std::vector<int*> pages;
         for (int i = 0; i < 8; ++i) {
           pages.push_back(OnGpu(std::vector<int>(1024)));
         }
         LaunchBeyond(pages[4], 1024);
       },
       cudaErrorIllegalAddress, "byte 4096 of an allocation of 4096"},
      {"BeforeAllocation", [] { LaunchBeyond(Numbers(), -1); },
       cudaErrorIllegalAddress, "in no allocation"},
      {"NullPointer", [] { LaunchNull(); }, cudaErrorIllegalAddress,
       "writes 4 bytes at 0x0, in no allocation"},
      {"BeyondSharedMemory", [] { LaunchSharedBeyond(Numbers(), 8); },
       cudaErrorIllegalAddress, "byte 32 of shared memory, which has 32"},
      {"OtherDevicesMemory",
       [] {
         cudaSetDevice(1);
         int* const data = Numbers();
         cudaSetDevice(0);
         LaunchBeyond(data, 0);
       },
       cudaErrorIllegalAddress, "in no allocation that the GPU can use"},
      {"MissingBarrier", [] { LaunchMissingBarrier(Numbers()); }, 0,
       "reads what another thread writes at tests/ptx/compiled_testing.cu:"},
      {"UnwrittenSharedMemory", [] { LaunchUnwritten(Numbers()); }, 0,
       "reads shared memory that nobody wrote"},
      {"LostBarrier", [] { LaunchLostBarrier(Numbers()); }, 0,
       "wait at different barriers"},
      {"WrongMask", [] { LaunchWrongMask(Numbers()); }, 0,
       "lanes that do not come, tests/ptx/compiled_testing.cu:"},
      {"AbsentLane", [] { LaunchAbsentLane(Numbers()); }, 0,
       "reads a lane that takes no part"},
      {"EndlessLoop",
       [] {
         Settings settings = TheSettings();
         settings.most_steps = 10000;
         SetSettings(settings);
         LaunchEndless(Numbers());
       },
       cudaErrorLaunchTimeout, "does not end"},
      {"Trap", [] { LaunchTrap(); }, cudaErrorLaunchFailure, "executes a trap"},
      // In host code.
      {"LaunchTooLarge",
       [] {
         LaunchTooLarge(Numbers(), 65);
         last_call = cudaGetLastError();
       },
       cudaErrorLaunchOutOfResources, "__launch_bounds__ allows 64 threads"},
      {"EmptyGrid",
       [] {
         LaunchEmptyGrid(Numbers());
         last_call = cudaGetLastError();
       },
       cudaErrorInvalidConfiguration, "the grid is empty"},
      {"TooMuchSharedMemory",
       [] {
         LaunchTooMuchShared(Numbers());
         last_call = cudaGetLastError();
       },
       cudaErrorInvalidValue, "ReverseKernel is refused: too much shared"},
      {"CopyBeyondAllocation",
       [] {
         std::vector<int> host(65);
         last_call = cudaMemcpy(Numbers(), host.data(), 65 * sizeof(int),
                                cudaMemcpyHostToDevice);
       },
       cudaErrorInvalidValue,
       "a copy of 260 bytes at byte 0 of an allocation of 256"},
      {"CopyFromFreedMemory",
       [] {
         int* const data = Numbers();
         cudaFree(data);
         int host = 0;
         last_call =
             cudaMemcpy(&host, data, sizeof(host), cudaMemcpyDeviceToHost);
       },
       cudaErrorInvalidValue, "a copy from a GPU, with an address that is in"},
      {"MemsetBeyondAllocation",
       [] { last_call = cudaMemset(Numbers(), 0, 65 * sizeof(int)); },
       cudaErrorInvalidValue,
       "cudaMemset of 260 bytes at byte 0 of an allocation of 256"},
      {"OtherDevicesStream",
       [] {
         cudaStream_t stream = nullptr;
         cudaEvent_t event = nullptr;
         cudaSetDevice(1);
         cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
         cudaSetDevice(0);
         cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
         last_call = cudaEventRecord(event, stream);
       },
       cudaErrorInvalidResourceHandle, "with another current device"},
      {"OtherDevicesGraph",
       [] {
         cudaStream_t stream = nullptr;
         cudaGraph_t graph = nullptr;
         cudaGraphExec_t ready = nullptr;
         cudaSetDevice(1);
         cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
         cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
         cudaStreamEndCapture(stream, &graph);
         cudaGraphInstantiateWithFlags(&ready, graph, 0);
         cudaSetDevice(0);
         cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
         last_call = cudaGraphLaunch(ready, stream);
       },
       cudaErrorInvalidValue, "a launch of a graph that the GPU does not have"},
      {"FreedTwice",
       [] {
         int* const data = Numbers();
         cudaFree(data);
         last_call = cudaFree(data);
       },
       cudaErrorInvalidValue, "freed that was not allocated"},
      {"CallInHostFunction",
       [] {
         cudaLaunchHostFunc(
             nullptr, [](void*) { last_call = cudaSetDevice(0); }, nullptr);
         cudaDeviceSynchronize();
       },
       cudaErrorNotPermitted, "SetDevice in a host function"},
      {"UseAfterFree",
       [] {
         int* const data = Numbers();
         cudaFree(data);
         Numbers();  // does not get the same address
         LaunchBeyond(data, 0);
       },
       cudaErrorIllegalAddress, "in no allocation"},
  };
  return cases;
}

class FaultTest : public testing::TestWithParam<FaultCase> {};

TEST_P(FaultTest, IsFound) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const FaultCase& fault = GetParam();
  const auto run = [&] {
    fault.run();
    const cudaError_t waited = cudaDeviceSynchronize();
    if (waited != fault.error && last_call != fault.error) {
      std::fprintf(stderr, "other errors: %d, %d\n", waited, last_call);
      std::_Exit(1);
    }
    std::exit(0);  // findings make another code of it
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(kExitCodeOfFindings),
              fault.finding);
}

INSTANTIATE_TEST_SUITE_P(All, FaultTest, testing::ValuesIn(FaultCases()),
                         [](const testing::TestParamInfo<FaultCase>& info) {
                           return std::string(info.param.name);
                         });

}  // namespace
}  // namespace d2l::ptx
