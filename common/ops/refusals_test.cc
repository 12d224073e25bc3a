// More messages: of operations that combine tensors, and of devices.

#include <cstdint>
#include <string>
#include <vector>

#include "common/ops/ops.h"
#include "common/ops/testing/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using ::testing::HasSubstr;

const char kUndefined[] =
    "an operand is an undefined tensor (a Tensor that was declared and never "
    "assigned)";

class RefusalsTest : public DeviceTest {
 protected:
  std::string On() const { return " on " + device().ToString(); }

  const Tensor undefined_ = Tensor();
  const Tensor scalar_ = Ones({}, device());
  const Tensor vector_ = Ones({3}, device());
  const Tensor matrix_ = Ones({2, 3}, device());
  const Tensor doubles_ = Ones({3, 2}, device(), DType::kFloat64);
  const Tensor integers_ = Ones({2, 3}, device(), DType::kInt64);
};

TEST_P(RefusalsTest, MatMul) {
  EXPECT_REFUSED("[matmul] inner sizes differ: (2, 3) @ (4, 5)",
                 MatMul(matrix_, Ones({4, 5}, device())));
  EXPECT_REFUSED("[matmul] inner sizes differ: (2, 3) @ (2)",
                 MatMul(matrix_, Ones({2}, device())));
  EXPECT_REFUSED("[matmul] inner sizes differ: (3) @ (2, 3)",
                 MatMul(vector_, matrix_));
  EXPECT_REFUSED(
      "[matmul] vectors, matrices or batches of them wanted; got (2, 3) @ (); "
      "to scale by a number write a * b",
      MatMul(matrix_, scalar_));
  EXPECT_REFUSED(
      "[matmul] two float32 or two float64 operands wanted; got float32 and "
      "float64",
      MatMul(matrix_, doubles_));
  EXPECT_REFUSED(
      "[matmul] two float32 or two float64 operands wanted; got int64 and "
      "int64",
      MatMul(integers_, integers_));
  EXPECT_REFUSED(
      "[matmul] shapes (2) and (3) do not broadcast: 2 against 3 in dimension "
      "1 from the end",
      MatMul(Ones({2, 4, 5}, device()), Ones({3, 5, 4}, device())));
  EXPECT_REFUSED(std::string("[matmul] ") + kUndefined,
                 MatMul(matrix_, undefined_));
  EXPECT_REFUSED(
      "[dot] two vectors wanted; got (2, 3) and (3); for matrices use MatMul",
      Dot(matrix_, vector_));
  EXPECT_REFUSED("[matmul] inner sizes differ: (3) @ (2)",
                 Dot(vector_, Ones({2}, device())));
}

TEST_P(RefusalsTest, Reductions) {
  EXPECT_REFUSED("[sum] dimension 2 is out of range; valid are -2 to 1",
                 Sum(matrix_, 2));
  EXPECT_REFUSED("[amax] dimension -3 is out of range; valid are -2 to 1",
                 Max(matrix_, {0, -3}));
  EXPECT_REFUSED("[sum] dimension -1 is named twice", Sum(matrix_, {1, -1}));
  EXPECT_REFUSED(
      "[mean] float32 or float64 wanted; got an int64 tensor of shape (2, 3)" +
          On() + "; convert it: To(x, DType::kFloat32)",
      Mean(integers_));
  EXPECT_REFUSED("[argmax] one dimension wanted, or none for all elements",
                 ArgMax(matrix_, {0, 1}));
  EXPECT_REFUSED(
      "[amin] no elements to choose from: a dimension that is reduced has "
      "size 0 in (0, 3)",
      Min(Ones({0, 3}, device()), 0));
  EXPECT_REFUSED(
      "[argmax] no elements to choose from: a dimension that is reduced has "
      "size 0 in (0)",
      ArgMax(Ones({0}, device())));
  EXPECT_REFUSED(std::string("[amax] ") + kUndefined, Max(undefined_));
  EXPECT_REFUSED("[softmax] dimension 2 is out of range; valid are -2 to 1",
                 Softmax(matrix_, 2));
  EXPECT_REFUSED(
      "[log_softmax] dimension -2 is out of range; valid are -1 to 0",
      LogSoftmax(vector_, -2));
  EXPECT_REFUSED(
      "[softmax] float32 or float64 wanted; got an int64 tensor of shape (2, "
      "3)" +
          On() + "; convert it: To(x, DType::kFloat32)",
      Softmax(integers_, 0));
  EXPECT_REFUSED(std::string("[log_softmax] ") + kUndefined,
                 LogSoftmax(undefined_, 0));
}

