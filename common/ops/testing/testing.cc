#include "common/ops/testing/testing.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/device/device_table.h"
#include "common/device/failure.h"
#include "common/kernels/op_tables.h"
#include "common/ops/creation.h"
#include "common/ops/primitive/primitives.h"
#include "common/ops/primitive/replay.h"
#include "common/ops/read.h"

namespace d2l {
namespace {

constexpr double kGap = 99;

// One generator for all tests: no two calls get the same numbers.
std::mt19937_64& Generator() {
  static auto& generator = *new std::mt19937_64(20240229);
  return generator;
}

Shape StridesOf(const Shape& shape, Placement placement) {
  Shape strides = ContiguousStrides(shape);
  const int rank = shape.rank();
  switch (placement) {
    case Placement::kContiguous:
    case Placement::kOffset:
      break;
    case Placement::kTransposed:
      for (int i = 0; i < rank; ++i) {
        strides[i] =
            i == 0 ? 1
                   : strides[i - 1] * std::max<std::int64_t>(shape[i - 1], 1);
      }
      break;
    case Placement::kStepped:
      for (int i = 0; i < rank; ++i) strides[i] *= 2;
      break;
    case Placement::kColumns: {
      if (rank == 0) break;
      Shape wider = shape;
      wider[rank - 1] += 3;
      strides = ContiguousStrides(wider);
      break;
    }
  }
  return strides;
}

std::int64_t OffsetOf(Placement placement) {
  switch (placement) {
    case Placement::kContiguous:
    case Placement::kTransposed:
      return 0;
    case Placement::kOffset:
      return 3;
    case Placement::kStepped:
    case Placement::kColumns:
      return 1;
  }
  return 0;
}

// Where element `index` of x, counted row by row, is in its memory.
std::int64_t PositionOf(std::int64_t index, std::int64_t offset,
                        const Shape& shape, const Shape& strides) {
  std::int64_t position = offset;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    position += index % shape[d] * strides[d];
    index /= shape[d];
  }
  return position;
}

Tensor FromDoubles(const std::vector<double>& values, const Shape& shape,
                   Device device, DType dtype) {
  return VisitDType(dtype, [&](auto zero) {
    std::vector<decltype(zero)> converted;
    converted.reserve(values.size());
    for (const double value : values) {
      converted.push_back(static_cast<decltype(zero)>(value));
    }
    return FromVector(converted, shape, device);
  });
}

// The distance from `value` to the next number of the dtype.
double UlpAt(DType dtype, double value) {
  const bool single = dtype == DType::kFloat32;
  const double smallest = single ? std::numeric_limits<float>::denorm_min()
                                 : std::numeric_limits<double>::denorm_min();
  if (!std::isfinite(value) || value == 0) return smallest;
  return std::max(smallest,
                  std::ldexp(Epsilon(dtype), std::ilogb(std::fabs(value))));
}

testing::AssertionResult HasShape(const Tensor& x, const Shape& shape,
                                  DType dtype, std::size_t expected) {
  if (x.shape() != shape || x.dtype() != dtype) {
    return testing::AssertionFailure()
           << "got " << x.Describe() << "; expected a " << DTypeName(dtype)
           << " of shape " << shape;
  }
  if (static_cast<std::int64_t>(expected) != shape.numel()) {
    return testing::AssertionFailure()
           << expected << " values expected in " << shape << ": a bad test";
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult Differs(std::size_t i, const Shape& shape, double got,
                                 double expected) {
  return testing::AssertionFailure()
         << absl::StrFormat("element %d of %s is %.17g; expected %.17g", i,
                            shape.ToString(), got, expected);
}

template <typename Op>
void AddNames(std::set<std::string>& names) {
  for (const auto& info : kernels::kOpInfos<Op>) names.insert(info.name);
}

}  // namespace

const char* PlacementName(Placement placement) {
  switch (placement) {
    case Placement::kContiguous:
      return "contiguous";
    case Placement::kOffset:
      return "offset";
    case Placement::kTransposed:
      return "transposed";
    case Placement::kStepped:
      return "stepped";
    case Placement::kColumns:
      return "columns";
  }
  return "unknown";
}

std::vector<double> ValuesOf(const Tensor& x) {
  return VisitDType(x.dtype(), [&](auto zero) {
    const auto values = ToVector<decltype(zero)>(x);
    return std::vector<double>(values.begin(), values.end());
  });
}

void ExpectFailedAt(SourceLocation at, const Tensor& x) {
  try {
    ValuesOf(x);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const AsyncError& error) {
    EXPECT_NE(std::string(error.what()).find(at.ToString()), std::string::npos)
        << error.what();
  }
}

Tensor Place(const std::vector<double>& values, const Shape& shape,
             Device device, DType dtype, Placement placement) {
  if (placement == Placement::kContiguous || shape.numel() == 0) {
    return FromDoubles(values, shape, device, dtype);
  }
  const Shape strides = StridesOf(shape, placement);
  const std::int64_t offset = OffsetOf(placement);
  const std::int64_t last =
      PositionOf(shape.numel() - 1, offset, shape, strides);
  std::vector<double> memory(last + 2, kGap);
  for (std::size_t i = 0; i < values.size(); ++i) {
    memory[PositionOf(i, offset, shape, strides)] = values[i];
  }
  const Tensor all = FromDoubles(memory, {last + 2}, device, dtype);
  return Tensor::View(all, offset, shape, strides);
}

Tensor MemoryOf(const Tensor& placed) {
  if (placed.numel() == 0) return Tensor::View(placed, 0, {0}, {1});
  const std::int64_t last = placed.offset() + placed.span() - 1;
  // Place leaves one element behind the last, unless all are contiguous.
  const bool whole = placed.is_contiguous() && placed.offset() == 0;
  const auto held = static_cast<std::int64_t>(placed.storage()->bytes() /
                                              DTypeSize(placed.dtype()));
  return Tensor::View(placed, 0, {std::min(last + (whole ? 1 : 2), held)}, {1});
}

std::vector<double> WithValues(std::vector<double> memory, const Tensor& placed,
                               const std::vector<double>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    memory[PositionOf(i, placed.offset(), placed.shape(), placed.strides())] =
        RoundTo(placed.dtype(), values[i]);
  }
  return memory;
}

std::vector<double> RandomValues(std::int64_t count, DType dtype) {
  std::normal_distribution<double> normal;
  std::uniform_int_distribution<int> number(-1000, 1000), byte(0, 255);
  std::vector<double> values(count);
  for (double& value : values) {
    switch (dtype) {
      case DType::kFloat32:
      case DType::kFloat64: {
        const double z = normal(Generator());
        value = RoundTo(dtype, std::fabs(z) > 2 ? z * 10 : z);
        break;
      }
      case DType::kInt64:
        value = number(Generator());
        break;
      case DType::kUInt8:
        value = byte(Generator());
        break;
    }
  }
  return values;
}

Tensor RandomTensor(const Shape& shape, Device device, DType dtype,
                    Placement placement) {
  return Place(RandomValues(shape.numel(), dtype), shape, device, dtype,
               placement);
}

double RoundTo(DType dtype, double value) {
  switch (dtype) {
    case DType::kFloat32:
      return static_cast<float>(value);
    case DType::kFloat64:
    case DType::kInt64:
      return value;
    case DType::kUInt8:
      return value - 256 * std::floor(value / 256);
  }
  return value;
}

std::vector<double> Map(const Tensor& x,
                        const std::function<double(double)>& f) {
  std::vector<double> values = ValuesOf(x);
  for (double& value : values) value = f(value);
  return values;
}

double BroadcastAt(const std::vector<double>& values, const Shape& shape,
                   const Shape& out, std::int64_t index) {
  std::int64_t offset = 0;
  std::int64_t stride = 1;
  for (int d = 1; d <= out.rank(); ++d) {
    const std::int64_t size = out[out.rank() - d];
    const std::int64_t i = index % size;
    index /= size;
    if (d > shape.rank()) continue;
    const std::int64_t size_of_dim = shape[shape.rank() - d];
    offset += (size_of_dim == 1 ? 0 : i) * stride;
    stride *= size_of_dim;
  }
  return values[offset];
}

std::vector<double> Pick(const Tensor& x, const Shape& out,
                         const std::function<Position(Position)>& f) {
  const std::vector<double> values = ValuesOf(x);
  std::vector<double> picked;
  picked.reserve(out.numel());
  for (const Position& position : PositionsIn(out)) {
    picked.push_back(values[NumberOf(f(position), x.shape())]);
  }
  return picked;
}

std::vector<Position> PositionsIn(const Shape& shape) {
  std::vector<Position> positions;
  positions.reserve(shape.numel());
  Position position(shape.rank());
  for (std::int64_t i = 0; i < shape.numel(); ++i) {
    std::int64_t rest = i;
    for (int d = shape.rank() - 1; d >= 0; --d) {
      position[d] = rest % shape[d];
      rest /= shape[d];
    }
    positions.push_back(position);
  }
  return positions;
}

std::int64_t NumberOf(const Position& position, const Shape& shape) {
  std::int64_t number = 0;
  for (int d = 0; d < shape.rank(); ++d)
    number = number * shape[d] + position[d];
  return number;
}

testing::AssertionResult Matches(const Tensor& x, const Shape& shape,
                                 DType dtype,
                                 const std::vector<double>& expected,
                                 double ulps) {
  const testing::AssertionResult fits =
      HasShape(x, shape, dtype, expected.size());
  if (!fits) return fits;
  const std::vector<double> got = ValuesOf(x);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double wanted = RoundTo(dtype, expected[i]);
    if (got[i] == wanted) continue;
    if (std::isnan(got[i]) && std::isnan(wanted)) continue;
    if (std::isfinite(got[i]) && std::isfinite(wanted) && ulps > 0 &&
        std::fabs(got[i] - expected[i]) <= ulps * UlpAt(dtype, expected[i])) {
      continue;
    }
    return Differs(i, shape, got[i], wanted);
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult IsNear(const Tensor& x, const Shape& shape,
                                DType dtype,
                                const std::vector<double>& expected,
                                const std::vector<double>& errors) {
  const testing::AssertionResult fits =
      HasShape(x, shape, dtype, expected.size());
  if (!fits) return fits;
  const std::vector<double> got = ValuesOf(x);
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(got[i]) && std::isnan(expected[i])) continue;
    if (got[i] == expected[i] || std::fabs(got[i] - expected[i]) <= errors[i]) {
      continue;
    }
    return Differs(i, shape, got[i], expected[i])
           << absl::StrFormat(" within %g", errors[i]);
  }
  return testing::AssertionSuccess();
}

