#include "common/kernels/testing/unary_cases.h"

#include <cmath>
#include <utility>
#include <vector>

namespace d2l::kernels {
namespace {

// `formula` takes any type of number.
template <UnaryOp kOp, typename F>
UnaryCase Case(F formula, double ulps, Domain domain, GradientReads reads,
               std::vector<double> points) {
  UnaryCase one = {kOp,  OpName(kOp), formula, formula,          nullptr,
                   ulps, domain,      reads,   std::move(points)};
  if constexpr (OpTakes(kOp, DType::kInt64)) one.integer = formula;
  return one;
}

}  // namespace

const std::vector<UnaryCase>& UnaryCases() {
  static const auto& cases = *new std::vector<UnaryCase>{
      Case<UnaryOp::kNegative>([](auto x) { return -x; }, /*ulps=*/0,
                               Domain::kAll, GradientReads::kNothing,
                               /*points=*/{-2, 3}),
      Case<UnaryOp::kAbs>([](auto x) { return x < 0 ? -x : +x; }, /*ulps=*/0,
                          Domain::kAll, GradientReads::kOperand,
                          /*points=*/{-2, 3}),
      Case<UnaryOp::kRelu>([](auto x) { return x < 0 ? 0 : x; }, /*ulps=*/0,
                           Domain::kAll, GradientReads::kResult,
                           /*points=*/{-2, 3}),
      Case<UnaryOp::kSquare>([](auto x) { return x * x; }, /*ulps=*/0,
                             Domain::kAll, GradientReads::kOperand,
                             /*points=*/{-2, 3}),
      Case<UnaryOp::kExp>([](auto x) { return std::exp(x); }, /*ulps=*/1,
                          Domain::kAll, GradientReads::kResult,
                          /*points=*/{-20, -0.01, 3}),
      Case<UnaryOp::kLog>([](auto x) { return std::log(x); }, /*ulps=*/1,
                          Domain::kPositive, GradientReads::kOperand,
                          /*points=*/{0.3, 1.01, 20}),
      Case<UnaryOp::kSqrt>([](auto x) { return std::sqrt(x); }, /*ulps=*/0,
                           Domain::kPositive, GradientReads::kResult,
                           /*points=*/{0.3, 20}),
      Case<UnaryOp::kTanh>([](auto x) { return std::tanh(x); }, /*ulps=*/2.5,
                           Domain::kAll, GradientReads::kResult,
                           /*points=*/{-9, -0.1, 0.2, 2, 30}),
      Case<UnaryOp::kSigmoid>([](auto x) { return 1 / (1 + std::exp(-x)); },
                              /*ulps=*/2, Domain::kAll, GradientReads::kResult,
                              /*points=*/{-40, -1, 2, 40}),
      Case<UnaryOp::kNdtr>(
          [](auto x) { return std::erfc(-x / std::sqrt(decltype(x){2})) / 2; },
          /*ulps=*/7, Domain::kAll, GradientReads::kOperand,
          /*points=*/{-40, -3, 0.5, 40}),
      Case<UnaryOp::kGelu>(
          [](auto x) {
            // The limit of -infinity, where the formula gives NaN.
            if (std::isinf(x) && x < 0) return decltype(x){-0.0};
            return x * std::erfc(-x / std::sqrt(decltype(x){2})) / 2;
          },
          /*ulps=*/7, Domain::kAll, GradientReads::kOperand,
          /*points=*/{-40, -3, 0.5, 40}),
  };
  return cases;
}

}  // namespace d2l::kernels
