// Judges compile_once: by a net that counts how often its statements run.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/console/language.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/exercise/exercise.h"
#include "common/exercise/probes.h"
#include "common/nn/layers.h"
#include "common/nn/module.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

using CallAll = std::vector<Tensor>(nn::Sequential net,
                                    const std::vector<Tensor>& xs);

class Counting : public nn::Module {
 public:
  explicit Counting(int* runs) : runs_(runs) {}
  Tensor Forward(const Tensor& x) override {
    ++*runs_;
    return Tanh(x) * 2;
  }
  std::string Name() const override { return "Counting"; }

 private:
  int* runs_;
};

void JudgeCallAll(Judging& judging, CallAll* answer) {
  const Device device = TryGpu();
  for (const std::size_t n : {5, 1, 0}) {
    int runs = 0;
    nn::Sequential net(Counting(&runs), nn::Linear(4, 3));
    nn::To(net, device);
    std::vector<Tensor> xs;
    std::vector<std::vector<float>> expected;
    for (std::size_t i = 0; i < n; ++i) {
      xs.push_back(FromVector(RandomNumbers(8, i + 1), {2, 4}, device));
      expected.push_back(ToVector<float>(net(xs[i])));
    }
    runs = 0;
    const std::vector<Tensor> got = answer(std::move(net), xs);
    const std::string input = Say("%d inputs of one shape", n);
    if (got.size() != n) {
      judging.Wrong({input, Say("%d results", got.size()),
                     absl::StrFormat("%d", n),
                     "One result for each x, in the order of the xs."});
    }
    for (std::size_t i = 0; i < n; ++i) {
      const std::vector<float> values = ToVector<float>(got[i]);
      judging.ExpectClose(
          Say("%d inputs, number %d", n, i), values, expected[i], 1e-5,
          values == ToVector<float>(xs[i])
              ? "That is x itself: std::move has taken the layers out of the "
                "net, and it can be compiled once only. Do that before the "
                "loop."
              : "Each x has a result of its own: call the compiled net with "
                "it.");
    }
    if (runs <= 1) continue;
    judging.Wrong({input, Say("the net's statements ran %d times", runs),
                   "once, in the first call",
                   "net(x) runs statement by statement, every time. Call what "
                   "nn::Hybridize returns instead."});
  }
}

D2L_JUDGE("compile_once", JudgeCallAll);

}  // namespace
}  // namespace d2l
