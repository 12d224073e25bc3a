#include <algorithm>
#include <vector>

#include "common/exercise/exercise.h"

namespace d2l {
namespace {

namespace the_rest_is_lost {
std::vector<int> ShardSizes(int samples, int devices) {
  return std::vector<int>(devices, samples / devices);
}
}  // namespace the_rest_is_lost

namespace rounds_up {
std::vector<int> ShardSizes(int samples, int devices) {
  return std::vector<int>(devices, (samples + devices - 1) / devices);
}
}  // namespace rounds_up

namespace the_rest_for_the_last {
std::vector<int> ShardSizes(int samples, int devices) {
  std::vector<int> sizes(devices, samples / devices);
  sizes.back() += samples % devices;
  return sizes;
}
}  // namespace the_rest_for_the_last

namespace what_is_left_for_the_last {
std::vector<int> ShardSizes(int samples, int devices) {
  const int each = (samples + devices - 1) / devices;
  std::vector<int> sizes(devices, each);
  sizes.back() = samples - (devices - 1) * each;
  return sizes;
}
}  // namespace what_is_left_for_the_last

namespace busy_devices_only {
std::vector<int> ShardSizes(int samples, int devices) {
  std::vector<int> sizes(std::min(samples, devices));
  for (int i = 0; i < samples; ++i) ++sizes[i % devices];
  return sizes;
}
}  // namespace busy_devices_only

D2L_MISTAKE("split_the_batch", the_rest_is_lost, ShardSizes, "rounded down");
D2L_MISTAKE("split_the_batch", rounds_up, ShardSizes, "rounded up");
D2L_MISTAKE("split_the_batch", the_rest_for_the_last, ShardSizes,
            "as long as the device with the most");
D2L_MISTAKE("split_the_batch", what_is_left_for_the_last, ShardSizes,
            "more samples than there are");
D2L_MISTAKE("split_the_batch", busy_devices_only, ShardSizes,
            "one size for each device");

}  // namespace
}  // namespace d2l