double Epsilon(DType dtype) {
  return dtype == DType::kFloat32 ? std::numeric_limits<float>::epsilon()
                                  : std::numeric_limits<double>::epsilon();
}

Device OtherDevice(Device device) {
  for (const DeviceInfo& info : Devices()) {
    if (info.device != device) return info.device;
  }
  return device;
}

testing::AssertionResult IsRefused(const std::function<void()>& f,
                                   const std::string& text, SourceLocation at) {
  const std::string expected =
      absl::StrCat(text, "; requested at ", at.ToString());
  const std::string got = ThrownText(f);
  if (got == expected) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << "thrown:   " << got << "\nexpected: " << expected;
}

void ApplyUnaryInPlace(kernels::UnaryOp op, const Tensor& x,
                       SourceLocation at) {
  ApplyInPlace(UnaryPrimitive(op), {&x}, x, at);
}

void RunOnce(const std::function<void()>& f) {
  const auto ignore_failures = [](const std::function<void()>& call) {
    try {
      call();
    } catch (const AsyncError&) {
    }
  };
  ignore_failures(f);
  // Memory is free once the events behind its last uses have passed, on the
  // copy streams of all devices as well.
  for (const DeviceInfo& info : Devices()) {
    ignore_failures([&] { Synchronize(info.device); });
  }
}

