// A wrong request throws at the call; the message is a whole sentence and names
// the caller's line.

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "common/ops/ops.h"
#include "common/ops/testing/testing.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr DType kFloat64 = DType::kFloat64;
constexpr DType kInt64 = DType::kInt64;
constexpr DType kUInt8 = DType::kUInt8;

class MessagesTest : public DeviceTest {
 protected:
  std::string On() const { return " on " + device().ToString(); }

  const Tensor undefined_ = Tensor();
  const Tensor scalar_ = Ones({}, device());
  const Tensor vector_ = Ones({3}, device());
  const Tensor matrix_ = Ones({2, 3}, device());
  const Tensor cube_ = Ones({2, 3, 4}, device());
  const Tensor doubles_ = Ones({2, 3}, device(), kFloat64);
  const Tensor integers_ = Ones({2, 3}, device(), kInt64);
  const Tensor bytes_ = Ones({2, 3}, device(), kUInt8);
};

TEST_P(MessagesTest, Creation) {
  const Device d = device();
  EXPECT_REFUSED("[ones] a size is negative: (2, -3)", Ones({2, -3}, d));
  EXPECT_REFUSED("[zeros] a size is negative: (-1)", Zeros({-1}, d));
  EXPECT_REFUSED("[empty] a size is negative: (-1)", Empty({-1}, d));
  EXPECT_REFUSED("[eye] a size is negative: (-2, -2)", Eye(-2, d));
  EXPECT_REFUSED(
      "[randn] (9223372036854775807, 2) has more elements than 64 bits can "
      "count the bytes of",
      Randn({kMax, 2}, d));
  EXPECT_REFUSED(
      "[full] (4611686018427387904) has more elements than 64 bits can count "
      "the bytes of",
      Full({kMax / 2 + 1}, 1, d));
  EXPECT_REFUSED("[full] 0.5 is not a value of the dtype int64",
                 Full({2}, 0.5, d, kInt64));
  EXPECT_REFUSED("[full] 256 is not a value of the dtype uint8",
                 Full({2}, 256, d, kUInt8));
  EXPECT_REFUSED("[full] -1 is not a value of the dtype uint8",
                 FullLike(bytes_, -1));
  EXPECT_REFUSED(
      "[rand] random numbers are float32 or float64, not int64; for integers "
      "use RandInt",
      Rand({2}, d, kInt64));
  EXPECT_REFUSED(
      "[randn] random numbers are float32 or float64, not uint8; for integers "
      "use RandInt",
      RandnLike(bytes_));
  EXPECT_REFUSED("[randint] no integers from 5 to 5 - 1",
                 RandInt(5, 5, {2}, d));
  EXPECT_REFUSED(
      "[randint] not all integers from 0 to 257 - 1 are values of the dtype "
      "uint8",
      RandInt(0, 257, {2}, d, kUInt8));
  EXPECT_REFUSED(
      "[randint] not all integers from 2147483646 to 2147483648 - 1 are values "
      "of the dtype float32",
      RandInt((std::int64_t{1} << 31) - 2, std::int64_t{1} << 31, {2}, d,
              DType::kFloat32));
  EXPECT_REFUSED("[ones_like] the template tensor is undefined",
                 OnesLike(undefined_));
  EXPECT_REFUSED("[empty_like] the template tensor is undefined",
                 EmptyLike(undefined_));
  EXPECT_REFUSED("[from_vector] 3 numbers do not make a tensor of shape (2, 2)",
                 FromVector<float>({1, 2, 3}, {2, 2}, d));
  EXPECT_REFUSED("[from_vector] a size is negative: (-3)",
                 FromVector<float>({1, 2, 3}, {-3}, d));
}

TEST_P(MessagesTest, Ranges) {
  const Device d = device();
  EXPECT_REFUSED(
      "[arange] from 0 to 5 in steps of -1: the step leads away from the end",
      Arange(0, 5, -1, d));
  EXPECT_REFUSED(
      "[arange] from 0 to -2 in steps of 1: the step leads away from the end",
      Arange(-2, d));
  EXPECT_REFUSED(
      "[arange] from 0 to 5 in steps of 0: the numbers must be finite, and "
      "the step not 0",
      Arange(0, 5, 0, d));
  EXPECT_REFUSED(
      "[arange] from 0 to inf in steps of 1: the numbers must be finite, and "
      "the step not 0",
      Arange(0, std::numeric_limits<double>::infinity(), 1, d));
  EXPECT_REFUSED("[arange] 0.5 is not a value of the dtype int64",
                 Arange(0, 5, 0.5, d, kInt64));
  EXPECT_REFUSED(
      "[arange] from 0 to 257 in steps of 1: not all are values of the dtype "
      "uint8",
      Arange(0, 257, 1, d, kUInt8));
  EXPECT_REFUSED(
      "[arange] (9223372036854775807) has more elements than 64 bits can "
      "count the bytes of",
      Arange(-kMax - 1, kMax, 1, d));
}

