#include "common/autograd/tape.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "common/base/source_location.h"
#include "common/device/device_table.h"
#include "common/device/failure.h"
#include "common/device/memory/memory.h"
#include "common/graph/ir.h"
#include "common/graph/ir_testing.h"
#include "common/graph/trace.h"
#include "common/ops/nn/functional.h"
#include "common/ops/nn/primitives.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/record.h"
#include "common/ops/testing/testing.h"
#include "common/profiler/key_averages.h"
#include "common/profiler/profiler.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using ::testing::AllOf;
using ::testing::AnyOfArray;
using ::testing::DoubleEq;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Values = std::vector<Tensor>;

// The message of the std::logic_error (or std::invalid_argument) f throws.
std::string ErrorOf(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "nothing thrown";
}

std::string Line(int line) {
  return "common/autograd/tape_test.cc:" + std::to_string(line);
}

class TapeTest : public DeviceTest {
 protected:
  Tensor Vector(const std::vector<double>& values) const {
    return FromVector<double>(
        values, {static_cast<std::int64_t>(values.size())}, device());
  }
};
INSTANTIATE_FOR_ALL_DEVICES(TapeTest);

TEST_P(TapeTest, GivesTheGradientsInTheOrderOfTheWatched) {
  const Tensor a = Vector({1, 2, 3}), b = Vector({5, -7, 11});
  const Tensor constant = Vector({2, 2, 4});
  GradientTape tape({b, a});
  const Values gradients = tape.Backward(Sum(a * b * constant));
  EXPECT_THAT(ValuesOf(gradients[0]), ElementsAre(2, 4, 12));
  EXPECT_THAT(ValuesOf(gradients[1]), ElementsAre(10, -14, 44));
}

TEST_P(TapeTest, WhatTheLossDoesNotDependOnHasZeros) {
  const Tensor a = Vector({1, 2}), b = Vector({5, -7});
  GradientTape tape({a, b});
  const Tensor loss = Sum(a * 3);
  static_cast<void>(Exp(b));  // recorded, and not a part of the loss
  const Values gradients = tape.Backward(loss);
  EXPECT_THAT(ValuesOf(gradients[0]), ElementsAre(3, 3));
  EXPECT_THAT(ValuesOf(gradients[1]), ElementsAre(0, 0));
}

// The gradient of a tensor that is used twice is known after its first use; if
// the loss does not depend on a tensor, at its use, or at the end.
TEST_P(TapeTest, TellsOfAGradientAsSoonAsItIsKnown) {
  const Tensor a = Vector({1, 2}), b = Vector({5, -7}), c = Vector({3, 4});
  const Tensor unused = Vector({6});
  GradientTape tape({unused, a, b, c});
  const Tensor early = Exp(a);
  const Tensor product = early * b;
  const Tensor middle = product + Tanh(c);
  const Tensor loss = Sum(middle * a * b);
  struct Counter : OpListener {
    void OnOp(const OpRecord&) override { ++ops; }
    int ops = 0;
  } counter;
  std::vector<int> order, ops;
  Values told(4);
  GradientTape whole({unused, a, b, c});
  const Tensor again = Sum((Exp(a) * b + Tanh(c)) * a * b);
  const ScopedOpListener listen(&counter);
  tape.Begin(loss, OnesLike(loss));
  while (const std::optional<GradientTape::Gradient> next = tape.Next()) {
    order.push_back(next->watched);
    ops.push_back(counter.ops);
    told[next->watched] = next->value;
  }
  EXPECT_THAT(order, ElementsAre(3, 2, 1, 0));
  EXPECT_LT(ops[0], ops[1]);
  EXPECT_LT(ops[1], ops[2]);
  const Values gradients = whole.Backward(again);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(Equal(told[i], gradients[i])) << i;
}

