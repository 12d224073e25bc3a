#include "chapters/profiling/kernel_requests.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/kernels/cuda/fake/check.h"
#include "common/kernels/cuda/fake/checked_array.h"
#include "common/kernels/cuda/fake/grid.h"

namespace d2l::profiling {

using kernels::cuda::CheckedArray;

float Element(int row, int column) {
  return static_cast<float>((3 * row + 5 * column) % 11);
}

WarpLoads LoadsOf(SumKernel kernel, int n) {
  constexpr int kThreads = 64, kSectorBytes = 32;
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
    for (const std::int64_t offset : r.first) {
      loads.first.push_back(static_cast<int>(offset / kSectorBytes));
    }
  }
  loads.sums.assign(sums.begin(), sums.end());
  return loads;
}

std::string SectorsByLane(const std::vector<int>& sectors) {
  constexpr std::size_t kGroups = 4;
  std::string text;
  std::size_t begin = 0;
  for (std::size_t group = 0; begin < sectors.size(); ++group) {
    const auto end = std::find_if(
        sectors.begin() + static_cast<std::ptrdiff_t>(begin), sectors.end(),
        [&](int sector) { return sector != sectors[begin]; });
    const std::size_t last = end - sectors.begin() - 1;
    if (group == kGroups) return text + ", ...";
    if (group > 0) text += ", ";
    text += begin == last
                ? absl::StrFormat("%d: %d", begin, sectors[begin])
                : absl::StrFormat("%d-%d: %d", begin, last, sectors[begin]);
    begin = last + 1;
  }
  return text;
}

}  // namespace d2l::profiling
