#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/device/cpu/cpu_stream.h"
#include "common/device/cpu/parallel_for.h"
#include "common/kernels/cpu/vector_targets.h"
#include "common/kernels/enqueue.h"
#include "common/kernels/math.h"
#include "common/tensor/dtype.h"

// Compiles what follows once for each kind of vector.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/kernels/cpu/nn/cross_entropy.cc"
#include "hwy/foreach_target.h"
//
#include "common/kernels/cpu/reduce-inl.h"
#include "hwy/highway.h"

#ifndef D2L_COMMON_KERNELS_CPU_NN_CROSS_ENTROPY_CC_
#define D2L_COMMON_KERNELS_CPU_NN_CROSS_ENTROPY_CC_
namespace d2l::kernels::cpu {

// Throws unless all labels are classes.
inline void CheckLabels(const std::int64_t* labels, std::int64_t begin,
                        std::int64_t end, std::int64_t classes) {
  for (std::int64_t i = begin; i < end; ++i) {
    if (labels[i] >= 0 && labels[i] < classes) continue;
    throw std::out_of_range(absl::StrFormat(
        "label %d of sample %d is out of range; there are %d classes, from 0 "
        "on",
        labels[i], i, classes));
  }
}

}  // namespace d2l::kernels::cpu
#endif  // D2L_COMMON_KERNELS_CPU_NN_CROSS_ENTROPY_CC_

HWY_BEFORE_NAMESPACE();
namespace d2l::kernels::cpu {
namespace HWY_NAMESPACE {

// Samples at a time: then the loop that takes the time, that of Exp, is long
// even if there are few classes.
template <typename T>
std::int64_t SamplesAtOnce(std::int64_t classes) {
  return std::max<std::int64_t>(kBlock<T> / classes, 1);
}
inline std::int64_t SamplesGrain(std::int64_t classes) {
  constexpr std::int64_t kLogits = 4096;
  return kLogits / std::max<std::int64_t>(classes, 1) + 1;
}

// e = exp(x - max) of rows of n, and their maxima. NaN and infinity need no
// care: see softmax.cc.
template <typename T>
HWY_INLINE void ExpOfRows(T* HWY_RESTRICT e, T* HWY_RESTRICT maxima,
                          const T* HWY_RESTRICT x, std::int64_t rows,
                          std::int64_t n) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const T max = BlockFirst<Larger>(x + r * n, n);
    maxima[r] = max;
    for (std::int64_t i = r * n; i < (r + 1) * n; ++i) e[i] = x[i] - max;
  }
  for (std::int64_t i = 0; i < rows * n; ++i) e[i] = math::Exp(e[i]);
}

template <typename T>
HWY_INLINE T RowSum(const T* x, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; i += kBlock<T>) {
    sum += BlockSum(x + i, std::min(kBlock<T>, n - i));
  }
  return static_cast<T>(sum);
}

template <typename T>
struct CrossEntropyOf {
  CrossEntropyArgs args;

  HWY_FLATTEN void operator()(std::int64_t begin, std::int64_t end) const {
    CheckLabels(args.labels, begin, end, args.classes);
    const std::int64_t n = args.classes;
    const std::int64_t at_once = std::min(SamplesAtOnce<T>(n), end - begin);
    std::vector<T> e(static_cast<std::size_t>(at_once * n));
    std::vector<T> maxima(static_cast<std::size_t>(at_once));
    const T* const logits = static_cast<const T*>(args.logits);
    T* const out = static_cast<T*>(args.out);
    for (std::int64_t i = begin; i < end; i += at_once) {
      const std::int64_t rows = std::min(at_once, end - i);
      ExpOfRows(e.data(), maxima.data(), logits + i * n, rows, n);
      for (std::int64_t r = 0; r < rows; ++r) {
        const T x = logits[(i + r) * n + args.labels[i + r]];
        out[i + r] = math::Log(RowSum(e.data() + r * n, n)) - (x - maxima[r]);
      }
    }
  }
};

template <typename T>
struct CrossEntropyGradientOf {
  CrossEntropyArgs args;

  HWY_FLATTEN void operator()(std::int64_t begin, std::int64_t end) const {
    CheckLabels(args.labels, begin, end, args.classes);
    const std::int64_t n = args.classes;
    const std::int64_t at_once = std::min(SamplesAtOnce<T>(n), end - begin);
    std::vector<T> maxima(static_cast<std::size_t>(at_once));
    const T* const dy = static_cast<const T*>(args.dy);
    const T* const logits = static_cast<const T*>(args.logits);
    for (std::int64_t i = begin; i < end; i += at_once) {
      const std::int64_t rows = std::min(at_once, end - i);
      T* const out = static_cast<T*>(args.out) + i * n;
      ExpOfRows(out, maxima.data(), logits + i * n, rows, n);
      for (std::int64_t r = 0; r < rows; ++r) {
        T* const row = out + r * n;
        const T sum = RowSum(row, n);
        const T g = dy[i + r];
        const std::int64_t label = args.labels[i + r];
        const T at_label = (row[label] / sum - 1) * g;
        const T factor = g / sum;
        for (std::int64_t j = 0; j < n; ++j) row[j] *= factor;
        row[label] = at_label;
      }
    }
  }
};

template <typename T>
void RunAs(const CrossEntropyArgs& args) {
  const std::int64_t grain = SamplesGrain(args.classes);
  if (args.dy == nullptr) {
    ParallelFor(args.samples, grain, CrossEntropyOf<T>{args});
  } else {
    ParallelFor(args.samples, grain, CrossEntropyGradientOf<T>{args});
  }
}

void RunCrossEntropy(const CrossEntropyArgs& args) {
  args.dtype == DType::kFloat64 ? RunAs<double>(args) : RunAs<float>(args);
}

}  // namespace HWY_NAMESPACE
}  // namespace d2l::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace d2l::kernels::cpu {

HWY_EXPORT(RunCrossEntropy);

std::uint64_t Enqueue(CpuStream& stream, const OpLabel& label,
                      const CrossEntropyArgs& args) {
  return stream.Enqueue(label, [args] {
    HWY_DYNAMIC_DISPATCH(RunCrossEntropy)(args);
  });
}

}  // namespace d2l::kernels::cpu

#endif  // HWY_ONCE
