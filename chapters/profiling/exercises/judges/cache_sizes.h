// Types of the exercise cache_sizes.

#ifndef D2L_CHAPTERS_PROFILING_EXERCISES_JUDGES_CACHE_SIZES_H_
#define D2L_CHAPTERS_PROFILING_EXERCISES_JUDGES_CACHE_SIZES_H_

#include <cstdint>

namespace d2l {

// A point of the latency curve: the time of a load when a program goes through
// this much memory in random order.
struct Latency {
  std::int64_t bytes;
  double nanoseconds;
};

}  // namespace d2l

#endif  // D2L_CHAPTERS_PROFILING_EXERCISES_JUDGES_CACHE_SIZES_H_
