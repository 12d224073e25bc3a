// KernelRun: one launch of a learner's kernel under the check of kernels, for
// judges. It reports in this order: findings of the check, even if the values
// are right by chance; wrong values; where there is a GPU, and nvcc has
// compiled the kernel, wrong values there; and inefficient requests of memory.
//
//   CheckedArray<float> y(n);
//   KernelRun run(judging, Say("%d numbers", n));
//   run.Launch(answer, {blocks}, {threads}, y.data(), n);
//   run.ExpectRight(y, expected, 1e-6, "Each number is doubled.");
//   run.ExpectCoalesced("Let neighbours read neighbours.");
//
// A KernelRun quotes lines of the learner's file if bazel run started the
// program, as //:exercises does, or if it runs in the workspace. For one
// thread.

#ifndef D2L_COMMON_EXERCISE_KERNEL_RUN_H_
#define D2L_COMMON_EXERCISE_KERNEL_RUN_H_

#include <algorithm>
#include <any>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/exercise/exercise.h"
#include "common/exercise/gpu_run.h"
#include "common/kernels/cuda/fake/check.h"
#include "common/kernels/cuda/fake/checked_array.h"
#include "common/kernels/cuda/fake/grid.h"

namespace d2l {

using kernels::cuda::CheckedArray;
using kernels::cuda::Finding;
using kernels::cuda::FindingKind;

// What a launch asks of a GPU.
struct KernelFigures {
  double sectors_a_load = 0, sectors_a_store = 0;  // of global memory
  double atomics = 0;                              // of all threads
  double accesses = 0;  // of the thread that has the most
};

class KernelRun {
 public:
  // The hint for a finding; "" for the usual hint.
  using Advice = std::function<std::string(const Finding& finding)>;

  // `input` is a translated text, shown if the kernel is wrong.
  KernelRun(Judging& judging, std::string input)
      : judging_(judging), input_(std::move(input)) {}

  // Runs the kernel in three orders of its threads. Throws NotDone.
  template <typename... P, typename... A>
  void Launch(void (*kernel)(P...), dim3 blocks, dim3 threads, A... args) {
    for (const Answer& answer : Answers()) {
      const auto* const own = std::any_cast<void (*)(P...)>(&answer.function);
      if (own == nullptr || *own != kernel) continue;
      KeepForGpu(answer.file, blocks, threads,
                 {AsArgument(static_cast<P>(args))...});
    }
    LaunchGrid(reinterpret_cast<const void*>(kernel),
               {blocks, threads, [=] { kernel(args...); }, kDynamicShared});
  }

  // Calls Wrong if the check found something, or unless AllClose; also for a
  // GPU's values, which the arrays then have.
  template <typename T>
  void ExpectRight(CheckedArray<T>& got, const std::vector<T>& expected,
                   double tolerance, const std::string& look,
                   const Advice& advice = nullptr) {
    const std::vector<float> right(expected.begin(), expected.end());
    const auto numbers = [&got] {
      return std::vector<float>(got.begin(), got.end());
    };
    ExpectRight(numbers(), right, tolerance, look, advice);
    const std::string gpu = RunOnGpu();
    if (gpu.empty()) return;
    judging_.ExpectClose(input_ + ", " + gpu, numbers(), right, tolerance,
                         look);
  }

  // Calls Wrong if fewer than half of the lanes take part in the requests of
  // global memory.
  void ExpectBusyLanes(const std::string& look) const;
  // Calls Wrong if a line's requests touch more than 1.25 times as many sectors
  // of global memory as their bytes fill; `look` is told whether it writes.
  void ExpectCoalesced(
      const std::function<std::string(bool writes)>& look) const;
  void ExpectCoalesced(const std::string& look) const {
    ExpectCoalesced([&look](bool) { return look; });
  }
  // Calls Wrong if bank conflicts of shared memory delay the requests of a
  // line, by more than `allowed` repetitions of each; `look` receives their
  // number.
  void ExpectNoConflicts(const std::function<std::string(double repeats)>& look,
                         double allowed = 0) const;

  // Calls Wrong if one thread has more accesses to memory than this: it does
  // what others could do at the same time.
  void ExpectShortThreads(std::int64_t accesses, const std::string& look) const;

  // Notes the figures of this launch beside those of the solution: how far is
  // a right kernel from a good one?
  void NoteFigures(const KernelFigures& solution) const;

  // Counts accesses of global memory by all threads of the first 16 blocks.
  std::int64_t GlobalAccesses(bool writes) const;

  // Calls the judge's Wrong, for a reason of the judge's own.
  [[noreturn]] void Wrong(const std::string& got, const std::string& expected,
                          const std::string& look) const;

 private:
  template <typename T>
  static GpuRun::Argument AsArgument(T value) {
    static_assert(sizeof(T) <= sizeof(GpuRun::Argument::bits));
    GpuRun::Argument argument;
    std::memcpy(&argument.bits, &value, sizeof(T));
    argument.is_pointer = std::is_pointer_v<T>;
    return argument;
  }
  // Keeps the arrays' current values if nvcc has compiled the file's kernel.
  void KeepForGpu(const std::string& file, dim3 blocks, dim3 threads,
                  std::vector<GpuRun::Argument> arguments);
  // Returns the GPU's name, or "" if it did not run there.
  std::string RunOnGpu();
  void LaunchGrid(const void* kernel, const kernels::cuda::Grid& grid);
  void ExpectRight(const std::vector<float>& got,
                   const std::vector<float>& expected, double tolerance,
                   const std::string& look, const Advice& advice) const;
  [[noreturn]] void WrongBy(const Finding& finding, bool right,
                            const Advice& advice) const;

  Judging& judging_;
  const std::string input_;
  GpuRun gpu_;
  std::string (*run_on_gpu_)(GpuRun&) = nullptr;
  kernels::cuda::CheckReport report_;
};

// Fills an array with numbers.
template <typename T>
void Fill(CheckedArray<T>& array, const std::vector<T>& numbers) {
  std::copy(numbers.begin(), numbers.end(), array.begin());
}

}  // namespace d2l

#endif  // D2L_COMMON_EXERCISE_KERNEL_RUN_H_