TEST_P(TapeTest, AWatchedTensorMayBeTheLossOrWatchedTwice) {
  const Tensor a = Vector({4});
  GradientTape tape({a, a});
  const Values gradients = tape.Backward(a);
  EXPECT_THAT(ValuesOf(gradients[0]), ElementsAre(1));
  EXPECT_THAT(ValuesOf(gradients[1]), ElementsAre(1));
}

// The addition gives one gradient to both, the views parts of its memory.
TEST_P(TapeTest, GradientsShareNoMemory) {
  const Tensor a = Vector({1, 2}), b = Vector({3, 4}), c = Vector({5});
  const Tensor seed = Vector({10, 20});
  GradientTape tape({a, b, c});
  Values gradients = tape.Backward(a + b + c, seed);
  gradients[0] += 1;
  gradients[1] *= 3;
  EXPECT_THAT(ValuesOf(gradients[0]), ElementsAre(11, 21));
  EXPECT_THAT(ValuesOf(gradients[1]), ElementsAre(30, 60));
  EXPECT_THAT(ValuesOf(gradients[2]), ElementsAre(30));
  EXPECT_THAT(ValuesOf(seed), ElementsAre(10, 20));
}

TEST_P(TapeTest, NothingIsNotedUnderAGuardNorOfWhatIsDetached) {
  const Tensor a = Vector({3, 5});
  GradientTape tape({a});
  Tensor factor;
  {
    const NoGradGuard guard;
    factor = a * 2;
  }
  const Tensor same = Detach(a);
  EXPECT_EQ(same.data(), a.data());
  EXPECT_THAT(ValuesOf(tape.Backward(Sum(a * factor + same * same * a))[0]),
              ElementsAre(6 + 9, 10 + 25));
}

TEST_P(TapeTest, UnderAGuardAViewThatShowsAllAsItIsIsAConstantToo) {
  const Tensor a = Vector({3, 5}), m = Reshape(Vector({7, 9}), {1, 2});
  const Tensor s = Reshape(Vector({4}), {});
  GradientTape tape({a, m, s});
  Values constants;
  {
    const NoGradGuard guard;
    constants = {T(a), a[{}], m[{kAll, kAll}], Transpose(s, 0, -1)};
  }
  const Values slopes = tape.Backward(Sum(a * constants[0] * constants[1]) +
                                      Sum(m * constants[2]) + s * constants[3]);
  EXPECT_THAT(ValuesOf(slopes[0]), ElementsAre(9, 25));
  EXPECT_THAT(ValuesOf(slopes[1]), ElementsAre(7, 9));
  EXPECT_THAT(ValuesOf(slopes[2]), ElementsAre(4));
}

TEST_P(TapeTest, IntegersHaveNoGradient) {
  const Tensor a = Vector({1.5, 2.5});
  GradientTape tape({a});
  const Tensor whole = To(To(a, DType::kInt64), DType::kFloat64);
  EXPECT_THAT(ValuesOf(tape.Backward(Sum(a * whole))[0]), ElementsAre(1, 2));
}

TEST_P(TapeTest, ATapeInsideAnotherGivesGradientsOfGradients) {
  const Tensor x = Vector({2, 3});
  GradientTape outer({x});
  Tensor slope;
  {
    GradientTape inner({x});
    slope = inner.Backward(Sum(x * x * x))[0];
  }
  EXPECT_THAT(ValuesOf(slope), ElementsAre(12, 27));
  EXPECT_THAT(ValuesOf(outer.Backward(Sum(slope))[0]), ElementsAre(12, 18));
}

TEST_P(TapeTest, OtherThreadsAreNotNoted) {
  const Tensor a = Vector({3, 5});
  GradientTape tape({a});
  Tensor other;
  std::thread([&] { other = a * 2; }).join();
  EXPECT_THAT(ErrorOf([&] { tape.Backward(Sum(other)); }),
              HasSubstr("does not depend on a tensor that the tape watches"));
  EXPECT_THAT(ValuesOf(tape.Backward(Sum(other * a))[0]), ElementsAre(6, 10));
}

