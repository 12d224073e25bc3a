#include "chapters/multi_gpu/memory_use.h"

#include <algorithm>
#include <cstddef>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/console/format.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/nn/checkpoint.h"
#include "common/nn/layers.h"
#include "common/ops/no_grad.h"

namespace d2l {
namespace {

// A value on its way through the layers.
struct Value {
  Tensor of_one;
  bool kept;  // the backward pass needs it
};

class Layers {
 public:
  explicit Layers(std::int64_t samples) : samples_(samples) {}

  Value Through(nn::Module& layer, const Value& x) {
    if (auto* const all = dynamic_cast<nn::Sequential*>(&layer)) {
      Value y = x;
      for (int i = 0; i < all->size(); ++i) y = Through((*all)[i], y);
      return y;
    }
    // A checkpoint's own name is that of its module.
    const bool checkpoint = dynamic_cast<nn::Checkpoint*>(&layer) != nullptr;
    const std::string name = checkpoint ? "Checkpoint" : layer.Name();
    const std::set<std::string> need_input = {"Linear",    "Conv2d",
                                              "MaxPool2d", "BatchNorm2d",
                                              "Residual",  "Checkpoint"};
    Value y = {layer(x.of_one), /*kept=*/false};
    if (name == "Flatten") return {y.of_one, x.kept};
    if (!x.kept && need_input.count(name) > 0) memory_.kept += Bytes(x);
    if (name == "ReLU" || name == "Dropout") memory_.kept += Bytes(y);
    // The outputs of two convolutions and of the two ReLUs.
    if (name == "Residual") memory_.kept += 4 * Bytes(y);
    y.kept = name == "ReLU" || name == "Residual";
    std::int64_t parameter = 0;  // the longest one's bytes
    for (const Tensor& p : nn::Parameters(layer)) {
      parameter = std::max(parameter, 4 * p.numel());
    }
    peak_ = std::max(
        peak_, memory_.kept + Bytes(y) + (first_ ? 0 : Bytes(x)) + parameter);
    first_ = false;
    return y;
  }

  LayerMemory Memory() const {
    return {memory_.kept, std::max<std::int64_t>(0, peak_ - memory_.kept)};
  }

 private:
  std::int64_t Bytes(const Value& x) const {
    return 4 * x.of_one.numel() * samples_;
  }

  const std::int64_t samples_;
  LayerMemory memory_;
  std::int64_t peak_ = 0;
  bool first_ = true;  // the images need no gradient
};

// At most 9 columns: 1000.0 KiB and more are 1.0 MiB.
std::string Short(std::int64_t bytes) {
  const std::string text = FormatBytes(bytes);
  if (text.size() <= 9) return text;
  std::int64_t unit = 1024;
  while (unit < bytes) unit *= 1024;
  return FormatBytes(unit);
}

}  // namespace

LayerMemory PredictLayers(nn::Module& net, const Tensor& sample,
                          std::int64_t samples) {
  if (samples == 0) return {};
  const NoGradGuard guard;
  const bool training = net.training();
  net.Eval();
  Layers layers(samples);
  layers.Through(net, {sample, /*kept=*/true});
  net.Train(training);
  return layers.Memory();
}

std::string MemoryTable(
    const std::vector<std::pair<std::string, MemoryUse>>& uses) {
  std::size_t columns = 16;
  for (const auto& [name, use] : uses) {
    columns = std::max(columns, TextColumns(name));
  }
  const int width = static_cast<int>(columns);
  std::string text =
      absl::StrCat(Padded("", width + 2), Padded("parameters", -10),
                   Padded("gradients", -10), Padded("momentum", -10),
                   Padded("activations", -12), Padded("besides", -10),
                   Padded("peak", -10), "\n");
  for (const auto& [name, use] : uses) {
    absl::StrAppendFormat(
        &text, "  %s%10s%10s%10s%12s%10s%10s\n", Padded(name, width),
        Short(use.parameters), Short(use.gradients), Short(use.optimizer),
        Short(use.activations), Short(use.temporaries), Short(use.peak()));
  }
  return text;
}

}  // namespace d2l