TEST_P(MessagesTest, Operands) {
  EXPECT_REFUSED(
      "[add] shapes (2, 3) and (4, 3) do not broadcast: 2 against 4 in "
      "dimension 2 from the end",
      matrix_ + Ones({4, 3}, device()));
  EXPECT_REFUSED(
      "[lt] shapes (3) and (2) do not broadcast: 3 against 2 in dimension 1 "
      "from the end",
      vector_ < Ones({2}, device()));
  EXPECT_REFUSED(
      "[mul] operands of two dtypes, float32 and int64; convert one of them: "
      "To(x, DType)",
      matrix_ * integers_);
  EXPECT_REFUSED(
      "[maximum] operands of two dtypes, float64 and float32; convert one of "
      "them: To(x, DType)",
      Maximum(doubles_, matrix_));
  EXPECT_REFUSED(
      "[add] the scalar 0.5 is not a value of the tensor's dtype int64",
      integers_ + 0.5);
  EXPECT_REFUSED(
      "[sub] the scalar 256 is not a value of the tensor's dtype uint8",
      256 - bytes_);
  EXPECT_REFUSED(
      "[eq] the scalar -1 is not a value of the tensor's dtype uint8",
      bytes_ == -1);
  EXPECT_REFUSED(
      "[div] the scalar 9223372036854775808.0 is not a value of the tensor's "
      "dtype int64",
      integers_ / 0x1p63);
  EXPECT_REFUSED(
      "[add] an operand is an undefined tensor (a Tensor that was declared "
      "and never assigned)",
      matrix_ + undefined_);
  EXPECT_REFUSED(
      "[neg] an operand is an undefined tensor (a Tensor that was declared "
      "and never assigned)",
      -undefined_);
  EXPECT_REFUSED("[maximum] one operand must be a tensor", Maximum(1, 2));
  EXPECT_REFUSED("[pow] one operand must be a tensor", Pow(1, 2.5));
  EXPECT_REFUSED(
      "[pow] integers to a negative power, -1; convert them: To(x, "
      "DType::kFloat32)",
      Pow(Zeros({0}, device(), DType::kInt64), -1));
  EXPECT_REFUSED(
      "[exp] float32 or float64 wanted; got an int64 tensor of shape (2, 3)" +
          On() + "; convert it: To(x, DType::kFloat32)",
      Exp(integers_));
  EXPECT_REFUSED(
      "[sigmoid] float32 or float64 wanted; got a uint8 tensor of shape (2, "
      "3)" +
          On() + "; convert it: To(x, DType::kFloat32)",
      Sigmoid(bytes_));
  const Tensor wide = Expand(scalar_, {kMax / 4});
  EXPECT_REFUSED(
      "[add] (2, 2305843009213693951) has more elements than 64 bits can "
      "count the bytes of",
      wide + Ones({2, 1}, device()));
}

TEST_P(MessagesTest, Where) {
  EXPECT_REFUSED(
      "[where] the condition must be uint8, as comparisons give it; got a "
      "float32 tensor of shape (2, 3)" +
          On(),
      Where(matrix_, matrix_, matrix_));
  EXPECT_REFUSED(
      "[where] operands of two dtypes, float32 and float64; convert one of "
      "them: To(x, DType)",
      Where(bytes_, matrix_, doubles_));
  EXPECT_REFUSED(
      "[where] the scalar 0.5 is not a value of the tensor's dtype int64",
      Where(bytes_, 0.5, integers_));
  EXPECT_REFUSED("[where] one operand must be a tensor", Where(bytes_, 1, 2));
  EXPECT_REFUSED(
      "[where] shapes (2, 3) and (4, 1, 1, 2) do not broadcast: 3 against 2 "
      "in dimension 1 from the end",
      Where(bytes_, Ones({4, 1, 1, 2}, device()), 1));
}

