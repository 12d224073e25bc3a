#include "common/ops/creation.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/device/device_table.h"
#include "common/device/memory/memory.h"
#include "common/ops/primitive/launch.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/primitives.h"
#include "common/ops/primitive/reject.h"

namespace d2l {
ValueSpec Creation::Infer(Inputs inputs) const {
  CheckInputCount(name(), inputs, 0);
  CheckedNumel(name(), spec.shape, DTypeSize(spec.dtype));
  return spec;
}

std::uint64_t EmptyPrimitive::Launch(const LaunchContext&) const {
  throw std::logic_error("[empty] launches nothing: use ApplyEmpty");
}

ValueSpec FullPrimitive::Infer(Inputs inputs) const {
  if (!value.FitsIn(spec.dtype)) {
    Reject("[%s] %s is not a value of the dtype %s", name(), value, spec.dtype);
  }
  return Creation::Infer(inputs);
}

std::uint64_t FullPrimitive::Launch(const LaunchContext& ctx) const {
  return Enqueue(ctx, kernels::FillArgs{ctx.output.dtype(), ctx.output.numel(),
                                        ctx.output.data(), value, nullptr});
}

namespace {

void CheckRank(const char* operation, const Shape& shape, int rank) {
  if (shape.rank() == rank) return;
  Reject("[%s] a shape of %d dimensions wanted; got %s", operation, rank,
         shape);
}

}  // namespace

ValueSpec ArangePrimitive::Infer(Inputs inputs) const {
  CheckRank(name(), spec.shape, 1);
  return Creation::Infer(inputs);
}

std::uint64_t ArangePrimitive::Launch(const LaunchContext& ctx) const {
  return Enqueue(ctx,
                 kernels::ArangeArgs{ctx.output.dtype(), ctx.output.numel(),
                                     ctx.output.data(), start, step});
}

ValueSpec EyePrimitive::Infer(Inputs inputs) const {
  CheckRank(name(), spec.shape, 2);
  return Creation::Infer(inputs);
}

std::uint64_t EyePrimitive::Launch(const LaunchContext& ctx) const {
  const std::uint64_t number =
      Enqueue(ctx, kernels::FillArgs{ctx.output.dtype(), ctx.output.numel(),
                                     ctx.output.data(), 0, nullptr});
  const std::int64_t diagonal =
      std::min(ctx.output.size(0), ctx.output.size(1));
  if (diagonal == 0) return number;
  kernels::StridedLayout layout;
  layout.shape = {diagonal};
  layout.out = {ctx.output.size(1) + 1};
  return Enqueue(ctx, kernels::FillArgs{ctx.output.dtype(), diagonal,
                                        ctx.output.data(), 1, &layout});
}

std::uint64_t FromVectorPrimitive::Launch(const LaunchContext& ctx) const {
  const std::uint64_t number =
      Enqueue(ctx, kernels::CopyArgs{ctx.output.dtype(), ctx.output.dtype(),
                                     ctx.output.numel(), ctx.output.data(),
                                     staging->data(), nullptr});
  staging->RecordStream(ctx.stream);
  return number;
}

namespace {

// The state of a device's generator.
struct Generator {
  // PyTorch's default seed.
  std::atomic<std::uint64_t> seed{67280421310721};
  std::atomic<std::uint64_t> offset{0};

