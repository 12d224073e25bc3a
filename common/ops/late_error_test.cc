// Late errors name the line that requested the operation, whatever the
// expression looks like.

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/device/cpu/cpu_stream.h"
#include "common/device/testing.h"
#include "common/ops/ops.h"
#include "common/ops/primitive.h"
#include "common/ops/record.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// An operation whose work throws, as a kernel with a bad index does.
class FailPrimitive final : public Primitive {
 public:
  const char* name() const override { return "fail"; }
  ValueSpec Infer(Inputs inputs) const override {
    return {inputs[0]->shape(), inputs[0]->dtype(), inputs[0]->device()};
  }
  std::uint64_t Launch(Stream& stream, const OpLabel& label, Inputs,
                       const Tensor&) const override {
    return static_cast<CpuStream&>(stream).Enqueue(
        label, [] { throw std::runtime_error("index 17 is out of range"); });
  }
  std::unique_ptr<Primitive> Clone() const override {
    return std::make_unique<FailPrimitive>(*this);
  }
};

Tensor Fail(const Operand& x) {
  return Apply(FailPrimitive(), {x.tensor()}, x.at());
}

std::string Here(int line) {
  return "common/ops/late_error_test.cc:" + std::to_string(line);
}

// The lines that this thread's operations are requested at.
class Lines : public OpListener {
 public:
  void OnOp(const OpRecord& record) override {
    names.push_back(record.primitive->name());
    lines.push_back(record.requested_at.line());
    callers.push_back(record.requested_by.line());
  }
  std::vector<std::string> names;
  std::vector<int> lines;
  std::vector<int> callers;
};

const Device kCpu(DeviceType::kCpu, 0);

TEST(RequestedAt, OperatorsOfAllForms) {
  Tensor x = Ones({1, 2}, kCpu);
  Tensor y = Ones({1, 2}, kCpu);
  Lines seen;
  ScopedOpListener listen(&seen);
  const int first = __LINE__ + 1;
  Tensor a = x * y + 2;
  Tensor b = 2 - x;
  Tensor c = -x;
  x += y;
  x -= 1;
  x *= 2;
  Tensor d = MatMul(x, Ones({2, 1}, kCpu));
  EXPECT_THAT(seen.names, ElementsAre("mul", "add", "sub", "neg", "add", "sub",
                                      "mul", "ones", "matmul"));
  EXPECT_THAT(seen.lines,
              ElementsAre(first, first, first + 1, first + 2, first + 3,
                          first + 4, first + 5, first + 6, first + 6));
}

// A layer, as a library would have it: the user's line is above it.
Tensor Layer(const Tensor& x, SourceLocation at = SourceLocation::Current()) {
  RequestedBy scope(at);
  return x * x;
}

TEST(RequestedAt, TheUsersLineIsTheOutermost) {
  const Tensor x = Ones({1}, kCpu);
  Lines seen;
  ScopedOpListener listen(&seen);
  const int line = __LINE__ + 1;
  Layer(Layer(x));
  const Tensor y = x + 1;
  EXPECT_THAT(seen.callers, ElementsAre(line, line, 0));
  EXPECT_NE(seen.lines[0], line);
}

TEST(LateError, SaysEverything) {
  const Tensor x = Ones({256, 128}, kCpu);
  Synchronize(kCpu);
  HoldUp hold(DefaultStream(kCpu));
  const int line = __LINE__ + 1;
  const Tensor y = Fail(x) * 2 + x;
  const Tensor z = -y;
  hold.Release();
  int noticed = 0;
  try {
    noticed = __LINE__ + 1;
    Synchronize(kCpu);
    FAIL() << "the failure went unnoticed";
  } catch (const AsyncError& error) {
    EXPECT_EQ(error.failure().operation, "fail");
    EXPECT_EQ(error.failure().requested_at.ToString(), Here(line));
    EXPECT_THAT(error.what(), HasSubstr("requested at " + Here(line)));
    EXPECT_THAT(error.what(), HasSubstr("input (256, 128)"));
    EXPECT_THAT(error.what(), HasSubstr("index 17 is out of range"));
    EXPECT_THAT(error.what(),
                HasSubstr("Noticed at Synchronize, " + Here(noticed)));
    EXPECT_THAT(error.what(),
                HasSubstr("The 3 operations after it were skipped."));
  }
}

TEST(LateError, ReadingWhatWasSkippedThrowsForEver) {
  const Tensor x = Ones({2}, kCpu);
  const int line = __LINE__ + 1;
  const Tensor y = Fail(x);
  const Tensor z = 2 - y;
  for (int i = 0; i < 3; ++i) {
    try {
      ToVector<float>(z);
      FAIL() << "garbage looked like a result";
    } catch (const AsyncError& error) {
      EXPECT_EQ(error.failure().requested_at.ToString(), Here(line));
    }
    EXPECT_THROW(ToString(y), AsyncError);
    EXPECT_THROW(WaitToRead(z), AsyncError);
  }
  // It cannot be computed with either, in place or not, from any side.
  EXPECT_THROW(x + z, AsyncError);
  EXPECT_THROW(-z, AsyncError);
  EXPECT_THROW(MatMul(z, z), AsyncError);
  Tensor w = x;
  EXPECT_THROW(w += z, AsyncError);
  // What was computed before, and what is computed after, is sound.
  EXPECT_THAT(ToVector<float>(x), ElementsAre(1.f, 1.f));
  EXPECT_THAT(ToVector<float>(x * 3), ElementsAre(3.f, 3.f));
  Synchronize(kCpu);  // it has been reported: nothing to throw
}

TEST(LateError, ATensorThatAFailedOperationWroteInPlaceIsLost) {
  Tensor x = Ones({2}, kCpu);
  try {
    ApplyInPlace(FailPrimitive(), {&x}, x, SourceLocation::Current());
    Synchronize(kCpu);
    FAIL();
  } catch (const AsyncError&) {
  }
  EXPECT_THROW(ToVector<float>(x), AsyncError);
}

TEST(LateError, LaunchBlockingThrowsAtTheLineItself) {
  SetLaunchBlocking(true);
  Tensor x = Ones({2}, kCpu);
  EXPECT_TRUE(DefaultStream(kCpu).Query());  // done when the call returns
  try {
    ApplyInPlace(FailPrimitive(), {&x}, x, SourceLocation::Current());
    ADD_FAILURE() << "the call returned";
  } catch (const AsyncError& error) {
    EXPECT_EQ(error.failure().requested_at, error.noticed_at());
  }
  SetLaunchBlocking(false);
  EXPECT_THROW(ToVector<float>(x), AsyncError);
  EXPECT_EQ(Item(Ones({}, kCpu)), 1);
}

TEST(LateError, CrossesStreamsWithEvents) {
  const Device second(DeviceType::kCpu, 1);
  const Tensor x = Ones({2}, kCpu);
  const int line = __LINE__ + 1;
  const Tensor y = Fail(x);
  DefaultStream(second).Wait(DefaultStream(kCpu).Record());
  const Tensor z = Ones({2}, second);
  try {
    ToVector<float>(z);
    FAIL() << "work behind a poisoned event was done";
  } catch (const AsyncError& error) {
    EXPECT_EQ(error.failure().requested_at.ToString(), Here(line));
  }
  EXPECT_THROW(Synchronize(kCpu), AsyncError);
  EXPECT_EQ(Item(Ones({}, second)), 1);
}

}  // namespace
}  // namespace d2l
