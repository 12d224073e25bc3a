// Judges pad_to_buckets: are the results those of the net, how many programs
// are traced, and how many rows are computed?

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "common/base/console/language.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/exercise/exercise.h"
#include "common/exercise/probes.h"
#include "common/nn/hybrid.h"
#include "common/nn/layers.h"
#include "common/nn/module.h"
#include "common/ops/ops.h"
#include "common/tensor/shape.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

using CallPadded = Tensor(nn::Hybrid& net, const Tensor& x);

constexpr std::int64_t kColumns = 8;
constexpr std::size_t kPrograms = 7;

void JudgeCallPadded(Judging& judging, CallPadded* answer) {
  const Device device = Devices().back().device;
  const auto make_net = [&] {
    nn::Sequential layers(nn::Linear(kColumns, 16), nn::ReLU(),
                          nn::Linear(16, 3));
    nn::To(layers, device);
    return layers;
  };
  nn::Sequential layers = make_net();
  nn::Hybrid net = nn::Hybridize(std::move(layers));
  // 1 to 64 in an order without a pattern, twice.
  for (int i = 0, rows = 1; i < 132; ++i, rows = rows * 7 % 67) {
    if (rows > 64) continue;
    const std::string input = Say("%d rows", rows);
    const Tensor x =
        FromVector(RandomNumbers(static_cast<std::size_t>(rows * kColumns), i),
                   {rows, kColumns}, device);
    const nn::HybridReport before = net.Report();
    const Tensor y = answer(net, x);
    const nn::HybridReport report = net.Report();
    const std::int64_t calls = report.calls() - before.calls();
    if (calls == 0) {
      judging.Wrong({input, "no call of the compiled net", "one call",
                     "net(x) runs a program; net.module() is the net as it was "
                     "written, and runs statement by statement."});
    }
    if (calls > 1) {
      judging.Wrong(
          {input, Say("%d calls of the net", calls), "one call",
           "Each call costs time, however few rows it has: pad x, and "
           "call the net once for all rows."});
    }
    for (std::size_t i = 0; i < report.programs.size(); ++i) {
      const bool traced = i >= before.programs.size();
      if (!traced && report.programs[i].calls == before.programs[i].calls) {
        continue;
      }
      // "float32[64, 8]"
      const std::string computed = report.programs[i].input;
      const int padded = std::atoi(computed.c_str() + computed.find('[') + 1);
      if (padded <= 2 * rows) continue;
      judging.Wrong(
          {input, Say("a call with %d rows", padded),
           Say("with %d at most", 2 * rows),
           traced
               ? "A call with few rows computes many rows. Pad to one of "
                 "several sizes, each twice the size before: that costs less."
               : "An earlier call had more rows. The size to pad to depends on "
                 "this x only: keep nothing from call to call."});
    }
    if (report.programs.size() > kPrograms || report.eager_calls > 0) {
      judging.Wrong(
          {input,
           Say("%d programs so far, and it goes on", report.programs.size()),
           Say("%d programs", kPrograms),
           "Each new number of rows is traced and compiled. Round the numbers "
           "up, so that there are few of them."});
    }
    if (y.shape() != Shape{rows, 3}) {
      judging.Wrong({input, y.shape().ToString(), Shape{rows, 3}.ToString(),
                     "Cut off the rows that you added."});
    }
    judging.ExpectClose(
        input, ToVector<float>(y), ToVector<float>(net.module()(x)), 1e-5,
        i < 66 ? "A row of the result depends only on the same row of x. Which "
                 "rows of the result belong to x?"
               : "The results are those of an earlier x with the same number "
                 "of rows: keep nothing from call to call.");
  }
  judging.Note(
      Say("%d programs for 64 numbers of rows.", net.Report().programs.size()));
}

D2L_JUDGE("pad_to_buckets", JudgeCallPadded);

}  // namespace
}  // namespace d2l
