// The operations of each family of kernels: a row for each, with its name, its
// functor, the dtypes it takes and what an element costs.
//
//   OpName(UnaryOp::kGelu);                          // "gelu"
//   OpNamed<UnaryOp>("gelu");                        // UnaryOp::kGelu
//   OpTakes(UnaryOp::kGelu, DType::kInt64);          // false
//   OpFlop(UnaryOp::kNegative);                      // 1
//   ResultDType(BinaryOp::kEqual, DType::kFloat32);  // DType::kUInt8
//
// Both back ends make their loops from these rows, so an operation is an
// enumerator and a row: it has a loop for every dtype that its row names, and
// for others the kernels throw. Constants and pure functions.
//
// The functors are only declared here. functors.h defines them, for the loops
// alone, so that an edit of a functor compiles nothing else.

#ifndef D2L_COMMON_KERNELS_OP_TABLES_H_
#define D2L_COMMON_KERNELS_OP_TABLES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>

#include "absl/strings/string_view.h"
#include "common/tensor/dtype.h"

namespace d2l::kernels {

enum class DTypes { kAny, kFloatingPoint };

constexpr bool Contains(DTypes dtypes, DType dtype) {
  return dtypes == DTypes::kAny || IsFloatingPoint(dtype);
}

// F: the functor, or void where the family has none. flop: the floating-point
// operations that an element takes (OpCost in ops/primitive/primitive.h).
template <auto kOp, typename F, DTypes kTaken>
struct OpRow {
  using Functor = F;
  static constexpr auto op = kOp;
  static constexpr DTypes kDTypes = kTaken;
  const char* name;
  int flop;
};

template <auto kOp, typename F, DTypes kTaken = DTypes::kAny>
constexpr OpRow<kOp, F, kTaken> Row(const char* name, int flop) {
  return {name, flop};
}

// A row of a family without functors, whose primitives count their operations.
template <auto kOp, DTypes kTaken = DTypes::kAny>
constexpr OpRow<kOp, void, kTaken> Row(const char* name) {
  return {name, 0};
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

// What the functions of math.h take, step by step; comparisons can go on beside
// them. A polynomial of n coefficients takes a fused multiplication and
// addition for each but the first.
constexpr int PolynomialFlop(int n) { return 2 * (n - 1); }
// The exponent 3, what is left of x 4, its polynomial and 4, the scale 2.
inline constexpr int kExpFlop = 3 + 4 + PolynomialFlop(5) + 4 + 2;
// x = 2^e (1 + f), log(2) e + f, the rest.
inline constexpr int kLogFlop = 3 + 4 + PolynomialFlop(9) + 2 + 5;
// The exponent 3, what is left of x 4, its tanh 4 and a polynomial, the
// quotient.
inline constexpr int kTanhFlop = 3 + 4 + 4 + PolynomialFlop(3) + 7;
// e^(-x^2/2) to the last place, times the other polynomial, of a quotient.
inline constexpr int kNormalTailFlop =
    4 + kExpFlop + 3 + 4 + PolynomialFlop(10) + 3;

template <>
struct OpTable<UnaryOp> {
  static constexpr auto kRows = std::tuple{
      Row<UnaryOp::kNegative, struct Negative>("neg", 1),
      Row<UnaryOp::kAbs, struct Abs>("abs", 1),
      Row<UnaryOp::kRelu, struct Relu>("relu", 1),
      Row<UnaryOp::kSquare, struct Square>("square", 1),
      Row<UnaryOp::kExp, struct Exp, DTypes::kFloatingPoint>("exp", kExpFlop),
      Row<UnaryOp::kLog, struct Log, DTypes::kFloatingPoint>("log", kLogFlop),
      Row<UnaryOp::kSqrt, struct Sqrt, DTypes::kFloatingPoint>("sqrt", 1),
      Row<UnaryOp::kTanh, struct Tanh, DTypes::kFloatingPoint>("tanh",
                                                               kTanhFlop),
      Row<UnaryOp::kSigmoid, struct Sigmoid, DTypes::kFloatingPoint>(
          "sigmoid", kExpFlop + 4),
      Row<UnaryOp::kNdtr, struct Ndtr, DTypes::kFloatingPoint>(
          "ndtr", kNormalTailFlop + 1),
      Row<UnaryOp::kGelu, struct Gelu, DTypes::kFloatingPoint>(
          "gelu", kNormalTailFlop + 1),
  };
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
  static constexpr auto kRows = std::tuple{
      Row<BinaryOp::kAdd, struct Add>("add", 1),
      Row<BinaryOp::kSubtract, struct Subtract>("sub", 1),
      Row<BinaryOp::kMultiply, struct Multiply>("mul", 1),
      Row<BinaryOp::kDivide, struct Divide>("div", 1),
      Row<BinaryOp::kFloorDivide, struct FloorDivide>("floor_divide", 1),
      Row<BinaryOp::kPow, struct Power>("pow", 1),
      Row<BinaryOp::kMaximum, struct Maximum>("maximum", 1),
      Row<BinaryOp::kMinimum, struct Minimum>("minimum", 1),
      Row<BinaryOp::kEqual, struct Equal>("eq", 1),
      Row<BinaryOp::kNotEqual, struct NotEqual>("ne", 1),
      Row<BinaryOp::kLess, struct Less>("lt", 1),
      Row<BinaryOp::kLessEqual, struct LessEqual>("le", 1),
      Row<BinaryOp::kGreater, struct Greater>("gt", 1),
      Row<BinaryOp::kGreaterEqual, struct GreaterEqual>("ge", 1),
      Row<BinaryOp::kReluGradient, struct ReluGradient, DTypes::kFloatingPoint>(
          "relu_backward", 1),
      Row<BinaryOp::kTanhGradient, struct TanhGradient, DTypes::kFloatingPoint>(
          "tanh_backward", 3),
      Row<BinaryOp::kSigmoidGradient, struct SigmoidGradient,
          DTypes::kFloatingPoint>("sigmoid_backward", 3),
  };
};

// ---- Reductions.

// kSum of integers is int64; kMax and kMin are NaN if an element is; kArgMax is
// int64, the index of the first of the largest, or of the first NaN.
enum class ReduceOp { kSum, kMean, kMax, kMin, kArgMax };

template <>
struct OpTable<ReduceOp> {
  static constexpr auto kRows = std::tuple{
      Row<ReduceOp::kSum>("sum"),
      Row<ReduceOp::kMean, DTypes::kFloatingPoint>("mean"),
      Row<ReduceOp::kMax>("amax"),
      Row<ReduceOp::kMin>("amin"),
      Row<ReduceOp::kArgMax>("argmax"),
  };
};

// ---- Random numbers.

// kUniform is in [0, 1); kInteger is low + k for k in [0, range).
enum class RandomOp { kUniform, kNormal, kInteger };

template <>
struct OpTable<RandomOp> {
  static constexpr auto kRows = std::tuple{
      Row<RandomOp::kUniform, DTypes::kFloatingPoint>("rand"),
      Row<RandomOp::kNormal, DTypes::kFloatingPoint>("randn"),
      Row<RandomOp::kInteger>("randint"),
  };
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
  int flop;
};
template <typename Op>
inline constexpr auto kOpInfos = TableOf<Op>([](auto row) {
  return OpInfo<Op>{row.op, row.name, row.kDTypes, row.flop};
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

// The floating-point operations that an element takes.
template <typename Op>
constexpr int OpFlop(Op op) {
  return kOpInfos<Op>[static_cast<std::size_t>(op)].flop;
}

constexpr bool IsComparison(BinaryOp op) {
  return op >= BinaryOp::kEqual && op <= BinaryOp::kGreaterEqual;
}

// The dtype of the result for operands of `dtype`.
constexpr DType ResultDType(BinaryOp op, DType dtype) {
  if (IsComparison(op)) return DType::kUInt8;
  return op == BinaryOp::kDivide && !IsFloatingPoint(dtype) ? DType::kFloat32
                                                            : dtype;
}
constexpr DType ResultDType(ReduceOp op, DType dtype) {
  if (op == ReduceOp::kArgMax) return DType::kInt64;
  return op == ReduceOp::kSum && !IsFloatingPoint(dtype) ? DType::kInt64
                                                         : dtype;
}

// Whether the order of the operands does not matter.
constexpr bool Commutes(BinaryOp op) {
  return op == BinaryOp::kAdd || op == BinaryOp::kMultiply ||
         op == BinaryOp::kMaximum || op == BinaryOp::kMinimum ||
         op == BinaryOp::kEqual || op == BinaryOp::kNotEqual;
}

// kGreater and kGreaterEqual have no loops: this is their comparison of the
// operands in the other order. Other operations are returned unchanged.
constexpr BinaryOp WithoutGreater(BinaryOp op) {
  if (op == BinaryOp::kGreater) return BinaryOp::kLess;
  return op == BinaryOp::kGreaterEqual ? BinaryOp::kLessEqual : op;
}

// Throws std::invalid_argument: there is no loop of this operation for dtype.
[[noreturn]] void ThrowNoLoop(const char* name, DType dtype);

}  // namespace d2l::kernels

#endif  // D2L_COMMON_KERNELS_OP_TABLES_H_
