// Judges split_the_batch: is each sample on one device, and each device as busy
// as the others?

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "common/base/console/language.h"
#include "common/exercise/exercise.h"
#include "common/exercise/probes.h"

namespace d2l {
namespace {

using ShardSizes = std::vector<int>(int samples, int devices);

void JudgeOne(const Judging& judging, ShardSizes* answer, int samples,
              int devices) {
  const std::vector<int> sizes = answer(samples, devices);
  const auto wrong = [&](const std::string& expected, const char* look) {
    judging.Wrong({Say("%d samples, %d devices", samples, devices),
                   Say("the sizes %s", absl::StrJoin(sizes, ", ")), expected,
                   look});
  };
  if (sizes.size() != static_cast<std::size_t>(devices)) {
    wrong(Say("%d sizes", devices),
          "Return one size for each device: 0 for a device that gets nothing.");
  }
  const int least = *std::min_element(sizes.begin(), sizes.end());
  const int most = *std::max_element(sizes.begin(), sizes.end());
  if (least < 0) {
    wrong("0 or more for each device",
          "The other devices got more samples than there are.");
  }
  const int sum = std::accumulate(sizes.begin(), sizes.end(), 0);
  if (sum != samples) {
    wrong(Say("%d samples together", samples),
          sum < samples
              ? "samples / devices is rounded down, and the rest is lost: "
                "samples % devices of them."
              : "If the division is rounded up for all devices, some samples "
                "are counted twice.");
  }
  if (most > least + 1) {
    wrong("no device has more than one sample more than another",
          "A step takes as long as the device with the most samples: give one "
          "more to each of the first samples % devices devices, not all to one "
          "device.");
  }
}

void JudgeShardSizes(Judging& judging, ShardSizes* answer) {
  JudgeOne(judging, answer, 256, 4);
  JudgeOne(judging, answer, 11, 4);
  JudgeOne(judging, answer, 3, 5);
  JudgeOne(judging, answer, 7, 1);
  JudgeOne(judging, answer, 0, 2);
  for (int i = 0; i < 30; ++i) {
    JudgeOne(judging, answer, static_cast<int>(Drawn(0, 2000)),
             static_cast<int>(Drawn(1, 40)));
  }
}

D2L_JUDGE("split_the_batch", JudgeShardSizes);

}  // namespace
}  // namespace d2l