TEST_P(TapeTest, RefusesWhatIsNoLoss) {
  EXPECT_THAT(
      ErrorOf([&] { GradientTape({Ones({2}, device(), DType::kInt64)}); }),
      HasSubstr("[GradientTape] float32 or float64 wanted; got an int64"));
  const Tensor a = Vector({1, 2});
  GradientTape tape({a});
  const Tensor y = a * 2;
  EXPECT_THAT(
      ErrorOf([&] { tape.Backward(y); }),
      HasSubstr("[backward] a loss of one number wanted; got a float64"));
  EXPECT_THAT(ErrorOf([&] {
                tape.Backward(y, Vector({1, 2, 3}));
              }),
              HasSubstr("[backward] the gradient must be like what it is"));
  EXPECT_THAT(ErrorOf([&] { tape.Backward(Tensor()); }),
              HasSubstr("[backward] an operand is an undefined tensor"));
  const Tensor constant = Sum(Vector({1, 2}));
  EXPECT_THAT(ErrorOf([&] { tape.Backward(constant); }),
              HasSubstr("[backward] the loss, a float64 tensor of shape ()"));
  // Backward still works for another loss.
  EXPECT_THAT(ValuesOf(tape.Backward(Sum(y))[0]), ElementsAre(2, 2));
}

TEST_P(TapeTest, ASecondBackwardNamesTheFirst) {
  const Tensor a = Vector({1, 2});
  GradientTape tape({a});
  const Tensor loss = Sum(a);
  tape.Backward(loss);
  const int first = __LINE__ - 1;
  const std::string error = ErrorOf([&] { tape.Backward(loss); });
  EXPECT_THAT(error, AllOf(HasSubstr("has given its gradients before, at " +
                                     Line(first)),
                           HasSubstr("requested at " + Line(first + 2))));
}

TEST_P(TapeTest, ABackwardAfterOneThatFailedSaysSo) {
  const Tensor a = Vector({1, 2});
  GradientTape tape({a});
  const Tensor loss = Sum(FloorDivide(a, 2));
  EXPECT_THROW(tape.Backward(loss), std::logic_error);
  const int first = __LINE__ - 1;
  EXPECT_THAT(
      ErrorOf([&] { tape.Backward(loss); }),
      AllOf(HasSubstr("called before, at " + Line(first) + ", and failed"),
            Not(HasSubstr("given its gradients"))));
}

TEST_P(TapeTest, WhatHasNoGradientIsNamed) {
  const Tensor a = Vector({1, 2});
  GradientTape tape({a});
  const Tensor y = FloorDivide(a, 2);
  const int line = __LINE__ - 1;
  EXPECT_THAT(ErrorOf([&] { tape.Backward(Sum(y)); }),
              HasSubstr("[backward] no gradient for floor_divide, requested "
                        "at " +
                        Line(line)));
}

// ---- In place.

TEST_P(TapeTest, AValueOverwrittenAfterItWasKeptIsRefusedWithBothLines) {
  const Tensor a = Vector({1, 2});
  GradientTape tape({a});
  Tensor x = a * 3;
  const Tensor y = x * x;
  const int kept = __LINE__ - 1;
  x += 1;
  const int written = __LINE__ - 1;
  const std::string error = ErrorOf([&] { tape.Backward(Sum(y + x)); });
  EXPECT_THAT(
      error, AllOf(HasSubstr("the gradient of mul, requested at " + Line(kept)),
                   HasSubstr("overwritten in place at " + Line(written)),
                   HasSubstr("[backward] requested at " + Line(written + 2))));
}

