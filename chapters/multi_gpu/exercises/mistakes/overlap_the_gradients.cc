#include "chapters/multi_gpu/exercises/judges/overlap_the_gradients.h"

#include <algorithm>
#include <vector>

#include "common/exercise/exercise.h"

namespace d2l {
namespace {

namespace one_after_the_other {
double Finish(const std::vector<Gradient>& gradients, double bucket_bytes,
              const GradientLink& link) {
  double time = 0, bucket = 0;
  for (const Gradient& gradient : gradients) {
    bucket += gradient.bytes;
    if (bucket < bucket_bytes) continue;
    time += link.latency + bucket / link.bytes_per_second;
    bucket = 0;
  }
  if (bucket > 0) time += link.latency + bucket / link.bytes_per_second;
  return gradients.empty() ? 0 : gradients.back().ready + time;
}
}  // namespace one_after_the_other

namespace all_at_once {
double Finish(const std::vector<Gradient>& gradients, double bucket_bytes,
              const GradientLink& link) {
  double last = 0, bucket = 0, ready = 0;
  for (const Gradient& gradient : gradients) {
    bucket += gradient.bytes;
    ready = gradient.ready;
    if (bucket < bucket_bytes) continue;
    last =
        std::max(last, ready + link.latency + bucket / link.bytes_per_second);
    bucket = 0;
  }
  if (bucket == 0) return last;
  return std::max(last, ready + link.latency + bucket / link.bytes_per_second);
}
}  // namespace all_at_once

namespace last_one_lost {
double Finish(const std::vector<Gradient>& gradients, double bucket_bytes,
              const GradientLink& link) {
  double free = 0, bucket = 0;
  for (const Gradient& gradient : gradients) {
    bucket += gradient.bytes;
    if (bucket < bucket_bytes) continue;
    free = std::max(free, gradient.ready) + link.latency +
           bucket / link.bytes_per_second;
    bucket = 0;
  }
  return free;
}
}  // namespace last_one_lost

namespace more_than_full {
double Finish(const std::vector<Gradient>& gradients, double bucket_bytes,
              const GradientLink& link) {
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
    if (bucket > bucket_bytes) send();
  }
  send();
  return free;
}
}  // namespace more_than_full

namespace sends_an_empty_bucket {
double Finish(const std::vector<Gradient>& gradients, double bucket_bytes,
              const GradientLink& link) {
  double free = 0, bucket = 0, ready = 0;
  const auto send = [&] {
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
}
}  // namespace sends_an_empty_bucket

namespace without_latency {
double Finish(const std::vector<Gradient>& gradients, double bucket_bytes,
              const GradientLink& link) {
  double free = 0, bucket = 0, ready = 0;
  const auto send = [&] {
    if (bucket == 0) return;
    free = std::max(free, ready) + bucket / link.bytes_per_second;
    bucket = 0;
  };
  for (const Gradient& gradient : gradients) {
    bucket += gradient.bytes;
    ready = gradient.ready;
    if (bucket >= bucket_bytes) send();
  }
  send();
  return free;
}
}  // namespace without_latency

namespace never_above_the_size {
double Finish(const std::vector<Gradient>& gradients, double bucket_bytes,
              const GradientLink& link) {
  double free = 0, bucket = 0, ready = 0;
  const auto send = [&] {
    if (bucket == 0) return;
    free =
        std::max(free, ready) + link.latency + bucket / link.bytes_per_second;
    bucket = 0;
  };
  for (const Gradient& gradient : gradients) {
    if (bucket + gradient.bytes > bucket_bytes) send();
    bucket += gradient.bytes;
    ready = gradient.ready;
  }
  send();
  return free;
}
}  // namespace never_above_the_size

D2L_MISTAKE("overlap_the_gradients", one_after_the_other, Finish,
            "while gradients are computed");
D2L_MISTAKE("overlap_the_gradients", all_at_once, Finish,
            "one message at a time");
D2L_MISTAKE("overlap_the_gradients", last_one_lost, Finish, "never gets full");
D2L_MISTAKE("overlap_the_gradients", more_than_full, Finish,
            "exactly bucket_bytes");
D2L_MISTAKE("overlap_the_gradients", sends_an_empty_bucket, Finish,
            "an empty bucket");
D2L_MISTAKE("overlap_the_gradients", without_latency, Finish,
            "takes the latency, and its bytes");
D2L_MISTAKE("overlap_the_gradients", never_above_the_size, Finish,
            "is still put into it");

}  // namespace
}  // namespace d2l
