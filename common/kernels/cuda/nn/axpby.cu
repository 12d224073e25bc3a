#include <cstdint>

#include "common/kernels/cuda/elementwise.cuh"
#include "common/kernels/cuda/launch.h"

namespace d2l::kernels::cuda {
namespace {

template <typename T>
struct Scale {
  T alpha;
  __device__ T operator()(std::int64_t, T x) const { return alpha * x; }
};

template <typename T>
struct ScaleAndAdd {
  T alpha, beta;
  __device__ T operator()(std::int64_t, T x, T y) const {
    return alpha * x + beta * y;
  }
};

}  // namespace

void Launch(const CudaLaunch& launch, const AxpbyArgs& args) {
  if (args.numel == 0) return;
  VisitFloat(args.dtype, [&](auto zero) {
    using T = decltype(zero);
    T* const out = static_cast<T*>(args.out);
    const ArrayOrNumber<T> x = {static_cast<const T*>(args.x), T{}};
    const T alpha = static_cast<T>(args.alpha);
    const T beta = static_cast<T>(args.beta);
    if (args.beta == 0) {
      LaunchContiguous(launch, Scale<T>{alpha}, args.numel, out, x);
    } else {
      LaunchContiguous(launch, ScaleAndAdd<T>{alpha, beta}, args.numel, out, x,
                       ArrayOrNumber<T>{out, T{}});
    }
  });
}

}  // namespace d2l::kernels::cuda
