// Late errors name the line that requested the operation, whatever the
// expression looks like.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <regex>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/device/cpu/cpu_stream.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/record.h"
#include "common/ops/primitive/replay.h"
#include "common/ops/testing/testing.h"
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
  std::uint64_t Launch(const LaunchContext& ctx) const override {
    return static_cast<CpuStream&>(ctx.stream).Enqueue(ctx.label, [] {
      throw std::runtime_error("index 17 is out of range");
    });
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
  StreamStall hold(DefaultStream(kCpu));
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
  {
    // Leaves other values than 0 in the memory that y and z get.
    const Tensor first = Full({2}, 7, kCpu), second = Full({2}, 7, kCpu);
  }
  const int line = __LINE__ + 4;
  Tensor y, z;
  {
    StreamStall hold(DefaultStream(kCpu));
    y = Fail(x);
    z = 2 - y;
  }
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
  // A failed tensor cannot be an operand either, in place or not, on any side.
  EXPECT_THROW(x + z, AsyncError);
  EXPECT_THROW(-z, AsyncError);
  EXPECT_THROW(MatMul(z, z), AsyncError);
  Tensor w = x;
  EXPECT_THROW(w += z, AsyncError);
  // Results computed before and after the failure are valid.
  Synchronize(kCpu);  // it has been reported: nothing to throw
  EXPECT_THAT(ToVector<float>(x), ElementsAre(1.f, 1.f));
  EXPECT_THAT(ToVector<float>(x * 3), ElementsAre(3.f, 3.f));
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
  if (!HasDevice(second)) GTEST_SKIP() << "needs two CPU devices";
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

// ---- What operations check on the device.

// A request that fails late, and the line it was made on.
struct Request {
  Tensor result;
  int line;
};
struct LateCase {
  const char* operation;
  const char* what;
  Request (*request)(Device device);
};

// clang-format off: a request and its line stay together.
const LateCase kLateCases[] = {
    {"index_select", "index 3 at position 1 is out of range; valid are 0..2",
     [](Device d) {
       const Tensor x = Ones({3, 2}, d);
       const Tensor i = FromVector<std::int64_t>({0, 3, 2}, {3}, d);
       return Request{IndexSelect(x, 0, i), __LINE__};
     }},
    {"index_select", "index -1 at position 0 is out of range; valid are 0..6",
     [](Device d) {
       const Tensor x = T(Ones({7, 5}, d));
       const Tensor i = FromVector<std::int64_t>({-1}, {1}, d);
       return Request{IndexSelect(x, 1, i), __LINE__};
     }},
    {"index_select",
     "index 5 at position 70000 is out of range; valid are 0..4",
     [](Device d) {
       const Tensor x = Ones({5}, d);
       const Tensor i = Zeros({100003}, d, DType::kInt64);
       i[70000] = 5;
       return Request{IndexSelect(x, 0, i), __LINE__};
     }},
    {"index_select",
     "index 0 at position 0 is out of range; there is nothing to "
     "index",
     [](Device d) {
       const Tensor i = Zeros({1}, d, DType::kInt64);
       return Request{IndexSelect(Ones({0, 3}, d), 0, i), __LINE__};
     }},
    {"gather", "index 9 at position 3 is out of range; valid are 0..1",
     [](Device d) {
       const Tensor x = Ones({2, 2}, d, DType::kUInt8);
       const Tensor i = FromVector<std::int64_t>({0, 1, 0, 9}, {2, 2}, d);
       return Request{Gather(x, 0, i), __LINE__};
     }},
    {"gather", "index 317 at position 100000 is out of range; valid are 0..316",
     [](Device d) {
       const Tensor x = Ones({331, 317}, d, DType::kFloat64);
       const Tensor i = Zeros({331, 317}, d, DType::kInt64);
       View(i, {-1})[100000] = 317;
       return Request{Gather(x, 1, i), __LINE__};
     }},
    {"floor_divide", "division by zero at element 2",
     [](Device d) {
       const Tensor x = Ones({4}, d, DType::kInt64);
       const Tensor y = FromVector<std::int64_t>({1, 2, 0, 3}, {4}, d);
       return Request{FloorDivide(x, y), __LINE__};
     }},
    {"floor_divide", "division by zero at element 0",
     [](Device d) {
       const Tensor x = Ones({3}, d, DType::kUInt8);
       return Request{FloorDivide(x, 0), __LINE__};
     }},
    {"floor_divide", "division by zero at element 4",
     [](Device d) {
       // (3, 2): counted as the result's elements are.
       const Tensor y = FromVector<std::uint8_t>({1, 2, 0, 3, 4, 5}, {2, 3}, d);
       return Request{FloorDivide(7, T(y)), __LINE__};
     }},
    {"floor_divide", "division by zero at element 70000",
     [](Device d) {
       const Tensor y = Ones({100003}, d, DType::kInt64);
       y[70000] = 0;
       return Request{FloorDivide(5, y), __LINE__};
     }},
    {"pow", "negative integer exponent -2 at element 1",
     [](Device d) {
       const Tensor x = Ones({3}, d, DType::kInt64);
       const Tensor y = FromVector<std::int64_t>({1, -2, 0}, {3}, d);
       return Request{Pow(x, y), __LINE__};
     }},
};
// clang-format on

class LateErrorTest : public DeviceTest {
 protected:
  // A request whose failure no call can have noticed yet.
  Request Make(const LateCase& c) const {
    RunOnce([&] { c.request(device()); });
    StreamStall hold(CurrentStream(device()));
    return c.request(device());
  }
};

// Expects that f throws the failure of this request.
void ExpectFailure(const LateCase& c, int line,
                   const std::function<void()>& f) {
  try {
    f();
    ADD_FAILURE() << "the failure of " << c.operation << " went unnoticed";
  } catch (const AsyncError& error) {
    EXPECT_EQ(error.failure().operation, c.operation);
    EXPECT_EQ(error.failure().requested_at.ToString(), Here(line));
    EXPECT_EQ(error.failure().what, c.what);
    EXPECT_THAT(error.what(), HasSubstr(c.what));
  }
}

TEST_P(LateErrorTest, ReadersGetItForEver) {
  for (const LateCase& c : kLateCases) {
    SCOPED_TRACE(c.what);
    const Request bad = Make(c);
    const Tensor& x = bad.result;
    for (int i = 0; i < 2; ++i) {
      ExpectFailure(c, bad.line, [&] { ValuesOf(x); });
      ExpectFailure(c, bad.line, [&] { WaitToRead(x); });
      ExpectFailure(c, bad.line, [&] { ToString(x); });
      ExpectFailure(c, bad.line, [&] { Item(View(x, {-1})[0]); });
    }
    // A failed tensor cannot be an operand either.
    ExpectFailure(c, bad.line, [&] { x + 1; });
    ExpectFailure(c, bad.line, [&] { Sum(x); });
    ExpectFailure(c, bad.line, [&] { Cat({x, x}); });
    ExpectFailure(c, bad.line,
                  [&] { To(x, OtherDevice(device()), DType::kFloat64); });
    ExpectFailure(c, bad.line, [&] { Equal(x, x); });
    ExpectFailure(c, bad.line, [&] { AllClose(x, x); });
    // The stream goes on, and results computed before are valid.
    EXPECT_EQ(Item(Ones({}, device()) + 1), 2);
    Synchronize(device());  // it has been reported: nothing to throw
  }
}

TEST_P(LateErrorTest, SynchronizeGetsItOnce) {
  for (const LateCase& c : kLateCases) {
    SCOPED_TRACE(c.what);
    const Request bad = Make(c);
    ExpectFailure(c, bad.line, [&] { Synchronize(device()); });
    Synchronize(device());
    ExpectFailure(c, bad.line, [&] { ValuesOf(bad.result); });
    EXPECT_EQ(Item(Ones({}, device()) + 1), 2);
  }
}

TEST_P(LateErrorTest, WhatDependsOnItIsLostToo) {
  for (const LateCase& c : kLateCases) {
    SCOPED_TRACE(c.what);
    Request bad;
    Tensor sum, unrelated = Ones({2}, device());
    RunOnce([&] { Sum(c.request(device()).result); });
    {
      StreamStall hold(CurrentStream(device()));
      bad = c.request(device());
      sum = Sum(bad.result);
      unrelated += 1;  // skipped: it is behind the failure
    }
    ExpectFailure(c, bad.line, [&] { Item(sum); });
    ExpectFailure(c, bad.line, [&] { ValuesOf(unrelated); });
    // Once the failure is known, memory that is written again is valid again.
    CopyTo(Full({2}, 5, device()), unrelated);
    EXPECT_EQ(ValuesOf(unrelated), std::vector<double>(2, 5));
  }
}

// When the failure becomes known: after the program has enqueued more, or
// before.
enum class Known { kLater, kBefore };

// How the program then waits.
struct Waiting {
  const char* name;
  void (*wait)(const Tensor& x, const Event& behind);
};
const Waiting kWaitings[] = {
    {"Synchronize",
     [](const Tensor& x, const Event&) { Synchronize(x.device()); }},
    {"Stream::Synchronize",
     [](const Tensor& x, const Event&) {
       CurrentStream(x.device()).Synchronize();
     }},
    {"Event::Synchronize",
     [](const Tensor&, const Event& behind) { behind.Synchronize(); }},
    {"ToVector", [](const Tensor& x, const Event&) { ValuesOf(x); }},
    {"Item", [](const Tensor& x, const Event&) { Item(Sum(x)); }},
    {"WaitToRead", [](const Tensor& x, const Event&) { WaitToRead(x); }},
    {"CopyAsync",
     [](const Tensor& x, const Event&) {
       char byte;
       CurrentStream(x.device())
           .CopyAsync(&byte, x.data(), 1, CopyKind::kDeviceToHost);
     }},
    {"launch blocking",
     [](const Tensor& x, const Event&) {
       const LaunchBlockingGuard guard(true);
       Ones({2}, x.device());
     }},
};

TEST_P(LateErrorTest, WhichCallThrowsDoesNotDependOnTime) {
  const LateCase& c = kLateCases[0];
  const Device d = device(), other = OtherDevice(d);
  Stream& stream = CurrentStream(d);
  const auto request = [&](std::vector<Tensor>* lost) {
    const Request bad = c.request(d);
    lost->push_back(bad.result);
    return bad.line;
  };
  // Only enqueues. Everything is lost.
  const auto more = [&](Tensor weight, std::vector<Tensor>* lost) {
    const Tensor bad = lost->front();
    lost->push_back(bad + 1);
    weight += Sum(bad);
    lost->push_back(weight);
    lost->push_back(Ones({2}, d));
    bad[0] = 1;
  };
  const auto copy = [&](std::vector<Tensor>* lost) {
    lost->push_back(
        To(lost->front(), other, DType::kFloat64, /*non_blocking=*/true));
  };
  // A GPU would wait for a stalled CPU stream while the copy is requested.
  const bool copies_while_stalled = other.type() == d.type();
  for (const Waiting& waiting : kWaitings) {
    for (const Known known : {Known::kLater, Known::kBefore}) {
      SCOPED_TRACE(std::string(waiting.name) +
                   (known == Known::kBefore ? ", known before" : ""));
      const Tensor good = Ones({2}, d), weight = Ones({}, d);
      Event behind;
      {
        std::vector<Tensor> lost;
        RunOnce([&] {
          request(&lost);
          more(Clone(weight), &lost);
          copy(&lost);
        });
        try {
          Synchronize(other);
        } catch (const AsyncError&) {  // NOLINT(bugprone-empty-catch)
        }
      }
      std::vector<Tensor> lost;
      int line = 0;
      {
        std::optional<StreamStall> stall;
        if (known == Known::kLater) stall.emplace(stream);
        line = request(&lost);
        if (known == Known::kBefore) {
          stream.WaitFor(lost[0].storage()->written_by());
          EXPECT_NE(stream.UnreportedFailure(), nullptr);
        }
        more(weight, &lost);
        if (copies_while_stalled) copy(&lost);
        behind = stream.Record();
      }
      if (!copies_while_stalled) copy(&lost);
      ExpectFailure(c, line, [&] { waiting.wait(lost[0], behind); });
      // That has reported it, and the stream goes on.
      Synchronize(d);
      EXPECT_EQ(ValuesOf(good + 1), std::vector<double>(2, 2));
      EXPECT_EQ(Item(Sum(good)), 2);
      // The other device's stream got it through an event, and reports it, too.
      ExpectFailure(c, line, [&] { Synchronize(other); });
      Synchronize(other);
      EXPECT_EQ(Item(Ones({}, other) + 1), 2);
      // From now on, whoever computes with a lost result gets it at once.
      for (const Tensor& x : lost) {
        ExpectFailure(c, line, [&] { ValuesOf(x); });
        ExpectFailure(c, line, [&] { x + x; });
      }
      ExpectFailure(c, line, [&] { lost[0][0] = 1; });
      Synchronize(d);
      Synchronize(other);
    }
  }
}

// One stream has reported the failure, and the stream where it began has not.
TEST_P(LateErrorTest, WhatIsStillToBeReportedPoisonsOtherStreams) {
  const LateCase& c = kLateCases[0];
  Stream& stream = CurrentStream(device());
  Stream& second = NewStream(device());
  const Request bad = Make(c);
  stream.WaitFor(bad.result.storage()->written_by());
  for (int i = 0; i < 3; ++i) {
    Tensor y;
    {
      const StreamGuard guard(second);
      y = bad.result + 1;
    }
    ExpectFailure(c, bad.line, [&] { ValuesOf(y); });
    second.Synchronize();
    const StreamGuard guard(second);
    EXPECT_EQ(Item(Ones({}, device()) + 1), 2);
  }
  ExpectFailure(c, bad.line, [&] { stream.Synchronize(); });
  const StreamGuard guard(second);
  ExpectFailure(c, bad.line, [&] { bad.result + 1; });
  second.Synchronize();
}

// Garbage must not look valid because memory next to it is.
TEST_P(LateErrorTest, APartWrittenAnewDoesNotMakeTheRestSound) {
  const Tensor x = Rand({4}, device());
  const Tensor bad = IndexSelect(x, 0, Full({3}, 4, device(), DType::kInt64));
  EXPECT_THROW(Synchronize(device()), AsyncError);
  EXPECT_THROW(bad[0] = 1, AsyncError);
  EXPECT_THROW((bad[{Range{1, 3}}] = Ones({2}, device())), AsyncError);
  EXPECT_THROW(ValuesOf(bad), AsyncError);
  FillInPlace(bad, 7);
  bad[1] = 8;
  EXPECT_EQ(ValuesOf(bad), (std::vector<double>{7, 8, 7}));
}

INSTANTIATE_FOR_ALL_DEVICES(LateErrorTest);

// A primitive of that name, with the first attributes that it takes.
std::unique_ptr<Primitive> AnyPrimitive(const std::string& name) {
  const std::map<std::string, std::string> values = {
      {"dim", "0"},          {"dim0", "0"},         {"dim1", "1"},
      {"dtype", "float32"},  {"device", "cpu:0"},   {"shape", "(3, 3)"},
      {"keepdim", "false"},  {"training", "false"}, {"kernel_size", "(1, 1)"},
      {"padding", "(0, 0)"}, {"stride", "(1, 1)"}};
  std::vector<Attribute> attributes;
  for (;;) {
    auto made = MakePrimitive(name, attributes);
    if (made.ok()) return std::move(*made);
    const std::string error(made.status().message());
    std::smatch missing;
    if (!std::regex_search(error, missing,
                           std::regex("attribute \"(\\w+)\" is missing"))) {
      ADD_FAILURE() << error;
      return nullptr;
    }
    const auto value = values.find(missing[1]);
    attributes.push_back(
        {missing[1], value == values.end() ? "1" : value->second});
  }
}

// Without MayFailLate a program would drop an unused operation and its error.
TEST_P(LateErrorTest, PrimitivesThatHaveThemSaySo) {
  const std::vector<double> bad = {0, -5, 7, 2, 0, -1, 99, 3, -3};
  std::vector<Tensor> operands;
  for (const DType dtype : {DType::kFloat32, DType::kInt64}) {
    operands.push_back(Place(bad, {3, 3}, device(), dtype));
    operands.push_back(Place({0, -5, 7}, {3}, device(), dtype));
  }
  std::set<std::string> may_fail, failed;
  for (const std::string& name : PrimitiveNames()) {
    const std::unique_ptr<Primitive> primitive = AnyPrimitive(name);
    ASSERT_NE(primitive, nullptr);
    if (primitive->effect() == Effect::kInPlace || IsView(*primitive)) continue;
    // Every choice of one, two or three operands.
    for (std::size_t choice = 1; choice < 125; ++choice) {
      std::vector<const Tensor*> inputs;
      for (std::size_t left = choice; left > 0; left /= 5) {
        if (left % 5 > 0) inputs.push_back(&operands[left % 5 - 1]);
      }
      const bool says = primitive->MayFailLate(inputs[0]->dtype());
      try {
        Apply(*primitive, inputs, SourceLocation::Current());
        if (says) may_fail.insert(name);
        Synchronize(device());
      } catch (const std::invalid_argument&) {
        continue;  // they do not match
      } catch (const AsyncError& error) {
        failed.insert(name);
        EXPECT_TRUE(says) << error.what();
      }
    }
  }
  EXPECT_EQ(failed, may_fail);
  EXPECT_GE(failed.size(), 8u) << testing::PrintToString(failed);
}

}  // namespace
}  // namespace d2l
