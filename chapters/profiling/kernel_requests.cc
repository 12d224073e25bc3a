#include "chapters/profiling/kernel_requests.h"

#include <cstddef>

#include "common/kernels/cuda/fake/check.h"
#include "common/kernels/cuda/fake/checked_array.h"
#include "common/kernels/cuda/fake/grid.h"

namespace d2l::profiling {

using kernels::cuda::CheckedArray;

float Element(int row, int column) {
  return static_cast<float>((3 * row + 5 * column) % 11);
}

WarpLoads LoadsOf(SumKernel kernel, int n) {
  constexpr int kThreads = 64;
  CheckedArray<float> x(std::size_t{1} * n * n), sums(n);
  for (int i = 0; i < n * n; ++i) x.data()[i] = Element(i / n, i % n);
  float* const to = sums.data();
  const float* const from = x.data();
  const unsigned blocks = (n + kThreads - 1) / kThreads;
  kernels::cuda::CheckedRun(reinterpret_cast<const void*>(kernel),
                            {blocks, kThreads, [=] { kernel(to, from, n); }},
                            kernels::cuda::FindCheckedArray);
  WarpLoads loads;
  for (const kernels::cuda::Requests& r :
       kernels::cuda::TakeCheckReport().requests) {
    if (r.writes) continue;
    loads.requests += r.requests;
    loads.bytes += r.lanes * r.bytes;
    loads.sectors += r.sectors;
    loads.first = r.first;
  }
  loads.sums.assign(sums.begin(), sums.end());
  return loads;
}

}  // namespace d2l::profiling
