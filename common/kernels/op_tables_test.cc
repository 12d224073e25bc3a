#include "common/kernels/op_tables.h"

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>

#include "common/kernels/testing/unary_cases.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l::kernels {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StrEq;

constexpr DType kAllDTypes[] = {DType::kFloat32, DType::kFloat64, DType::kInt64,
                                DType::kUInt8};

template <typename Op>
class OpTablesTest : public testing::Test {};
using Families = testing::Types<UnaryOp, BinaryOp, ReduceOp, RandomOp>;
TYPED_TEST_SUITE(OpTablesTest, Families, );

TYPED_TEST(OpTablesTest, NamesLeadBackToTheOperation) {
  for (const OpInfo<TypeParam>& info : kOpInfos<TypeParam>) {
    EXPECT_THAT(OpName(info.op), StrEq(info.name));
    EXPECT_EQ(OpNamed<TypeParam>(info.name), info.op) << info.name;
    EXPECT_TRUE(OpTakes(info.op, DType::kFloat32)) << info.name;
    EXPECT_TRUE(OpTakes(info.op, DType::kFloat64)) << info.name;
    EXPECT_EQ(OpTakes(info.op, DType::kInt64), info.dtypes == DTypes::kAny);
    EXPECT_EQ(OpTakes(info.op, DType::kUInt8), info.dtypes == DTypes::kAny);
  }
  EXPECT_EQ(OpNamed<TypeParam>(""), std::nullopt);
  EXPECT_EQ(OpNamed<TypeParam>("no such operation"), std::nullopt);
}

TEST(OpTables, EveryFunctionOfOneOperandIsTested) {
  std::size_t next = 0;
  for (const OpInfo<UnaryOp>& info : kOpInfos<UnaryOp>) {
    ASSERT_LT(next, UnaryCases().size())
        << info.name << " has no entry in testing/unary_cases.cc";
    EXPECT_STREQ(UnaryCases()[next++].name, info.name)
        << "testing/unary_cases.cc lacks an entry, or has another order";
  }
  EXPECT_EQ(next, UnaryCases().size());
}

TEST(OpTables, SayWhatOperationsTakeAndGive) {
  EXPECT_FALSE(OpTakes(UnaryOp::kGelu, DType::kInt64));
  EXPECT_FALSE(OpTakes(ReduceOp::kMean, DType::kUInt8));
  EXPECT_TRUE(OpTakes(UnaryOp::kRelu, DType::kUInt8));
  for (const DType dtype : kAllDTypes) {
    EXPECT_EQ(ResultDType(BinaryOp::kGreaterEqual, dtype), DType::kUInt8);
    EXPECT_EQ(ResultDType(BinaryOp::kPow, dtype), dtype);
    EXPECT_EQ(ResultDType(BinaryOp::kDivide, dtype),
              IsFloatingPoint(dtype) ? dtype : DType::kFloat32);
    EXPECT_EQ(ResultDType(ReduceOp::kArgMax, dtype), DType::kInt64);
  }
  EXPECT_EQ(OpFlop(UnaryOp::kNegative), 1);
  EXPECT_GT(OpFlop(UnaryOp::kGelu), OpFlop(UnaryOp::kExp));
  EXPECT_TRUE(Commutes(BinaryOp::kMaximum));
  EXPECT_FALSE(Commutes(BinaryOp::kSubtract));
}

TEST(OpTables, AMissingLoopNamesOperationAndDType) {
  try {
    ThrowNoLoop("gelu", DType::kInt64);
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("[gelu]"), HasSubstr("int64")));
  }
}

}  // namespace
}  // namespace d2l::kernels