TEST_P(RefusalsTest, Joining) {
  EXPECT_REFUSED("[cat] at least one tensor wanted; got none",
                 Cat(std::vector<Tensor>()));
  EXPECT_REFUSED("[cat] scalars cannot be joined along a dimension; use Stack",
                 (Cat({scalar_, scalar_})));
  EXPECT_REFUSED(
      "[cat] sizes differ outside dimension 0: tensor 1 is (3), the first (2, "
      "3)",
      (Cat({matrix_, vector_})));
  EXPECT_REFUSED(
      "[cat] sizes differ outside dimension 1: tensor 2 is (3, 3), the first "
      "(2, 3)",
      (Cat({matrix_, matrix_, Ones({3, 3}, device())}, -1)));
  EXPECT_REFUSED(
      "[cat] tensor 1 is int64, the first float32; convert one of them: To(x, "
      "DType)",
      (Cat({matrix_, integers_})));
  EXPECT_REFUSED("[cat] dimension 2 is out of range; valid are -2 to 1",
                 (Cat({matrix_, matrix_}, 2)));
  EXPECT_REFUSED(std::string("[cat] ") + kUndefined,
                 (Cat({matrix_, undefined_})));
  EXPECT_REFUSED(std::string("[cat] ") + kUndefined,
                 (Cat({undefined_, T(matrix_)})));
  EXPECT_REFUSED(
      "[stack] tensors of one shape wanted: tensor 1 is (3), the first (2, 3)",
      (Stack({matrix_, vector_})));
  EXPECT_REFUSED("[cat] at least one tensor wanted; got none",
                 Stack(std::vector<Tensor>()));
  EXPECT_REFUSED("[unsqueeze] dimension 3 is out of range; valid are -3 to 2",
                 (Stack({matrix_, matrix_}, 3)));
  EXPECT_REFUSED(std::string("[cat] ") + kUndefined,
                 (VStack({undefined_, vector_})));
  EXPECT_REFUSED(
      "[cat] sizes differ outside dimension 0: tensor 1 is (1, 2), the first "
      "(1, 3)",
      (VStack({vector_, Ones({2}, device())})));
}

TEST_P(RefusalsTest, Indices) {
  const Tensor index = Zeros({2}, device(), DType::kInt64);
  EXPECT_REFUSED(
      "[index_select] an int64 index wanted; got a float32 tensor of shape "
      "(3)" +
          On(),
      IndexSelect(matrix_, 0, vector_));
  EXPECT_REFUSED("[index_select] the index must be a vector; got (2, 3)",
                 IndexSelect(matrix_, 0, integers_));
  EXPECT_REFUSED(
      "[index_select] dimension 2 is out of range; valid are -2 to 1",
      IndexSelect(matrix_, 2, index));
  EXPECT_REFUSED(std::string("[index_select] ") + kUndefined,
                 IndexSelect(matrix_, 0, undefined_));
  EXPECT_REFUSED(
      "[gather] the index must have as many dimensions as the tensor, none "
      "longer but dimension 0: index (2), tensor (2, 3)",
      Gather(matrix_, 0, index));
  EXPECT_REFUSED(
      "[gather] the index must have as many dimensions as the tensor, none "
      "longer but dimension 1: index (3, 1), tensor (2, 3)",
      Gather(matrix_, 1, Zeros({3, 1}, device(), DType::kInt64)));
  EXPECT_REFUSED("[gather] dimension -3 is out of range; valid are -2 to 1",
                 Gather(matrix_, -3, integers_));
  EXPECT_REFUSED(std::string("[gather] ") + kUndefined,
                 Gather(undefined_, 0, index));
}

