#include "common/ops/creation.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/device/device_table.h"
#include "common/kernels/kernels.h"
#include "common/ops/primitive.h"

namespace d2l {
namespace {

// What every creation has: a shape, a dtype and a device, but no input.
class Creation : public Primitive {
 public:
  explicit Creation(const ValueSpec& spec) : spec_(spec) {}

  ValueSpec Infer(Inputs) const override {
    CheckedNumel(name(), spec_.shape, DTypeSize(spec_.dtype));
    return spec_;
  }
  std::vector<Attribute> attributes() const override {
    return {{"shape", spec_.shape.ToString()},
            {"dtype", DTypeName(spec_.dtype)}};
  }

 private:
  const ValueSpec spec_;
};

class OnesPrimitive final : public Creation {
 public:
  using Creation::Creation;

  const char* name() const override { return "ones"; }
  std::uint64_t Launch(Stream& stream, const OpLabel& label, Inputs,
                       const Tensor& output) const override {
    return kernels::GetKernels(stream.device().type())
        .Fill(stream, label, output.dtype(), output.data(), output.numel(),
              1.0);
  }
  std::unique_ptr<Primitive> Clone() const override {
    return std::make_unique<OnesPrimitive>(*this);
  }
};

// Where each device's generator stands.
struct Generator {
  // PyTorch's default seed.
  std::atomic<std::uint64_t> seed{67280421310721};
  std::atomic<std::uint64_t> offset{0};
};
std::array<std::array<Generator, kMaxDevices>, kDeviceTypes> generators;

class RandnPrimitive final : public Creation {
 public:
  using Creation::Creation;

  const char* name() const override { return "randn"; }
  ValueSpec Infer(Inputs inputs) const override {
    const ValueSpec spec = Creation::Infer(inputs);
    if (!IsFloatingPoint(spec.dtype)) {
      throw std::invalid_argument(absl::StrFormat(
          "[randn] normal numbers are float32 or float64, not %s",
          DTypeName(spec.dtype)));
    }
    return spec;
  }
  std::uint64_t Launch(Stream& stream, const OpLabel& label, Inputs,
                       const Tensor& output) const override {
    const Device device = stream.device();
    Generator& generator =
        generators[static_cast<int>(device.type())][device.index()];
    const std::int64_t numel = output.numel();
    const kernels::RandomState state = {
        generator.seed.load(std::memory_order_relaxed),
        generator.offset.fetch_add(kernels::RandomBlocks(output.dtype(), numel),
                                   std::memory_order_relaxed)};
    return kernels::GetKernels(device.type())
        .RandomNormal(stream, label, output.dtype(), output.data(), numel,
                      state);
  }
  std::unique_ptr<Primitive> Clone() const override {
    return std::make_unique<RandnPrimitive>(*this);
  }
};

}  // namespace

Tensor Ones(const Shape& shape, Device device, DType dtype, SourceLocation at) {
  return Apply(OnesPrimitive({shape, dtype, device}), {}, at);
}

Tensor Randn(const Shape& shape, Device device, DType dtype,
             SourceLocation at) {
  return Apply(RandnPrimitive({shape, dtype, device}), {}, at);
}

void ManualSeed(std::uint64_t seed) {
  for (auto& of_type : generators) {
    for (Generator& generator : of_type) {
      generator.seed.store(seed, std::memory_order_relaxed);
      generator.offset.store(0, std::memory_order_relaxed);
    }
  }
}

}  // namespace d2l