// The gradient reads a copy, which is made only if it needs one.
TEST_P(TapeTest, AnOperationInPlaceMayNeedWhatItOverwrites) {
  const Tensor a = Vector({2, -3});
  struct Counter : OpListener {
    void OnOp(const OpRecord&) override { ++ops; }
    int ops = 0;
  };
  const auto slopes_of = [&](int ops, const std::function<void(Tensor&)>& f) {
    GradientTape outer({a});
    GradientTape tape({a});
    Tensor x = a * 3;
    Counter counter;
    {
      const ScopedOpListener listen(&counter);
      f(x);
    }
    EXPECT_EQ(counter.ops, ops);
    std::vector<double> slopes = ValuesOf(tape.Backward(Sum(x))[0]);
    EXPECT_EQ(slopes, ValuesOf(outer.Backward(Sum(x))[0]));
    return slopes;
  };
  EXPECT_THAT(slopes_of(2, [&](Tensor& x) { x *= a; }), ElementsAre(12, -18));
  EXPECT_THAT(slopes_of(3, [&](Tensor& x) { x *= x; }), ElementsAre(36, -54));
  EXPECT_THAT(slopes_of(2, [&](Tensor& x) { x /= a; }), ElementsAre(0, 0));
  EXPECT_THAT(
      slopes_of(
          2, [&](Tensor& x) { ApplyUnaryInPlace(kernels::UnaryOp::kAbs, x); }),
      ElementsAre(3, -3));
  EXPECT_THAT(slopes_of(4,
                        [&](Tensor& x) {
                          ApplyUnaryInPlace(kernels::UnaryOp::kAbs, x);
                          ApplyUnaryInPlace(kernels::UnaryOp::kLog, x);
                        }),
              ElementsAre(DoubleEq(0.5), DoubleEq(-1 / 3.0)));
  const Tensor constant = Vector({5, 7});
  EXPECT_THAT(slopes_of(1, [&](Tensor& x) { x *= constant; }),
              ElementsAre(15, 21));
  EXPECT_THAT(slopes_of(1, [&](Tensor& x) { x += a; }), ElementsAre(4, 4));
  for (int i = 0; i < 2; ++i) {
    const Tensor overwritten = Vector({5, 7});
    EXPECT_THAT(slopes_of(2,
                          [&](Tensor& x) {
                            x = overwritten;
                            x *= a;
                          }),
                ElementsAre(5, 7));
  }
}

TEST_P(TapeTest, AWriteUnderAGuardIsSeenToo) {
  Tensor w = Vector({1, 2});
  GradientTape tape({w});
  const Tensor loss = Sum(w * w);
  int line = 0;
  {
    const NoGradGuard guard;
    w -= 1;
    line = __LINE__ - 1;
  }
  EXPECT_THAT(ErrorOf([&] { tape.Backward(loss); }),
              HasSubstr("overwritten in place at " + Line(line)));
}

TEST_P(TapeTest, ARunningValueIsWrittenToo) {
  const Tensor one = Vector({1, 1});
  const Tensor x = Ones({3, 2}, device(), DType::kFloat64);
  const Tensor mean = Vector({1, 2}), variance = Vector({3, 4});
  for (const Tensor& kept : {mean, variance}) {
    GradientTape tape({one});
    const Tensor loss = Sum(kept * one);
    BatchNorm(x, one, one, mean, variance, true);
    const int line = __LINE__ - 1;
    EXPECT_THAT(ErrorOf([&] { tape.Backward(loss); }),
                HasSubstr("overwritten in place at " + Line(line)));
  }
  // Without a guard, as any operation in place.
  const auto statistics = [&](const Tensor& of) {
    return Apply(BatchNormStatisticsPrimitive(0.1), {&of, &mean, &variance},
                 SourceLocation::Current());
  };
  {
    GradientTape tape({one, mean});
    EXPECT_THAT(ErrorOf([&] { statistics(x); }), HasSubstr("that is watched"));
  }
  GradientTape tape({one});
  statistics(Expand(one, {3, 2}) * 2);
  EXPECT_THAT(ErrorOf([&] { Square(variance); }),
              HasSubstr("shares memory with one that was written in place"));
}