TEST_P(MessagesTest, InPlace) {
  Tensor row = Ones({3}, device());
  const std::string to_row =
      ", does not fit in place into a float32 tensor of shape (3)" + On();
  EXPECT_REFUSED("[add_] the result, float32 of shape (2, 3)" + On() + to_row,
                 row += matrix_);
  Tensor n = Ones({2, 3}, device(), kInt64);
  EXPECT_REFUSED("[div_] the result, float32 of shape (2, 3)" + On() +
                     ", does not fit in place into an int64 tensor of shape "
                     "(2, 3)" +
                     On(),
                 n /= 2);
  Tensor repeated = Expand(vector_, {2, 3});
  EXPECT_REFUSED(
      "[mul_] the target, a float32 tensor of shape (2, 3)" + On() +
          ", repeats its elements in dimension 0, so several results would go "
          "to one place; write to a copy of it, Contiguous(x)",
      repeated *= 2);
  EXPECT_REFUSED("[fill_] the tensor is undefined", FillInPlace(undefined_, 1));
  EXPECT_REFUSED(
      "[fill] the scalar 0.5 is not a value of the tensor's dtype int64",
      FillInPlace(n, 0.5));
  const std::string overlaps =
      ", overlaps an operand of shape (4) without being the same: elements "
      "would be overwritten before they are read; copy the operand first, "
      "Clone(x)";
  const Tensor five = Ones({5}, device());
  Tensor tail = Slice(five, 0, 1);
  EXPECT_REFUSED(
      "[add_] the target, a float32 tensor of shape (4)" + On() + overlaps,
      tail += Slice(five, 0, 0, 4));
  EXPECT_REFUSED(
      "[copy_] the target, a float32 tensor of shape (4)" + On() + overlaps,
      (five[Range{1, 5}] = five[Range{0, 4}]));
  EXPECT_REFUSED(
      "[copy_] the target, a float32 tensor of shape (4)" + On() + overlaps,
      CopyTo(Slice(five, 0, 0, 4), tail));
  EXPECT_EQ(ValuesOf(five), std::vector<double>(5, 1)) << "it was written to";
}

TEST_P(MessagesTest, Copies) {
  const std::string undefined =
      "an operand is an undefined tensor (a Tensor that was declared and "
      "never assigned)";
  EXPECT_REFUSED("[to] " + undefined, To(undefined_, device()));
  EXPECT_REFUSED("[to] " + undefined, To(undefined_, kInt64));
  EXPECT_REFUSED("[clone] " + undefined, Clone(undefined_));
  EXPECT_REFUSED("[contiguous] " + undefined, Contiguous(undefined_));
  EXPECT_REFUSED("[copy] " + undefined, CopyTo(undefined_, matrix_));
  EXPECT_REFUSED("[copy] " + undefined, CopyTo(matrix_, undefined_));
  EXPECT_REFUSED("[copy] shape (2, 3) does not broadcast to the target's (3)",
                 CopyTo(matrix_, vector_));
  EXPECT_REFUSED(
      "[copy] shapes (2, 3) and (2, 4) do not broadcast: 3 against 4 in "
      "dimension 1 from the end",
      CopyTo(matrix_, Ones({2, 4}, device())));
}

