#include "common/exercise/kernel_run.h"

#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/exercise/exercise.h"
#include "common/exercise/gpu_run.h"
#include "common/kernels/cuda/fake/words.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using ::testing::HasSubstr;

__global__ void Times(float* y, const float* x, int n, double factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = static_cast<float>(factor * x[i]);
}

void JudgeTimes(Judging& judging,
                void (*answer)(float*, const float*, int, double)) {
  for (const int n : {5, 70}) {
    CheckedArray<float> x(n), y(n);
    const std::vector<float> before(x.begin(), x.end());
    std::vector<float> expected;
    for (const float number : before) expected.push_back(-1.5f * number);
    KernelRun run(judging, "the input");
    run.Launch(answer, dim3(3), dim3(32), y.data(), x.data(), n, -1.5);
    run.ExpectRight(y, expected, 0, "the look");
  }
}

D2L_ANSWER("times", Times);
D2L_JUDGE("times", JudgeTimes);

// ---- In place of a GPU.

enum class Gpu { kRight, kWrong, kFails, kNone } gpu;
int runs;

// The array at whose beginning the pointer is.
float* ArrayOf(GpuRun& run, std::size_t argument) {
  EXPECT_TRUE(run.arguments[argument].is_pointer);
  const auto begin =
      reinterpret_cast<const char*>(run.arguments[argument].bits);
  for (GpuRun::Array& array : run.arrays) {
    if (array.begin == begin) {
      return reinterpret_cast<float*>(array.bytes.data());
    }
  }
  throw std::logic_error("no such array");
}

std::string Run(GpuRun& run) {
  ++runs;
  if (gpu == Gpu::kNone) return "";
  if (gpu == Gpu::kFails) throw std::runtime_error("Model: too many registers");
  EXPECT_EQ(run.kernel, &runs);
  EXPECT_THAT(run.blocks, testing::ElementsAre(3, 1, 1));
  EXPECT_THAT(run.threads, testing::ElementsAre(32, 1, 1));
  float* const y = ArrayOf(run, 0);
  const float* const x = ArrayOf(run, 1);
  const auto n = static_cast<int>(run.arguments[2].bits);
  double factor;
  std::memcpy(&factor, &run.arguments[3].bits, sizeof factor);
  for (int i = 0; i < n; ++i) {
    EXPECT_EQ(y[i], x[i]);  // as before the kernel ran on the model
    y[i] = static_cast<float>(factor * x[i]);
  }
  if (gpu == Gpu::kWrong) y[n - 1] += 1;
  return "Model 1";
}

const bool registered =
    GpuKernels().emplace(__FILE__, GpuKernel{&runs, Run}).second;

Judged JudgeWith(Gpu with) {
  gpu = with;
  runs = 0;
  return JudgeAnswer(Answers().at(0), /*timed=*/false);
}

TEST(KernelRun, RunsARightKernelOnAGpuToo) {
  ASSERT_TRUE(registered);
  const Judged judged = JudgeWith(Gpu::kRight);
  EXPECT_EQ(judged.text, "RIGHT\n  It ran on Model 1, too.\n");
  EXPECT_EQ(runs, 2);
}

TEST(KernelRun, SaysWhatIsWrongOnAGpu) {
  const Judged wrong = JudgeWith(Gpu::kWrong);
  EXPECT_EQ(wrong.verdict, ExerciseVerdict::kWrong);
  EXPECT_THAT(wrong.text, HasSubstr("the input, Model 1"));
  EXPECT_THAT(wrong.text, HasSubstr("-6.5 at index 4"));
  const Judged fails = JudgeWith(Gpu::kFails);
  EXPECT_EQ(fails.verdict, ExerciseVerdict::kWrong);
  EXPECT_THAT(fails.text, HasSubstr("Model: too many registers"));
}

TEST(KernelRun, NeedsNoGpu) {
  EXPECT_EQ(JudgeWith(Gpu::kNone).text, "RIGHT\n");
}

}  // namespace
}  // namespace d2l