TEST_P(TapeTest, AWriteToAWatchedTensorIsRefused) {
  Tensor w = Vector({1, 2});
  GradientTape tape({w});
  const int watched = __LINE__ - 1;
  const std::string error = ErrorOf([&] { w -= 1; });
  EXPECT_THAT(error, AllOf(HasSubstr("requested at " + Line(watched + 2)),
                           HasSubstr("that is watched"),
                           HasSubstr("since " + Line(watched))));
  EXPECT_THAT(ErrorOf([&] { tape.Backward(Sum(w)); }), HasSubstr(error));
}

// Gradients would miss what was written through another tensor of the same
// memory, so reading it is an error.
TEST_P(TapeTest, WhatIsReadAfterAWriteElsewhereIsRefused) {
  const Tensor a = Vector({1, 2});
  int written = 0;
  const auto refused = [&](const std::function<void(int& read)>& f) {
    GradientTape tape({a});
    int read = 0;
    const std::string error = ErrorOf([&] { f(read); });
    EXPECT_THAT(error, AllOf(HasSubstr("requested at " + Line(read)),
                             HasSubstr("shares memory with one that was "
                                       "written in place at " +
                                       Line(written))));
    EXPECT_THAT(ErrorOf([&] { tape.Backward(Sum(a)); }), HasSubstr(error));
  };
  // A value whose view was written, a view whose value was, another view.
  refused([&](int& read) {
    const Tensor x = a * 2;
    x[0] = 5, written = __LINE__;
    read = __LINE__ + 1;
    Sum(x);
  });
  refused([&](int& read) {
    Tensor x = a * 2;
    const Tensor view = Reshape(x, {2, 1});
    x += 1, written = __LINE__;
    read = __LINE__ + 1;
    Sum(view);
  });
  refused([&](int& read) {
    const Tensor x = a * 2;
    const Tensor view = x[0], other = Reshape(x, {2, 1});
    Tensor view_of_view = Reshape(view, {1});
    view_of_view *= 2, written = __LINE__;
    read = __LINE__ + 1;
    Reshape(other, {2});
  });
  // A constant, to which something differentiable was added through a view that
  // the tape has seen, or has not; and such views.
  refused([&](int& read) {
    const Tensor x = Vector({0, 0});
    Tensor view = Reshape(x, {2, 1});
    view += Reshape(a, {2, 1}), written = __LINE__;
    read = __LINE__ + 1;
    Sum(x);
  });
  const auto constant = [&] { return Vector({0, 0}); };
  const Tensor c = constant(), view_of_c = Reshape(c, {2, 1});
  refused([&](int& read) {
    Tensor view = view_of_c;
    view += Reshape(a, {2, 1}), written = __LINE__;
    read = __LINE__ + 1;
    Sum(c);
  });
  Tensor d = constant();
  const Tensor part = Slice(d, 0, 0, 1), part_of_part = Reshape(part, {1, 1});
  refused([&](int& read) {
    d += a, written = __LINE__;
    read = __LINE__ + 1;
    Sum(part_of_part);
  });
  refused([&](int& read) {
    CopyTo(a, d), written = __LINE__;
    read = __LINE__ + 1;
    Tensor y = Vector({3}) * part;
  });
  // A watched tensor, through a view from before the tape.
  const Tensor e = constant();
  Tensor before = Reshape(e, {2});
  GradientTape tape({e});
  before += 1;
  EXPECT_THAT(ErrorOf([&] { Sum(e); }), HasSubstr("shares memory"));
}

