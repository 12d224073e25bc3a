// The operations of each family of kernels: a row for each, with its name, its
// functor and the dtypes it takes.
//
//   OpName(UnaryOp::kGelu);                          // "gelu"
//   OpNamed<UnaryOp>("gelu");                        // UnaryOp::kGelu
//   OpTakes(UnaryOp::kGelu, DType::kInt64);          // false
//   ResultDType(BinaryOp::kEqual, DType::kFloat32);  // DType::kUInt8
//
// Both back ends make their loops from these rows, so an operation is an
// enumerator and a row: it has a loop for every dtype that its row names, and
// for others the kernels throw. Constants and pure functions.

#ifndef D2L_COMMON_KERNELS_OP_TABLES_H_
#define D2L_COMMON_KERNELS_OP_TABLES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <type_traits>

#include "absl/strings/string_view.h"
#include "common/kernels/functors.h"
#include "common/tensor/dtype.h"

namespace d2l::kernels {

enum class DTypes { kAny, kFloatingPoint };

constexpr bool Contains(DTypes dtypes, DType dtype) {
  return dtypes == DTypes::kAny || IsFloatingPoint(dtype);
}

// F: the functor, or void where the family has none.
template <typename Op, typename F, DTypes kTaken>
struct OpRow {
  using Functor = F;
  static constexpr DTypes kDTypes = kTaken;
  Op op;
  const char* name;
};

template <typename F, DTypes kTaken = DTypes::kAny, typename Op>
constexpr OpRow<Op, F, kTaken> Row(Op op, const char* name) {
  return {op, name};
}

// OpTable<Op>::kRows: a tuple of the rows, in the order of the enumerators.
template <typename Op>
struct OpTable;

// ---- Functions of one operand. The result has its dtype.

enum class UnaryOp {
  kNegative,
  kAbs,
  kRelu,
  kSquare,
  kExp,
  kLog,
  kSqrt,
  kTanh,
  kSigmoid,
  kNdtr,
  kGelu,
  kCount,
};

template <>
struct OpTable<UnaryOp> {
  static constexpr auto kRows = std::make_tuple(
      Row<Negative>(UnaryOp::kNegative, "neg"), Row<Abs>(UnaryOp::kAbs, "abs"),
      Row<Relu>(UnaryOp::kRelu, "relu"),
      Row<Square>(UnaryOp::kSquare, "square"),
      Row<Exp, DTypes::kFloatingPoint>(UnaryOp::kExp, "exp"),
      Row<Log, DTypes::kFloatingPoint>(UnaryOp::kLog, "log"),
      Row<Sqrt, DTypes::kFloatingPoint>(UnaryOp::kSqrt, "sqrt"),
      Row<Tanh, DTypes::kFloatingPoint>(UnaryOp::kTanh, "tanh"),
      Row<Sigmoid, DTypes::kFloatingPoint>(UnaryOp::kSigmoid, "sigmoid"),
      Row<Ndtr, DTypes::kFloatingPoint>(UnaryOp::kNdtr, "ndtr"),
      Row<Gelu, DTypes::kFloatingPoint>(UnaryOp::kGelu, "gelu"));
};

// ---- Functions of two operands of one dtype.

// The comparisons give uint8, 1 or 0. kDivide is true division: float32 from
// integers. kFloorDivide rounds down; integers divided by zero fail late. kPow
// of integers takes exponents from 0 on; a negative exponent fails late.
enum class BinaryOp {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kPow,
  kMaximum,  // NaN if either is
  kMinimum,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kReluGradient,  // of the result's gradient and the result
  kTanhGradient,
  kSigmoidGradient,
  kCount,
};

template <>
struct OpTable<BinaryOp> {
  static constexpr auto kRows =
      std::make_tuple(Row<Add>(BinaryOp::kAdd, "add"),
                      Row<Subtract>(BinaryOp::kSubtract, "sub"),
                      Row<Multiply>(BinaryOp::kMultiply, "mul"),
                      Row<Divide>(BinaryOp::kDivide, "div"),
                      Row<FloorDivide>(BinaryOp::kFloorDivide, "floor_divide"),
                      Row<Power>(BinaryOp::kPow, "pow"),
                      Row<Maximum>(BinaryOp::kMaximum, "maximum"),
                      Row<Minimum>(BinaryOp::kMinimum, "minimum"),
                      Row<Equal>(BinaryOp::kEqual, "eq"),
                      Row<NotEqual>(BinaryOp::kNotEqual, "ne"),
                      Row<Less>(BinaryOp::kLess, "lt"),
                      Row<LessEqual>(BinaryOp::kLessEqual, "le"),
                      Row<Greater>(BinaryOp::kGreater, "gt"),
                      Row<GreaterEqual>(BinaryOp::kGreaterEqual, "ge"),
                      Row<ReluGradient, DTypes::kFloatingPoint>(
                          BinaryOp::kReluGradient, "relu_backward"),
                      Row<TanhGradient, DTypes::kFloatingPoint>(
                          BinaryOp::kTanhGradient, "tanh_backward"),
                      Row<SigmoidGradient, DTypes::kFloatingPoint>(
                          BinaryOp::kSigmoidGradient, "sigmoid_backward"));
};

// ---- Reductions.

// kSum of integers is int64; kMax and kMin are NaN if an element is; kArgMax is
// int64, the index of the first of the largest, or of the first NaN.
enum class ReduceOp { kSum, kMean, kMax, kMin, kArgMax };

template <>
struct OpTable<ReduceOp> {
  static constexpr auto kRows = std::make_tuple(
      Row<void>(ReduceOp::kSum, "sum"),
      Row<void, DTypes::kFloatingPoint>(ReduceOp::kMean, "mean"),
      Row<void>(ReduceOp::kMax, "amax"), Row<void>(ReduceOp::kMin, "amin"),
      Row<void>(ReduceOp::kArgMax, "argmax"));
};

// ---- Random numbers.

// kUniform is in [0, 1); kInteger is low + k for k in [0, range).
enum class RandomOp { kUniform, kNormal, kInteger };

template <>
struct OpTable<RandomOp> {
  static constexpr auto kRows = std::make_tuple(
      Row<void, DTypes::kFloatingPoint>(RandomOp::kUniform, "rand"),
      Row<void, DTypes::kFloatingPoint>(RandomOp::kNormal, "randn"),
      Row<void>(RandomOp::kInteger, "randint"));
};

// ---- Look-ups in the tables.

// {f(row), ...} for each row of a family.
template <typename Op, typename F>
constexpr auto TableOf(F f) {
  return std::apply([f](auto... row) { return std::array{f(row)...}; },
                    OpTable<Op>::kRows);
}

// A row, without the type of its functor.
template <typename Op>
struct OpInfo {
  Op op;
  const char* name;
  DTypes dtypes;
};
template <typename Op>
inline constexpr auto kOpInfos = TableOf<Op>([](auto row) {
  return OpInfo<Op>{row.op, row.name, row.kDTypes};
});

namespace internal {

// Whether there is a row for each of `count` enumerators, in their order.
template <typename Op>
constexpr bool IsComplete(int count) {
  int i = 0;
  for (const OpInfo<Op>& info : kOpInfos<Op>) {
    if (static_cast<int>(info.op) != i++) return false;
  }
  return i == count;
}
static_assert(IsComplete<UnaryOp>(static_cast<int>(UnaryOp::kCount)),
              "OpTable<UnaryOp>: a row for each UnaryOp, in their order");
static_assert(IsComplete<BinaryOp>(static_cast<int>(BinaryOp::kCount)),
              "OpTable<BinaryOp>: a row for each BinaryOp, in their order");
static_assert(IsComplete<ReduceOp>(static_cast<int>(ReduceOp::kArgMax) + 1),
              "OpTable<ReduceOp>: a row for each ReduceOp, in their order");
static_assert(IsComplete<RandomOp>(static_cast<int>(RandomOp::kInteger) + 1),
              "OpTable<RandomOp>: a row for each RandomOp, in their order");

inline constexpr auto kBinaryResults = TableOf<BinaryOp>([](auto row) {
  return ByDType([](auto x) {
    using Functor = typename decltype(row)::Functor;
    return DTypeOf<decltype(Functor()(x, x))>::value;
  });
});

inline constexpr auto kCommutes = TableOf<BinaryOp>([](auto row) {
  return std::is_base_of_v<Commutative, typename decltype(row)::Functor>;
});

}  // namespace internal

// PyTorch's name of the operation, as in messages and records.
template <typename Op>
constexpr const char* OpName(Op op) {
  return kOpInfos<Op>[static_cast<std::size_t>(op)].name;
}

// The operation of that name.
template <typename Op>
std::optional<Op> OpNamed(absl::string_view name) {
  for (const OpInfo<Op>& info : kOpInfos<Op>) {
    if (name == info.name) return info.op;
  }
  return std::nullopt;
}

template <typename Op>
constexpr bool OpTakes(Op op, DType dtype) {
  return Contains(kOpInfos<Op>[static_cast<std::size_t>(op)].dtypes, dtype);
}

// The dtype of the result for operands of `dtype`.
constexpr DType ResultDType(BinaryOp op, DType dtype) {
  return internal::kBinaryResults[static_cast<std::size_t>(op)]
                                 [static_cast<std::size_t>(dtype)];
}
constexpr DType ResultDType(ReduceOp op, DType dtype) {
  if (op == ReduceOp::kArgMax) return DType::kInt64;
  return op == ReduceOp::kSum && !IsFloatingPoint(dtype) ? DType::kInt64
                                                         : dtype;
}

// Whether the order of the operands does not matter.
constexpr bool Commutes(BinaryOp op) {
  return internal::kCommutes[static_cast<std::size_t>(op)];
}

// The same comparison, of the operands in the other order, for kGreater and
// kGreaterEqual, which have no loops. Other operations are returned unchanged.
constexpr BinaryOp WithoutGreater(BinaryOp op) {
  if (op == BinaryOp::kGreater) return BinaryOp::kLess;
  return op == BinaryOp::kGreaterEqual ? BinaryOp::kLessEqual : op;
}

// Throws std::invalid_argument: there is no loop of this operation for dtype.
[[noreturn]] void ThrowNoLoop(const char* name, DType dtype);

}  // namespace d2l::kernels

#endif  // D2L_COMMON_KERNELS_OP_TABLES_H_