std::set<std::string> PrimitiveNames() {
  std::set<std::string> names = {"zeros",
                                 "ones",
                                 "full",
                                 "to",
                                 "clone",
                                 "contiguous",
                                 "copy",
                                 "softmax",
                                 "log_softmax",
                                 "gather",
                                 "index_select",
                                 "arange",
                                 "fill",
                                 "transpose",
                                 "select",
                                 "squeeze",
                                 "where",
                                 "slice",
                                 "empty",
                                 "eye",
                                 "matmul",
                                 "cat",
                                 "unsqueeze",
                                 "view",
                                 "expand",
                                 "conv2d",
                                 "conv2d_input_gradient",
                                 "conv2d_weight_gradient",
                                 "avg_pool2d",
                                 "max_pool2d",
                                 "avg_pool2d_backward",
                                 "max_pool2d_backward",
                                 "batch_norm",
                                 "batch_norm_stats",
                                 "batch_norm_backward_reduce",
                                 "batch_norm_backward_elemt",
                                 "cross_entropy",
                                 "cross_entropy_backward",
                                 "index_add",
                                 "scatter_add",
                                 "axpby"};
  for (const std::string& name : names) {
    EXPECT_NE(MakePrimitive(name, {}).status().code(),
              absl::StatusCode::kNotFound)
        << name;
  }
  AddNames<kernels::UnaryOp>(names);
  AddNames<kernels::BinaryOp>(names);
  AddNames<kernels::ReduceOp>(names);
  AddNames<kernels::RandomOp>(names);
  return names;
}

}  // namespace d2l