TEST_P(TapeTest, AWriteThroughAViewIsAllowedIfNothingElseReadsTheMemory) {
  const Tensor a = Vector({3, 5});
  Tensor c = Vector({1, 1});
  const Tensor view_of_c = Reshape(c, {1, 2});
  const auto slopes_of = [&](const std::function<Tensor()>& f) {
    GradientTape tape({a});
    return ValuesOf(tape.Backward(Sum(f()))[0]);
  };
  EXPECT_THAT(slopes_of([&] {
                Tensor view = Reshape(a * 2, {2, 1});
                view *= 3;
                return view;
              }),
              ElementsAre(6, 6));
  // A view that was made after the write.
  EXPECT_THAT(slopes_of([&] {
                Tensor x = a * 2;
                const Tensor early = Reshape(x, {1, 2});
                x *= a;
                return Reshape(x, {2, 1});
              }),
              ElementsAre(12, 20));
  // A buffer that is used again.
  EXPECT_THAT(slopes_of([&] {
                c += a;
                FillInPlace(c, 1);
                return c[0] * a;
              }),
              ElementsAre(1, 1));
  // Whole numbers and comparisons have no gradient.
  EXPECT_THAT(slopes_of([&] {
                c += a;
                return a * To(To(view_of_c > 100, DType::kInt64), a.dtype());
              }),
              ElementsAre(0, 0));
}

// As with torch.Tensor.detach: values are shared, gradients are not.
TEST_P(TapeTest, ADetachedTensorHasAGradientOfItsOwn) {
  const Tensor a = Vector({3, 5});
  GradientTape tape({a});
  const Tensor y = a * 2;
  const Tensor constant = Detach(y), copied = Detach(y);
  const Tensor view_of_constant = Reshape(constant, {2});
  CopyTo(y, copied);
  Tensor written = Detach(a * 7);
  written += a;
  EXPECT_THAT(ValuesOf(tape.Backward(Sum(y * 100 + copied + constant +
                                         view_of_constant + written))[0]),
              ElementsAre(203, 203));
}

// A view that was made as a constant stays one.
TEST_P(TapeTest, AValueMayBeWrittenAfterItWasDetached) {
  const Tensor a = Vector({1, 2});
  GradientTape tape({a});
  Tensor x = a * 2;
  const Tensor constant = Detach(x);
  x += 1;
  EXPECT_THAT(ValuesOf(tape.Backward(Sum(x + constant))[0]), ElementsAre(2, 2));
}

TEST_P(TapeTest, AViewMadeBeforeTheTapeIsAConstant) {
  const Tensor a = Vector({1, 2});
  const Tensor before = Reshape(a, {2});
  GradientTape tape({a});
  EXPECT_THAT(ValuesOf(tape.Backward(Sum(before * a))[0]), ElementsAre(1, 2));
}

TEST_P(TapeTest, ConstantsMayBeWrittenAnyhow) {
  const Tensor a = Vector({1, 2});
  GradientTape tape({a});
  const Tensor x = Vector({0, 0});
  x[0] = 5;
  EXPECT_THAT(ValuesOf(tape.Backward(Sum(a * x))[0]), ElementsAre(5, 0));
}

// ---- Lines.

class Lines : public OpListener {
 public:
  void OnOp(const OpRecord& record) override {
    at.push_back(record.requested_at.ToString());
    by.push_back(record.requested_by.ToString());
  }
  std::vector<std::string> at;
  std::vector<std::string> by;
};

TEST_P(TapeTest, BackwardNamesTheForwardLinesAndItsOwn) {
  const Tensor a = Vector({1, 2, 3, 4}), b = Vector({2, 1, 3, 5});
  const Tensor index = FromVector<std::int64_t>({1, 0}, {2}, device());
  GradientTape tape({a, b});
  Lines forward;
  Tensor loss;
  {
    const ScopedOpListener listen(&forward);
    const Tensor x = Maximum(Abs(a), 1.5) / Pow(Gelu(a) + 9, Tanh(b)) +
                     Sigmoid(Sqrt(Square(a) - -b)) * Log(Exp(Relu(b)) + 1);
    const Tensor y = MatMul(LogSoftmax(Expand(a, {2, 4}), 1), Stack({a, b}, 1));
    const Tensor z = Mean(Softmax(Reshape(a, {2, 2}), 0) + y) * Max(b) -
                     Min(Slice(a, 0, 0, 3, 2)) + Minimum(2, b);
    const Tensor u = Sum(IndexSelect(a, 0, index)) + Select(Cat({a, b}), 0, 2) +
                     To(To(b, DType::kFloat32), DType::kFloat64)[0];
    const Tensor v = T(Clone(Unsqueeze(b, 0)))[0] + Pow(a, 3) + Pow(2, b);
    loss = Sum(Where(x > 0, x * z, v) + u);
  }
  Lines lines;
  int backward = 0;
  {
    const ScopedOpListener listen(&lines);
    tape.Backward(loss);
    backward = __LINE__ - 1;
  }
  ASSERT_GT(lines.at.size(), 50u);
  // The gradient of the loss, 1, that it begins with.
  EXPECT_EQ(lines.at[0], Line(backward));
  lines.at.erase(lines.at.begin());
  lines.by.erase(lines.by.begin());
  EXPECT_THAT(lines.at, Each(AnyOfArray(forward.at)));
  EXPECT_THAT(lines.by, Each(Line(backward)));
}

