#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/device/cpu/cpu_stream.h"
#include "common/device/cpu/parallel_for.h"
#include "common/kernels/cpu/vector_targets.h"
#include "common/kernels/enqueue.h"
#include "common/tensor/dtype.h"

// Compiles what follows once for each kind of vector.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/kernels/cpu/nn/axpby.cc"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace d2l::kernels::cpu {
namespace HWY_NAMESPACE {

template <typename T>
struct AxpbyOf {
  T alpha, beta;
  T* y;
  const T* x;

  void operator()(std::int64_t begin, std::int64_t end) const {
    const T a = alpha, b = beta;
    T* const to = y;
    const T* const from = x;
    if (b == 0) {
      D2L_INDEPENDENT
      for (std::int64_t i = begin; i < end; ++i) to[i] = a * from[i];
    } else if (b == 1) {
      D2L_INDEPENDENT
      for (std::int64_t i = begin; i < end; ++i) to[i] = to[i] + a * from[i];
    } else {
      D2L_INDEPENDENT
      for (std::int64_t i = begin; i < end; ++i) {
        to[i] = a * from[i] + b * to[i];
      }
    }
  }
};

// Weights are read next by products that one core computes, if they are small.
// With parts of 2^15 elements another core had written half of them: a step of
// a network of 164,000 weights took 1.4 times as long on two cores as on one.
constexpr std::int64_t kGrain = 1 << 18;

template <typename T>
void AxpbyAs(const AxpbyArgs& args) {
  ParallelFor(
      args.numel, kGrain,
      AxpbyOf<T>{static_cast<T>(args.alpha), static_cast<T>(args.beta),
                 static_cast<T*>(args.out), static_cast<const T*>(args.x)});
}

void RunAxpby(const AxpbyArgs& args) {
  args.dtype == DType::kFloat64 ? AxpbyAs<double>(args) : AxpbyAs<float>(args);
}

// The elements of all parts are numbered one after the other.
template <typename T>
void AxpbyListAs(const AxpbyListArgs& args) {
  std::int64_t numel = 0;
  for (const AxpbyPart& part : args.parts) numel += part.numel;
  const T alpha = static_cast<T>(args.alpha), beta = static_cast<T>(args.beta);
  ParallelFor(numel, kGrain, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t first = 0;
    for (const AxpbyPart& part : args.parts) {
      if (first >= end) return;
      const std::int64_t from = std::max<std::int64_t>(begin - first, 0);
      const std::int64_t to = std::min(end - first, part.numel);
      if (from < to) {
        AxpbyOf<T>{alpha, beta, static_cast<T*>(part.out),
                   static_cast<const T*>(part.x)}(from, to);
      }
      first += part.numel;
    }
  });
}

void RunAxpbyList(const AxpbyListArgs& args) {
  args.dtype == DType::kFloat64 ? AxpbyListAs<double>(args)
                                : AxpbyListAs<float>(args);
}

}  // namespace HWY_NAMESPACE
}  // namespace d2l::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace d2l::kernels::cpu {

HWY_EXPORT(RunAxpby);
HWY_EXPORT(RunAxpbyList);

std::uint64_t Enqueue(CpuStream& stream, const OpLabel& label,
                      const AxpbyArgs& args) {
  return stream.Enqueue(label, [args] {
    HWY_DYNAMIC_DISPATCH(RunAxpby)(args);
  });
}

std::uint64_t Enqueue(CpuStream& stream, const OpLabel& label,
                      const AxpbyListArgs& args) {
  std::vector<AxpbyPart> parts(args.parts.begin(), args.parts.end());
  return stream.Enqueue(label, [dtype = args.dtype, alpha = args.alpha,
                                beta = args.beta, parts = std::move(parts)] {
    HWY_DYNAMIC_DISPATCH(RunAxpbyList)({dtype, alpha, beta, parts});
  });
}

}  // namespace d2l::kernels::cpu

#endif  // HWY_ONCE
