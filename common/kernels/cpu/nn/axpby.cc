#include <cstdint>

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

template <typename T>
void AxpbyAs(const AxpbyArgs& args) {
  constexpr std::int64_t kGrain = 32768;
  ParallelFor(
      args.numel, kGrain,
      AxpbyOf<T>{static_cast<T>(args.alpha), static_cast<T>(args.beta),
                 static_cast<T*>(args.out), static_cast<const T*>(args.x)});
}

void RunAxpby(const AxpbyArgs& args) {
  args.dtype == DType::kFloat64 ? AxpbyAs<double>(args) : AxpbyAs<float>(args);
}

}  // namespace HWY_NAMESPACE
}  // namespace d2l::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace d2l::kernels::cpu {

HWY_EXPORT(RunAxpby);

std::uint64_t Enqueue(CpuStream& stream, const OpLabel& label,
                      const AxpbyArgs& args) {
  return stream.Enqueue(label, [args] {
    HWY_DYNAMIC_DISPATCH(RunAxpby)(args);
  });
}

}  // namespace d2l::kernels::cpu

#endif  // HWY_ONCE