// The line of whoever called a layer, not the layer's.
TEST_P(TapeTest, TheForwardLineIsTheUsers) {
  const Tensor a = Vector({1, 2});
  GradientTape tape({a});
  Tensor y;
  {
    const RequestedBy by(SourceLocation("user.cc", 42));
    y = Exp(a);
  }
  const Tensor seed = Vector({1, 1});
  Lines lines;
  {
    const ScopedOpListener listen(&lines);
    tape.Backward(y, seed);
  }
  EXPECT_THAT(lines.at, ElementsAre("user.cc:42"));
}

TEST_P(TapeTest, ALateErrorNamesTheForwardLine) {
  const Tensor a = Vector({1, 2});
  const Tensor index = FromVector<std::int64_t>({7}, {1}, device());
  std::string error = "nothing thrown";
  int line = 0;
  try {
    GradientTape tape({a});
    line = __LINE__ + 1;  // set before: the product throws if it is late
    const Tensor y = IndexSelect(a, 0, index) * a;
    const Values gradients = tape.Backward(Sum(y));
    WaitToRead(gradients[0]);
  } catch (const AsyncError& late) {
    error = late.what();
  }
  EXPECT_THAT(error, AllOf(HasSubstr("index_select"), HasSubstr(Line(line))));
  RunOnce([] {});  // forgets it
}

// ---- Memory.

std::int64_t InUse(Device device) { return Memory(device).Stats().allocated; }

TEST_P(TapeTest, AStepKeepsNoMemory) {
  Tensor w = Rand({64, 64}, device());
  const Tensor x = Rand({64, 64}, device());
  const auto step = [&] {
    GradientTape tape({w});
    const Tensor h = Relu(MatMul(x, w));
    const Values gradients = tape.Backward(Mean(Square(h) + Tanh(h)));
    w -= gradients[0] * 0.1;
  };
  step();
  const std::int64_t first = InUse(device());
  for (int i = 0; i < 99; ++i) step();
  EXPECT_EQ(InUse(device()), first);
}

// Records the most memory in use while an operation was requested.
class MostInUse : public OpListener {
 public:
  explicit MostInUse(Device device) : device_(device) {}
  void OnOp(const OpRecord&) override { most = std::max(most, InUse(device_)); }
  std::int64_t most = 0;

 private:
  const Device device_;
};

TEST_P(TapeTest, AValueIsLetGoAsSoonAsItsGradientIsKnown) {
  constexpr std::int64_t kBytes = 1 << 20;
  const Tensor x = Rand({kBytes / 4}, device());
  GradientTape tape({x});
  Tensor y = x;
  constexpr int kLength = 16;
  for (int i = 0; i < kLength; ++i) y = Tanh(y);  // each keeps its result
  const Tensor loss = Sum(y);
  y = Tensor();
  const std::int64_t before = InUse(device());
  MostInUse during(device());
  {
    const ScopedOpListener listen(&during);
    tape.Backward(loss);
  }
  EXPECT_GE(before, kLength * kBytes);
  // The first steps need room for their gradients and intermediate values.
  EXPECT_LE(during.most, before + 4 * kBytes);
  EXPECT_LE(InUse(device()), before - kLength * kBytes + (1 << 12));
}

