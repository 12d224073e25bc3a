// Loops that keep a core as busy as it can be, with the widest vectors that the
// processor has: what bounds all others.
//
//   std::int64_t flop = MultiplyAdd(1'000'000);
//   Triad(b, c, a, n, /*past_caches=*/true);  // 12 * n bytes
//
// Arrays are aligned to 64 bytes and do not overlap; n is a multiple of 64.
// Thread-safe.

#ifndef D2L_COMMON_PROFILER_PEAK_LOOPS_H_
#define D2L_COMMON_PROFILER_PEAK_LOOPS_H_

#include <cstddef>
#include <cstdint>

namespace d2l {

// Does n rounds of independent multiplications and additions; returns how many
// floating-point operations those were.
std::int64_t MultiplyAdd(std::int64_t n);

// a[i] = b[i] + 3 * c[i] (STREAM's triad). past_caches: writes without first
// reading what was there (non-temporal stores).
void Triad(const float* b, const float* c, float* a, std::size_t n,
           bool past_caches);

// A sum, so that all elements are read, in no useful order of addition.
float ReadAll(const float* from, std::size_t n);

// A copy with non-temporal stores.
void CopyPastCaches(const float* from, float* to, std::size_t n);

}  // namespace d2l

#endif  // D2L_COMMON_PROFILER_PEAK_LOOPS_H_
