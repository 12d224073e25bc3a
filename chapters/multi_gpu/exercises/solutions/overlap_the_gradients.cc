// overlap_the_gradients: when has the last bucket arrived?
//
//   bazel run //:exercises -- overlap_the_gradients

#include "chapters/multi_gpu/exercises/judges/overlap_the_gradients.h"

#include <algorithm>
#include <vector>

#include "common/exercise/exercise.h"

namespace d2l {
namespace {

// Gradients are put into a bucket as they become ready. A bucket that has
// bucket_bytes or more is full and is sent, as one message; the last one is
// sent when there are no more gradients. The link carries one message at a
// time, while further gradients are computed. When has the last one arrived?
double Finish(const std::vector<Gradient>& gradients, double bucket_bytes,
              const GradientLink& link) {
  // SOLUTION
  double free = 0, bucket = 0, ready = 0;
  const auto send = [&] {
    if (bucket == 0) return;
    free =
        std::max(free, ready) + link.latency + bucket / link.bytes_per_second;
    bucket = 0;
  };
  for (const Gradient& gradient : gradients) {
    bucket += gradient.bytes;
    ready = gradient.ready;
    if (bucket >= bucket_bytes) send();
  }
  send();
  return free;
  // END
}

D2L_ANSWER("overlap_the_gradients", Finish);

}  // namespace
}  // namespace d2l