// The addition needs no values, the product only those of the constant.
TEST_P(TapeTest, OnlyWhatIsNeededIsKept) {
  constexpr std::int64_t kBytes = 1 << 20;
  const Tensor x = Rand({kBytes / 4}, device());
  const Tensor w = Rand({kBytes / 4}, device());
  GradientTape tape({w});
  const std::int64_t before = InUse(device());
  const Tensor y = (w * x + w) * 2 - x;
  EXPECT_LE(InUse(device()), before + kBytes);
  EXPECT_GE(InUse(device()), before + kBytes);
}

// ---- With other listeners.

Values TrainingStep(const Values& in) {
  GradientTape tape({in[1]});
  const Tensor h = Tanh(MatMul(in[0], in[1])) * Detach(in[1]);
  Tensor sum = Slice(h, 1, 0, 2) + Unsqueeze(Select(h, 1, 2), 1) * 2;
  sum *= 3;
  const Tensor loss = Mean(Square(sum));
  return {loss, tape.Backward(loss)[0]};
}

TEST_P(TapeTest, ATraceHasBothPasses) {
  const auto random = [&] { return Randn({3, 3}, device()) + 0.25; };
  const ir::Graph graph = ir::Trace(TrainingStep, {random(), random()});
  EXPECT_THAT(graph.weights, IsEmpty());
  for (int i = 0; i < 3; ++i) {
    const Values inputs = {random(), random()};
    EXPECT_EQ(ir::Bits(ir::Run(graph, inputs)), ir::Bits(TrainingStep(inputs)));
  }
}

// The running values are the program's: each run updates them, as the function
// does, and the tape takes them for constants, also in its second forward pass.
TEST_P(TapeTest, ATraceOfATrainingStepUpdatesTheRunningValues) {
  const auto step = [](const Tensor& mean, const Tensor& variance) {
    return [mean, variance](const Values& in) -> Values {
      GradientTape tape({in[1], in[2]});
      Tensor y = BatchNorm(in[0], in[1], in[2], mean, variance, true);
      y = BatchNorm(Relu(y), in[1], in[2], mean, variance, true);
      const Values gradients = tape.Backward(Sum(y * y * y));
      return {y, gradients[0], gradients[1]};
    };
  };
  const Values traced = {Zeros({3}, device()), Ones({3}, device())};
  const Values eager = {Clone(traced[0]), Clone(traced[1])};
  const auto inputs = [&]() -> Values {
    return {Randn({4, 3, 5}, device()), Rand({3}, device()) + 0.5,
            Randn({3}, device())};
  };
  const Values first = inputs();  // on which the function runs once
  const ir::Graph graph = ir::Trace(step(traced[0], traced[1]), first);
  step(eager[0], eager[1])(first);
  for (int i = 0; i < 3; ++i) {
    const Values next = inputs();
    EXPECT_EQ(ir::Bits(ir::Run(graph, next)),
              ir::Bits(step(eager[0], eager[1])(next)));
    EXPECT_EQ(ir::Bits(traced), ir::Bits(eager));
  }
  EXPECT_FALSE(Equal(eager[0], Zeros({3}, device())));
}

TEST_P(TapeTest, AProfilerSeesBothPasses) {
  const Values inputs = {Randn({3, 3}, device()), Randn({3, 3}, device())};
  const std::vector<std::string> expected = ir::Bits(TrainingStep(inputs));
  Profiler profiler;
  {
    const ProfileScope scope(profiler);
    EXPECT_EQ(ir::Bits(TrainingStep(inputs)), expected);
  }
  EXPECT_THAT(profiler.KeyAverages().Table(),
              AllOf(HasSubstr("tanh"), HasSubstr("zeros")));
}

}  // namespace
}  // namespace d2l
