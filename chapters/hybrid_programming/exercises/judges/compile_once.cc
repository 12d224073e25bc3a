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
#include "common/tensor/shape.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

using CallAll = std::vector<Tensor>(nn::Sequential net,
                                    const std::vector<Tensor>& xs);

class Counting : public nn::Module {
 public:
  Counting(int* runs, const Shape* wanted, bool* others)
      : runs_(runs), wanted_(wanted), others_(others) {}
  Tensor Forward(const Tensor& x) override {
    ++*runs_;
    *others_ = *others_ || x.shape() != *wanted_;
    return Tanh(x) * 2;
  }
  std::string Name() const override { return "Counting"; }

 private:
  int* runs_;
  const Shape* wanted_;
  bool* others_;  // whether an x had another shape
};

void JudgeCallAll(Judging& judging, CallAll* answer) {
  const Device device = Devices().back().device;
  const Shape shape = {2, 4};
  unsigned seed = 0;
  for (const std::size_t n : {5, 1, 0, 5}) {
    int runs = 0;
    bool others = false;
    nn::Sequential net(Counting(&runs, &shape, &others), nn::Linear(4, 3));
    nn::To(net, device);
    std::vector<Tensor> xs;
    std::vector<std::vector<float>> expected;
    for (std::size_t i = 0; i < n; ++i) {
      xs.push_back(FromVector(RandomNumbers(8, ++seed), shape, device));
      expected.push_back(ToVector<float>(net(xs[i])));
    }
    runs = 0;
    const std::vector<Tensor> got = answer(std::move(net), xs);
    const std::string input = Say("%d inputs of one shape", n);
    if (got.size() != n) {
      judging.Wrong({input, Say("%d results", got.size()),
                     absl::StrFormat("%d", n),
                     "Return one result for each x, in the order of the xs."});
    }
    for (std::size_t i = 0; i < n; ++i) {
      const std::vector<float> values = ToVector<float>(got[i]);
      judging.ExpectClose(
          Say("%d inputs, number %d", n, i), values, expected[i], 1e-5,
          values == ToVector<float>(xs[i])
              ? "This result is x itself: std::move has taken the layers out "
                "of the net, so the net can be compiled only once. Compile it "
                "before the loop."
              : "Each x has a result of its own: call the compiled net with "
                "each x.");
    }
    if (others) {
      judging.Wrong({input, "the net got an input of another shape",
                     "each x by itself",
                     "With all xs joined into one input, the net as written is "
                     "called only once, and nothing is compiled. Compile the "
                     "net, and call it with each x."});
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