  void Seed(std::uint64_t value) {
    seed.store(value, std::memory_order_relaxed);
    offset.store(0, std::memory_order_relaxed);
  }
};
std::array<std::array<Generator, kMaxDevices>, kDeviceTypes> generators;
std::atomic<int> first_device_index{0};

Generator& GeneratorOf(Device device) {
  return generators[static_cast<int>(device.type())][device.index()];
}

// Whether the dtype has all integers from first to last.
bool AllExact(std::int64_t first, std::int64_t last, DType dtype) {
  if (dtype == DType::kFloat32 || dtype == DType::kFloat64) {
    const int digits = dtype == DType::kFloat32
                           ? std::numeric_limits<float>::digits
                           : std::numeric_limits<double>::digits;
    const std::int64_t most = std::int64_t{1} << digits;
    return first >= -most && last <= most;
  }
  return Scalar(first).FitsIn(dtype) && Scalar(last).FitsIn(dtype);
}

}  // namespace

ValueSpec RandomPrimitive::Infer(Inputs inputs) const {
  if (!OpTakes(op, spec.dtype)) {
    Reject(
        "[%s] random numbers are float32 or float64, not %s; for integers use "
        "RandInt",
        name(), spec.dtype);
  }
  if (op != kernels::RandomOp::kInteger) return Creation::Infer(inputs);
  if (low >= high) {
    Reject("[randint] no integers from %d to %d - 1", low, high);
  }
  if (!AllExact(low, high - 1, spec.dtype)) {
    Reject(
        "[randint] not all integers from %d to %d - 1 are values of the dtype "
        "%s",
        low, high, spec.dtype);
  }
  return Creation::Infer(inputs);
}

std::uint64_t RandomPrimitive::Launch(const LaunchContext& ctx) const {
  Generator& generator = GeneratorOf(ctx.stream.device());
  const std::int64_t numel = ctx.output.numel();
  const std::uint64_t range =
      static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  std::uint64_t seed = generator.seed.load(std::memory_order_relaxed);
  if (per_device) {  // a seed that hardly anyone chooses
    seed ^= std::uint64_t{0x9E3779B97F4A7C15} *
            (first_device_index + ctx.stream.device().index() + 1);
  }
  const kernels::RandomState state = {
      seed, generator.offset.fetch_add(
                kernels::RandomBlocks(op, ctx.output.dtype(), numel, range),
                std::memory_order_relaxed)};
  return Enqueue(
      ctx, kernels::RandomArgs{op, ctx.output.dtype(), numel, ctx.output.data(),
                               state, low, range});
}

void RandomPrimitive::Visit(Fields& field) {
  Creation::Visit(field);
  if (op == kernels::RandomOp::kInteger) field("low", low)("high", high);
  if (field.Has("per_device", per_device)) field("per_device", per_device);
}

namespace {

ValueSpec SpecOf(const char* operation, const Tensor& x, SourceLocation at) {
  if (!x.defined()) {
    RejectAt(at, "[%s] the template tensor is undefined", operation);
  }
  return {x.shape(), x.dtype(), x.device()};
}

// How many numbers there are from start to end. Throws std::invalid_argument.
std::int64_t CountSteps(Scalar start, Scalar end, Scalar step, DType dtype) {
  for (const Scalar value : {start, end, step}) {
    if (!value.FitsIn(dtype) &&
        !(value.is_integer() && dtype == DType::kUInt8)) {
      Reject("[arange] %s is not a value of the dtype %s", value, dtype);
    }
  }
  const std::string what =
      absl::StrFormat("from %s to %s in steps of %s", start.ToString(),
                      end.ToString(), step.ToString());
  const double s = step.To<double>();
  const double distance = end.To<double>() - start.To<double>();
  if (!(s != 0) || !std::isfinite(s) || !std::isfinite(distance)) {
    Reject("[arange] %s: the numbers must be finite, and the step not 0", what);
  }
  if (distance != 0 && (distance > 0) != (s > 0)) {
    Reject("[arange] %s: the step leads away from the end", what);
  }
  std::int64_t count;
  if (start.is_integer() && end.is_integer() && step.is_integer()) {
    // Exact; a distance may need 64 unsigned bits.
    const std::int64_t stride = step.To<std::int64_t>();
    const std::uint64_t a = start.To<std::int64_t>();
    const std::uint64_t b = end.To<std::int64_t>();
    const std::uint64_t steps = stride > 0 ? b - a : a - b;
    const std::uint64_t each = stride > 0 ? static_cast<std::uint64_t>(stride)
                                          : -static_cast<std::uint64_t>(stride);
    const std::uint64_t whole = steps / each + (steps % each != 0);
    count = whole > std::numeric_limits<std::int64_t>::max()
                ? std::numeric_limits<std::int64_t>::max()
                : static_cast<std::int64_t>(whole);
  } else {
    const double steps = std::ceil(distance / s);
    count = steps < 0x1p63 ? static_cast<std::int64_t>(steps)
                           : std::numeric_limits<std::int64_t>::max();
  }
  if (dtype == DType::kUInt8 && count > 0) {
    const Scalar last =
        start.To<std::int64_t>() + (count - 1) * step.To<std::int64_t>();
    if (!start.FitsIn(dtype) || !last.FitsIn(dtype)) {
      Reject("[arange] %s: not all are values of the dtype uint8", what);
    }
  }
  return count;
}

}  // namespace

Tensor Empty(const Shape& shape, Device device, DType dtype,
             SourceLocation at) {
  return ApplyEmpty(EmptyPrimitive({shape, dtype, device}), at);
}

Tensor Zeros(const Shape& shape, Device device, DType dtype,
             SourceLocation at) {
  return Apply(FullPrimitive("zeros", {shape, dtype, device}, 0), {}, at);
}

Tensor Ones(const Shape& shape, Device device, DType dtype, SourceLocation at) {
  return Apply(FullPrimitive("ones", {shape, dtype, device}, 1), {}, at);
}

Tensor Full(const Shape& shape, Scalar value, Device device, DType dtype,
            SourceLocation at) {
  return Apply(FullPrimitive("full", {shape, dtype, device}, value), {}, at);
}

Tensor Arange(Scalar start, Scalar end, Scalar step, Device device, DType dtype,
              SourceLocation at) {
  const std::int64_t count =
      WithLine(at, [&] { return CountSteps(start, end, step, dtype); });
  return Apply(ArangePrimitive({{count}, dtype, device}, start, step), {}, at);
}

Tensor Arange(Scalar end, Device device, DType dtype, SourceLocation at) {
  return Arange(0, end, 1, device, dtype, at);
}

Tensor Eye(std::int64_t n, std::int64_t m, Device device, DType dtype,
           SourceLocation at) {
  return Apply(EyePrimitive({{n, m}, dtype, device}), {}, at);
}

Tensor Eye(std::int64_t n, Device device, DType dtype, SourceLocation at) {
  return Eye(n, n, device, dtype, at);
}

template <typename T>
Tensor FromVector(const std::vector<T>& values, const Shape& shape,
                  Device device, SourceLocation at) {
  const ValueSpec spec = {shape, DTypeOf<T>::value, device};
  if (shape.numel() != static_cast<std::int64_t>(values.size())) {
    WithLine(at, [&] { CheckedNumel("from_vector", shape, sizeof(T)); });
    RejectAt(at, "[from_vector] %d numbers do not make a tensor of shape %s",
             values.size(), shape);
  }
  const std::size_t bytes = values.size() * sizeof(T);
  StorageRef staging =
      WithLine(at, [&] { return PinnedMemory(device).AllocatePinned(bytes); });
  if (bytes > 0) std::memcpy(staging->data(), values.data(), bytes);
  return Apply(FromVectorPrimitive(spec, std::move(staging)), {}, at);
}

template Tensor FromVector(const std::vector<float>&, const Shape&, Device,
                           SourceLocation);
template Tensor FromVector(const std::vector<double>&, const Shape&, Device,
                           SourceLocation);
template Tensor FromVector(const std::vector<std::int64_t>&, const Shape&,
                           Device, SourceLocation);
template Tensor FromVector(const std::vector<std::uint8_t>&, const Shape&,
                           Device, SourceLocation);

Tensor Rand(const Shape& shape, Device device, DType dtype, SourceLocation at) {
  return Apply(
      RandomPrimitive(kernels::RandomOp::kUniform, {shape, dtype, device}), {},
      at);
}

Tensor Randn(const Shape& shape, Device device, DType dtype,
             SourceLocation at) {
  return Apply(
      RandomPrimitive(kernels::RandomOp::kNormal, {shape, dtype, device}), {},
      at);
}

Tensor RandInt(std::int64_t low, std::int64_t high, const Shape& shape,
               Device device, DType dtype, SourceLocation at) {
  return Apply(RandomPrimitive(kernels::RandomOp::kInteger,
                               {shape, dtype, device}, low, high),
               {}, at);
}

Tensor EmptyLike(const Tensor& x, SourceLocation at) {
  return ApplyEmpty(EmptyPrimitive(SpecOf("empty_like", x, at)), at);
}

Tensor ZerosLike(const Tensor& x, SourceLocation at) {
  return Apply(FullPrimitive("zeros", SpecOf("zeros_like", x, at), 0), {}, at);
}

Tensor OnesLike(const Tensor& x, SourceLocation at) {
  return Apply(FullPrimitive("ones", SpecOf("ones_like", x, at), 1), {}, at);
}

Tensor FullLike(const Tensor& x, Scalar value, SourceLocation at) {
  return Apply(FullPrimitive("full", SpecOf("full_like", x, at), value), {},
               at);
}

Tensor RandLike(const Tensor& x, SourceLocation at) {
  return Apply(
      RandomPrimitive(kernels::RandomOp::kUniform, SpecOf("rand_like", x, at)),
      {}, at);
}

Tensor RandnLike(const Tensor& x, SourceLocation at) {
  return Apply(
      RandomPrimitive(kernels::RandomOp::kNormal, SpecOf("randn_like", x, at)),
      {}, at);
}

void ManualSeed(std::uint64_t seed) {
  for (auto& of_type : generators) {
    for (Generator& generator : of_type) generator.Seed(seed);
  }
}

void SetFirstDeviceIndex(int first) { first_device_index = first; }

void ManualSeed(std::uint64_t seed, Device device) {
  SetGeneratorState({seed, 0}, device);
}

GeneratorState GetGeneratorState(Device device) {
  GetDeviceInfo(device);  // throws if it is not in the table
  const Generator& generator = GeneratorOf(device);
  return {generator.seed.load(std::memory_order_relaxed),
          generator.offset.load(std::memory_order_relaxed)};
}

void SetGeneratorState(const GeneratorState& state, Device device) {
  GetDeviceInfo(device);
  Generator& generator = GeneratorOf(device);
  generator.seed.store(state.seed, std::memory_order_relaxed);
  generator.offset.store(state.offset, std::memory_order_relaxed);
}

}  // namespace d2l