TEST_P(RefusalsTest, ReadingAndComparing) {
  EXPECT_REFUSED(
      "[item] one element wanted; got a float32 tensor of shape (2, 3)" + On(),
      Item(matrix_));
  EXPECT_REFUSED("[item] the tensor is undefined (declared and never assigned)",
                 Item(undefined_));
  EXPECT_REFUSED(
      "[to_vector] float64 elements asked of a float32 tensor of "
      "shape (2, 3)" +
          On(),
      ToVector<double>(matrix_));
  EXPECT_REFUSED(
      "[to_vector] the tensor is undefined (declared and never assigned)",
      ToVector<float>(undefined_));
  EXPECT_REFUSED(
      "[wait_to_read] the tensor is undefined (declared and never assigned)",
      WaitToRead(undefined_));
  EXPECT_REFUSED("[equal] an operand is an undefined tensor",
                 Equal(matrix_, undefined_));
  EXPECT_REFUSED("[equal] a float32 tensor of shape (2, 3)" + On() +
                     " and an int64 tensor of shape (2, 3)" + On() +
                     ": convert or copy one of them",
                 Equal(matrix_, integers_));
  EXPECT_REFUSED("[allclose] the shapes differ: (2, 3) and (3)",
                 AllClose(matrix_, vector_));
  EXPECT_REFUSED("[allclose] an operand is an undefined tensor",
                 AllClose(undefined_, matrix_));
}

TEST_P(RefusalsTest, TwoDevices) {
  const Device other = OtherDevice(device());
  if (other == device()) GTEST_SKIP() << "needs two devices";
  const std::string devices = "operands on two devices, " +
                              device().ToString() + " and " + other.ToString() +
                              "; copy one to the other's device first";
  const Tensor elsewhere = Ones({2, 3}, other);
  Tensor x = Ones({2, 3}, device());
  EXPECT_REFUSED("[add] " + devices, x + elsewhere);
  EXPECT_REFUSED("[mul] " + devices, x *= elsewhere);
  EXPECT_REFUSED("[where] " + devices, Where(x > 0, elsewhere, 1));
  EXPECT_REFUSED("[matmul] " + devices, MatMul(x, T(elsewhere)));
  EXPECT_REFUSED("[cat] " + devices, (Cat({x, elsewhere})));
  EXPECT_REFUSED("[index_select] " + devices,
                 IndexSelect(x, 0, Zeros({1}, other, DType::kInt64)));
  EXPECT_REFUSED("[equal] a float32 tensor of shape (2, 3)" + On() +
                     " and a float32 tensor of shape (2, 3) on " +
                     other.ToString() + ": convert or copy one of them",
                 Equal(x, elsewhere));
}

TEST_P(RefusalsTest, ADeviceThatIsNotThere) {
  const Device nowhere(DeviceType::kCpu, 63);
  const std::string absent = "[device] cpu:63 is not in the device table";
  EXPECT_THAT(ThrownText([&] { Ones({1}, nowhere); }), HasSubstr(absent));
  EXPECT_THAT(ThrownText([&] { Empty({1}, nowhere); }), HasSubstr(absent));
  EXPECT_THAT(ThrownText([&] { To(matrix_, nowhere); }), HasSubstr(absent));
  EXPECT_THAT(ThrownText([&] { FromVector<float>({1}, {1}, nowhere); }),
              HasSubstr(absent));
}

INSTANTIATE_FOR_ALL_DEVICES(RefusalsTest);

}  // namespace
}  // namespace d2l
