#include "common/ops/make_primitive.h"

#include <charconv>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/types/optional.h"
#include "common/kernels/op_tables.h"
#include "common/ops/copy_primitives.h"
#include "common/ops/creation_primitives.h"
#include "common/ops/elementwise_primitives.h"
#include "common/ops/joining_primitives.h"
#include "common/ops/matmul_primitives.h"
#include "common/ops/nn/batch_norm_primitives.h"
#include "common/ops/nn/convolution_primitives.h"
#include "common/ops/nn/cross_entropy_primitives.h"
#include "common/ops/nn/pooling_primitives.h"
#include "common/ops/reduction_primitives.h"
#include "common/ops/view_primitives.h"

namespace d2l {
namespace {

// Hands out the attributes by name and type. Throws std::invalid_argument.
class Attributes {
 public:
  Attributes(const std::string& operation, std::vector<Attribute> left)
      : operation_(operation), left_(std::move(left)) {}

  bool Has(std::string_view name) const {
    for (const Attribute& attribute : left_) {
      if (attribute.first == name) return true;
    }
    return false;
  }
  std::string Text(std::string_view name) {
    for (auto it = left_.begin(); it != left_.end(); ++it) {
      if (it->first != name) continue;
      std::string text = std::move(it->second);
      left_.erase(it);
      return text;
    }
    Throw(name, "is missing");
  }
  template <typename Integer>
  Integer Int(std::string_view name) {
    return ToInt<Integer>(name, Text(name));
  }
  bool Bool(std::string_view name) {
    const std::string text = Text(name);
    if (text != "true" && text != "false") Throw(name, "is not true or false");
    return text == "true";
  }
  Scalar Number(std::string_view name) {
    return ValueOr(Scalar::Parse(Text(name)), name, "is not a number");
  }
  double Double(std::string_view name) { return Number(name).To<double>(); }
  d2l::Shape Shape(std::string_view name) {
    return ValueOr(d2l::Shape::Parse(Text(name)), name, "is not a shape");
  }
  // "all", or numbers.
  d2l::Dims Dims(std::string_view name) {
    d2l::Dims dims;
    const std::string text = Text(name);
    if (text == "all") return dims;
    for (const std::string& dim :
         std::vector<std::string>(absl::StrSplit(text, ", "))) {
      dims.Add(ToInt<int>(name, dim));
    }
    return dims;
  }
  Size2d Size(std::string_view name) {
    return ToSize2d(operation_.c_str(), Shape(name));
  }
  // "shape", "dtype" and "device".
  ValueSpec Spec() {
    ValueSpec spec;
    spec.shape = Shape("shape");
    spec.dtype = ValueOr(DTypeNamed(Text("dtype")), "dtype", "is unknown");
    absl::StatusOr<Device> device = Device::Parse(Text("device"));
    if (!device.ok()) Throw("device", "is not a device");
    spec.device = *device;
    return spec;
  }
  // All must have been handed out.
  void CheckNoneLeft() const {
    if (!left_.empty()) Throw(left_[0].first, "is unknown, or given twice");
  }

 private:
  [[noreturn]] void Throw(std::string_view name, const char* what) const {
    throw std::invalid_argument(absl::StrFormat("[%s] the attribute \"%s\" %s",
                                                operation_, name, what));
  }
  template <typename T>
  T ValueOr(std::optional<T> value, std::string_view name, const char* what) {
    if (!value.has_value()) Throw(name, what);
    return *value;
  }
  template <typename Integer>
  Integer ToInt(std::string_view name, const std::string& text) const {
    Integer value;
    const char* const end = text.data() + text.size();
    const auto [next, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || next != end) Throw(name, "is not an integer");
    return value;
  }

