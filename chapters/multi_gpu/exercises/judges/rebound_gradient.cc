// Judges rebound_gradient: what do those see who hold the same memory?

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/exercise/exercise.h"
#include "common/exercise/probes.h"
#include "common/lesson/language.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

using AllReduceBook = void(std::vector<Tensor>& data);

bool Close(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::abs(a[i] - b[i]) > 1e-4f * std::max(1.f, std::abs(b[i]))) {
      return false;
    }
  }
  return true;
}

void JudgeAllReduceBook(Judging& judging, AllReduceBook* answer) {
  std::vector<Device> all;
  for (const DeviceInfo& info : Devices()) all.push_back(info.device);
  for (std::size_t ranks = 1; ranks <= all.size(); ++ranks) {
    for (const std::size_t n : {5, 1001, 0}) {
      const std::string input =
          Say("%d numbers on each of %d devices", n, ranks);
      std::vector<std::vector<float>> own;
      std::vector<float> sum(n, 0.f);
      std::vector<Tensor> data;
      for (std::size_t i = 0; i < ranks; ++i) {
        own.push_back(RandomNumbers(n, static_cast<unsigned>(i + 1)));
        for (std::size_t k = 0; k < n; ++k) sum[k] += own[i][k];
        data.push_back(
            FromVector(own[i], {static_cast<std::int64_t>(n)}, all[i]));
      }
      const std::vector<Tensor> held = data;  // the same memory
      answer(data);
      for (std::size_t i = 0; i < ranks; ++i) {
        const std::vector<float> seen = ToVector<float>(held[i]);
        if (Close(seen, sum)) continue;
        std::string look = "A device's gradient was added more than once.";
        if (Close(ToVector<float>(data[i]), sum)) {
          look =
              "The sum is in data, but the network holds another handle to the "
              "memory that was there, and that did not change: `data[i] = y` "
              "binds the name to other memory. `+=` and CopyTo write.";
        } else if (Close(seen, own[i])) {
          look = Say("Device %d still has its own gradient.", i);
        }
        std::size_t k = 0;
        while (k + 1 < n && Close({seen[k]}, {sum[k]})) ++k;
        judging.Wrong(
            {input,
             Say("%g in the gradient of device %d, element %d", seen[k], i, k),
             absl::StrFormat("%g", sum[k]), look});
      }
    }
  }
}

D2L_JUDGE("rebound_gradient", JudgeAllReduceBook);

}  // namespace
}  // namespace d2l
