// Judges worth_compiling: by trying all widths, then beside this machine.

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/console/format.h"
#include "common/base/console/language.h"
#include "common/base/machine.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/exercise/exercise.h"
#include "common/exercise/probes.h"
#include "common/lesson/cell/cell.h"
#include "common/nn/hybrid.h"
#include "common/nn/layers.h"
#include "common/nn/module.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

using LargestWidth = int(int layers, double saved, double rate);

// How many times as long as a compiled call an eager call takes.
double Ratio(int layers, double saved, double rate, double width) {
  const double arithmetic = 2.0 * layers * width * width / rate;
  return (saved + arithmetic) / arithmetic;
}

struct Machine {
  int layers;
  double saved, rate;
};

std::string LookAt(const Machine& machine, int got, int expected) {
  if (expected == 0) {
    return "Here even a width of 1 is too large: return 0.";
  }
  const double off = static_cast<double>(got) / expected;
  if (std::abs(off - std::sqrt(machine.layers)) < 0.05 && machine.layers > 1) {
    return "There are `layers` products, one after the other: all of them are "
           "computed.";
  }
  if (off > 1.3 && off < 1.5) {
    return "A product multiplies and adds: two operations for each number of "
           "the matrix.";
  }
  if (off < 0.5) {
    return "10 % is enough: the arithmetic may take ten times as long as the "
           "time that is saved.";
  }
  if (off > 2) {
    return "The arithmetic grows with the square of the width.";
  }
  return Say(
      "At the width %d an eager call takes %.3f times as long as a compiled "
      "one.",
      got, Ratio(machine.layers, machine.saved, machine.rate, got));
}

// The saving on this machine, and how well the answer predicts it.
void CompareWithMachine(Judging& judging, LargestWidth* answer) {
  const Device device = TryGpu();
  constexpr int kLayers = 8;
  const auto net_of = [&](std::int64_t width) {
    nn::Sequential layers;
    for (int i = 0; i < kLayers; ++i) {
      layers.Append(nn::Linear(width, width, /*bias=*/false));
    }
    nn::To(layers, device);
    return layers;
  };
  struct Times {
    double eager, compiled;
  };
  const auto measure = [&](std::int64_t width) {
    nn::Hybrid net = nn::Hybridize(net_of(width));
    const Tensor x = Randn({1, width}, device);
    for (int i = 0; i < 3; ++i) net(x);
    CellResult ignored;
    Cell cell(Size::kCourse, &ignored);
    const Timings t =
        cell.TimeInterleaved({{"eager", {device}, [&] { net.module()(x); }},
                              {"compiled", {device}, [&] { net(x); }}});
    return Times{t["eager"].completion.value.median,
                 t["compiled"].completion.value.median};
  };
  const Times narrow = measure(8), wide = measure(512);
  const double saved = narrow.eager - narrow.compiled;
  const double rate = 2.0 * kLayers * 512 * 512 / wide.compiled;
  if (saved <= 0) {
    judging.Note(
        Say("Here nothing is saved by compiling 8 layers of width 8."));
    return;
  }
  const int width = answer(kLayers, saved, rate);
  judging.Note(Say(
      "On this machine, compiling saves %s for a call of 8 layers, and %.3g "
      "operations are computed per second: compiling pays up to a width of %d.",
      FormatDuration(saved), rate, width));
  if (width < 1 || width > 2048) return;
  const Times measured = measure(width);
  const double ratio = measured.eager / measured.compiled;
  judging.Note(
      Say("Measured at that width: eager calls take %.2f times as long (1.10 "
          "predicted).",
          ratio));
  if (ratio > 1.07 && ratio < 1.13) return;
  judging.Explain(
      Say("Your formula is judged, not this figure. The prediction was %s for "
          "a compiled call and %s more for an eager call; measured were %s and "
          "%s. The rate was measured at a width of 512, and other programs "
          "share the %d cores of this machine.",
          FormatDuration(saved * 10), FormatDuration(saved),
          FormatDuration(measured.compiled),
          FormatDuration(measured.eager - measured.compiled), UsableCores()));
}

void JudgeLargestWidth(Judging& judging, LargestWidth* answer) {
  std::vector<Machine> machines = {
      {1, 1e-6, 1e9}, {3, 2.5e-6, 4e10}, {16, 80e-6, 9e11}, {7, 5e-9, 1e8}};
  for (int i = 0; i < 8; ++i) {
    machines.push_back(
        {static_cast<int>(Drawn(1, 20)), Drawn(1e-7, 1e-4), Drawn(1e9, 1e12)});
  }
  for (const Machine& machine : machines) {
    const auto& [layers, saved, rate] = machine;
    int expected = 0;
    while (Ratio(layers, saved, rate, expected + 1) >= 1.1) ++expected;
    const int got = answer(layers, saved, rate);
    // At the edge, rounding may decide.
    constexpr double kEdge = 1e-9;
    const auto pays = [&](double width, double edge) {
      return Ratio(layers, saved, rate, width) >= 1.1 + edge;
    };
    if (got == expected || (got == expected + 1 && pays(got, -kEdge)) ||
        (got == expected - 1 && !pays(expected, kEdge))) {
      continue;
    }
    judging.Wrong({Say("%d layers, %s saved, %.3g operations a second", layers,
                       FormatDuration(saved), rate),
                   absl::StrFormat("%d", got), absl::StrFormat("%d", expected),
                   LookAt(machine, got, expected)});
  }
  if (judging.timed()) CompareWithMachine(judging, answer);
}

D2L_JUDGE("worth_compiling", JudgeLargestWidth);

}  // namespace
}  // namespace d2l