TEST_P(MessagesTest, Views) {
  EXPECT_REFUSED("[view] (2, 3) has 6 elements, which do not make (4)",
                 View(matrix_, {4}));
  EXPECT_REFUSED("[view] (2, 3) has 6 elements, which do not make (4, -1)",
                 View(matrix_, {4, -1}));
  EXPECT_REFUSED("[view] only one size may be -1: (-1, -1)",
                 View(matrix_, {-1, -1}));
  EXPECT_REFUSED("[view] a size is negative: (-2, -3)",
                 View(matrix_, {-2, -3}));
  EXPECT_REFUSED(
      "[view] the -1 in (0, -1) could be any number: the other sizes have no "
      "elements",
      View(Ones({0, 3}, device()), {0, -1}));
  EXPECT_REFUSED(
      "[view] (3, 2) with strides (1, 3) cannot be seen as (6); use Reshape, "
      "which copies if it must",
      View(T(matrix_), {6}));
  EXPECT_REFUSED("[reshape] (3, 2) has 6 elements, which do not make (4)",
                 Reshape(T(matrix_), {4}));
  EXPECT_REFUSED(
      "[t] a matrix wanted; got (2, 3, 4); name the two dimensions with "
      "Transpose(x, dim0, dim1)",
      T(cube_));
  EXPECT_REFUSED("[transpose] dimension 2 is out of range; valid are -2 to 1",
                 Transpose(matrix_, 0, 2));
  EXPECT_REFUSED("[transpose] dimension 1 is out of range; valid are -1 to 0",
                 Transpose(scalar_, 0, 1));
  EXPECT_REFUSED("[slice] the step must be at least 1; got 0",
                 Slice(matrix_, 0, 0, 2, 0));
  EXPECT_REFUSED("[slice] dimension -3 is out of range; valid are -2 to 1",
                 Slice(matrix_, -3));
  EXPECT_REFUSED("[slice] the tensor is a scalar: it has no dimension 0",
                 Slice(scalar_, 0));
  EXPECT_REFUSED("[select] index 2 is out of range for dimension 0 of (2, 3)",
                 Select(matrix_, 0, 2));
  EXPECT_REFUSED("[select] index -4 is out of range for dimension 1 of (2, 3)",
                 Select(matrix_, -1, -4));
  EXPECT_REFUSED("[squeeze] dimension 2 is out of range; valid are -2 to 1",
                 Squeeze(matrix_, 2));
  EXPECT_REFUSED("[unsqueeze] dimension 3 is out of range; valid are -3 to 2",
                 Unsqueeze(matrix_, 3));
  const std::string expands =
      ": only dimensions of size 1 can be repeated, and new ones come first";
  EXPECT_REFUSED("[expand] (2, 3) does not expand to (2, 6)" + expands,
                 Expand(matrix_, {2, 6}));
  EXPECT_REFUSED("[expand] (2, 3) does not expand to (3)" + expands,
                 Expand(matrix_, {3}));
  EXPECT_REFUSED("[expand] (3) does not expand to (-1, 3)" + expands,
                 Expand(vector_, {-1, 3}));
  EXPECT_REFUSED(
      "[expand] (9223372036854775807, 3) has more elements than 64 bits can "
      "count the bytes of",
      Expand(vector_, {kMax, 3}));
  EXPECT_REFUSED("[shape] 9 dimensions asked for; a tensor has at most 8",
                 Unsqueeze(Ones({1, 1, 1, 1, 1, 1, 1, 1}, device()), 0));
}

TEST_P(MessagesTest, Split) {
  EXPECT_REFUSED(
      "[split] pieces of size 0 of a float32 tensor of shape (2, 3)" + On() +
          ": the size must be at least 1, and a dimension there",
      Split(matrix_, 0));
  EXPECT_REFUSED(
      "[split] pieces of sizes (1, 3) do not add up to dimension 1 of (2, 3)",
      SplitWithSizes(matrix_, {1, 3}, 1));
  EXPECT_REFUSED(
      "[split] pieces of sizes (4, -1) do not add up to dimension 1 of (2, 3)",
      SplitWithSizes(matrix_, {4, -1}, 1));
  EXPECT_REFUSED(
      "[split] pieces of sizes (1) do not add up to dimension 1 of (2, 3)",
      SplitWithSizes(matrix_, std::vector<std::int64_t>{1}, -1));
  EXPECT_REFUSED("[split] dimension 2 is out of range; valid are -2 to 1",
                 Split(matrix_, 1, 2));
}

TEST_P(MessagesTest, Indexing) {
  EXPECT_REFUSED("[select] index 2 is out of range for dimension 0 of (2, 3)",
                 matrix_[2]);
  EXPECT_REFUSED("[select] index -4 is out of range for dimension 1 of (2, 3)",
                 (matrix_[{kAll, -4}]));
  EXPECT_REFUSED("[index] 3 indices into (2, 3), which has 2 dimensions",
                 (matrix_[{0, 0, 0}]));
  EXPECT_REFUSED("[index] 2 indices into (3), which has 1 dimension",
                 (vector_[{0, kAll}]));
  EXPECT_REFUSED("[slice] the step must be at least 1; got -1",
                 (matrix_[Range{0, 2, -1}]));
  EXPECT_REFUSED("[select] the tensor is a scalar: it has no dimension 0",
                 scalar_[0]);
  EXPECT_REFUSED(
      "[copy] shapes (2) and (3) do not broadcast: 2 against 3 in "
      "dimension 1 from the end",
      (matrix_[0] = Ones({2}, device())));
  EXPECT_REFUSED("[add_] the result, float32 of shape (2, 3)" + On() +
                     ", does not fit in place into a float32 tensor of shape "
                     "(3)" +
                     On(),
                 matrix_[0] += matrix_);
  EXPECT_REFUSED(
      "[select] an operand is an undefined tensor (a Tensor that was declared "
      "and never assigned)",
      undefined_[0]);
}

INSTANTIATE_FOR_ALL_DEVICES(MessagesTest);

}  // namespace
}  // namespace d2l