  const std::string& operation_;
  std::vector<Attribute> left_;
};

using PrimitivePtr = std::unique_ptr<Primitive>;

template <typename P, typename... Args>
PrimitivePtr Make(Args&&... args) {
  return std::make_unique<P>(std::forward<Args>(args)...);
}

PrimitivePtr MakeBinary(kernels::BinaryOp op, Attributes& a) {
  using Which = BinaryPrimitive::Which;
  if (a.Has("first")) {
    return Make<BinaryPrimitive>(op, Which::kFirst, a.Number("first"));
  }
  if (a.Has("second")) {
    return Make<BinaryPrimitive>(op, Which::kSecond, a.Number("second"));
  }
  return Make<BinaryPrimitive>(op, Which::kNone, 0);
}

PrimitivePtr MakeWhere(Attributes& a) {
  absl::optional<Scalar> input, other;
  if (a.Has("input")) input = a.Number("input");
  if (a.Has("other")) other = a.Number("other");
  return Make<WherePrimitive>(input, other);
}

PrimitivePtr MakeRandom(kernels::RandomOp op, Attributes& a) {
  const ValueSpec spec = a.Spec();
  if (op != kernels::RandomOp::kInteger) {
    const bool per_device = a.Has("per_device") && a.Bool("per_device");
    return Make<RandomPrimitive>(op, spec, 0, 1, per_device);
  }
  const auto low = a.Int<std::int64_t>("low");
  return Make<RandomPrimitive>(op, spec, low, a.Int<std::int64_t>("high"));
}

PrimitivePtr MakeSlice(Attributes& a) {
  const int dim = a.Int<int>("dim");
  const auto start = a.Int<std::int64_t>("start");
  const auto end = a.Int<std::int64_t>("end");
  return Make<SlicePrimitive>(dim, start, end, a.Int<std::int64_t>("step"));
}

Pooling MakePooling(bool max, Attributes& a) {
  const Size2d kernel = a.Size("kernel_size");
  const Size2d stride = a.Size("stride");
  return {max, kernel, stride, a.Size("padding")};
}

// The operations of networks. Null if there is none of that name.
PrimitivePtr MakeNn(const std::string& name, Attributes& a) {
  if (name == "avg_pool2d" || name == "max_pool2d") {
    return Make<Pool2dPrimitive>(MakePooling(name == "max_pool2d", a));
  }
  if (name == "avg_pool2d_backward" || name == "max_pool2d_backward") {
    const Pooling pooling = MakePooling(name == "max_pool2d_backward", a);
    return Make<Pool2dGradientPrimitive>(pooling, a.Shape("shape"));
  }
  const bool of_weight = name == "conv2d_weight_gradient";
  if (name == "conv2d" || name == "conv2d_input_gradient" || of_weight) {
    const Size2d stride = a.Size("stride");
    const Conv2dOptions options = {stride, a.Size("padding")};
    if (name == "conv2d") return Make<Conv2dPrimitive>(options);
    return Make<Conv2dGradientPrimitive>(of_weight, options, a.Shape("shape"));
  }
  if (name == "batch_norm_stats") return Make<BatchNormStatisticsPrimitive>();
  if (name == "batch_norm") {
    const bool training = a.Bool("training");
    return Make<BatchNormPrimitive>(training, a.Double("eps"));
  }
  if (name == "batch_norm_backward_reduce") {
    const bool training = a.Bool("training");
    return Make<BatchNormSumsPrimitive>(training, a.Double("eps"));
  }
  if (name == "batch_norm_backward_elemt") {
    return Make<BatchNormInputGradientPrimitive>(a.Double("eps"));
  }
  if (name == "cross_entropy") return Make<CrossEntropyPrimitive>();
  if (name == "cross_entropy_backward") {
    return Make<CrossEntropyGradientPrimitive>();
  }
  return nullptr;
}

// Null if there is none of that name.
PrimitivePtr MakeFrom(const std::string& name, Attributes& a) {
  if (const auto op = kernels::OpNamed<kernels::UnaryOp>(name)) {
    return Make<UnaryPrimitive>(*op);
  }
  if (const auto op = kernels::OpNamed<kernels::BinaryOp>(name)) {
    return MakeBinary(*op, a);
  }
  if (const auto op = kernels::OpNamed<kernels::ReduceOp>(name)) {
    const Dims dims = a.Dims("dim");
    return Make<ReducePrimitive>(*op, dims, a.Bool("keepdim"));
  }
  if (const auto op = kernels::OpNamed<kernels::RandomOp>(name)) {
    return MakeRandom(*op, a);
  }
  // The primitives keep these names.
  for (const char* const function : {"zeros", "ones", "full"}) {
    if (name != function) continue;
    const ValueSpec spec = a.Spec();
    return Make<FullPrimitive>(function, spec, a.Number("fill_value"));
  }
  for (const char* const function : {"to", "clone", "contiguous", "copy"}) {
    if (name != function) continue;
    return Make<CopyPrimitive>(
        function, a.Spec(), name == "copy" ? Effect::kInPlace : Effect::kPure);
  }
  if (name == "softmax" || name == "log_softmax") {
    return Make<SoftmaxPrimitive>(name == "log_softmax", a.Int<int>("dim"));
  }
  if (name == "gather" || name == "index_select") {
    return Make<IndexPrimitive>(name == "gather" ? kernels::IndexOp::kGather
                                                 : kernels::IndexOp::kSelect,
                                a.Int<int>("dim"));
  }
  if (name == "scatter_add" || name == "index_add") {
    return Make<IndexAddPrimitive>(name == "scatter_add"
                                       ? kernels::IndexOp::kGather
                                       : kernels::IndexOp::kSelect,
                                   a.Int<int>("dim"));
  }
  if (name == "axpby") {
    const double alpha = a.Double("alpha");
    return Make<AxpbyPrimitive>(alpha, a.Double("beta"));
  }
  if (name == "arange") {
    const ValueSpec spec = a.Spec();
    const Scalar start = a.Number("start");
    return Make<ArangePrimitive>(spec, start, a.Number("step"));
  }
  if (name == "fill") {
    const ValueSpec spec = a.Spec();
    return Make<FillPrimitive>(spec, a.Number("value"));
  }
  if (name == "transpose") {
    const int dim0 = a.Int<int>("dim0");
    return Make<TransposePrimitive>(dim0, a.Int<int>("dim1"));
  }
  if (name == "select") {
    const int dim = a.Int<int>("dim");
    return Make<SelectPrimitive>(dim, a.Int<std::int64_t>("index"));
  }
  if (name == "squeeze") {
    return Make<SqueezePrimitive>(a.Has("dim") ? a.Int<int>("dim")
                                               : SqueezePrimitive::kAllDims);
  }
  if (name == "where") return MakeWhere(a);
  if (name == "slice") return MakeSlice(a);
  if (name == "empty") return Make<EmptyPrimitive>(a.Spec());
  if (name == "eye") return Make<EyePrimitive>(a.Spec());
  if (name == "matmul") return Make<MatMulPrimitive>();
  if (name == "cat") return Make<CatPrimitive>(a.Int<int>("dim"));
  if (name == "unsqueeze") return Make<UnsqueezePrimitive>(a.Int<int>("dim"));
  if (name == "view") return Make<ReshapePrimitive>(a.Shape("shape"));
  if (name == "expand") return Make<ExpandPrimitive>(a.Shape("shape"));
  return MakeNn(name, a);
}

}  // namespace

absl::StatusOr<PrimitivePtr> MakePrimitive(
    const std::string& name, const std::vector<Attribute>& attributes) {
  if (name == "from_vector") {
    return absl::UnimplementedError(
        "[from_vector] a program as text does not hold the host's numbers");
  }
  try {
    Attributes left(name, attributes);
    PrimitivePtr primitive = MakeFrom(name, left);
    if (primitive == nullptr) {
      return absl::NotFoundError(
          absl::StrFormat("there is no operation \"%s\"", name));
    }
    left.CheckNoneLeft();
    return primitive;
  } catch (const std::invalid_argument& error) {
    return absl::InvalidArgumentError(error.what());
  }
}

}  // namespace d2l
