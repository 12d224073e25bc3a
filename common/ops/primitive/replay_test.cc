#include "common/ops/primitive/replay.h"

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/device/testing/testing.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/record.h"
#include "common/ops/testing/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using ::testing::HasSubstr;

// Keeps what was requested and which values were involved.
class Tracer : public OpListener {
 public:
  struct Op {
    OpCall call;
    std::vector<std::uint64_t> inputs;
    std::uint64_t output;
  };

  void OnOp(const OpRecord& record) override {
    Op op{ToCall(record), {}, record.output.id()};
    for (const Tensor* input : record.inputs) op.inputs.push_back(input->id());
    EXPECT_EQ(IsView(*record.primitive), record.view);
    ops.push_back(std::move(op));
  }

  std::vector<Op> ops;
};

// The primitive, made from its own text where that is possible.
std::shared_ptr<const Primitive> FromText(
    const std::shared_ptr<const Primitive>& primitive) {
  if (primitive->effect() == Effect::kHostData) return primitive;
  auto made = MakePrimitive(primitive->name(), primitive->attributes());
  EXPECT_TRUE(made.ok()) << made.status();
  if (!made.ok()) return primitive;
  EXPECT_STREQ((*made)->name(), primitive->name());
  EXPECT_EQ((*made)->attributes(), primitive->attributes());
  EXPECT_EQ((*made)->effect(), primitive->effect());
  return std::move(*made);
}

// A random program: all kinds of operations on a growing pool of values.
class Program {
 public:
  Program(Device device, int seed) : device_(device), random_(seed) {
    for (const Shape& shape : {Shape{3, 4}, Shape{4, 3}, Shape{5}, Shape{}}) {
      values.push_back(Randn(shape, device));
      arguments.push_back(values.back());
    }
  }

  void AddOp() {
    const Tensor x = Any();
    try {
      values.push_back(Result(x));
    } catch (const std::invalid_argument&) {
      // These operands do not match.
    }
  }

  std::vector<Tensor> arguments;
  std::vector<Tensor> values;

 private:
  int Below(int n) { return static_cast<int>(random_() % n); }
  Tensor Any() { return values[Below(static_cast<int>(values.size()))]; }

  Tensor Result(const Tensor& x) {
    switch (Below(28)) {
      case 0:
        return x + Any();
      case 1:
        return 2 - x;
      case 2:
        return x / 2.0;
      case 3:
        return Maximum(x, Any());
      case 4:
        return Where(x > 0, x, Below(2) == 0 ? Operand(-0.0) : Operand(x));
      case 5:
        return Tanh(x);
      case 6:
        return Gelu(x);
      case 7:
        return MatMul(x, Any());
      case 8:
        return Sum(x, Below(2) == 0 ? Dims() : Dims(0), Below(2) == 0);
      case 9:
        return Max(x, -1, true);
      case 10:
        return To(ArgMax(x), x.dtype());
      case 11:
        return Softmax(x, -1);
      case 12:
        return LogSoftmax(x, 0);
      case 13:
        return Cat({x, x}, Below(2));
      case 14:
        // An index out of range would fail late.
        return IndexSelect(x, 0,
                           RandInt(0, x.dim() == 0 ? 1 : x.size(0), {3},
                                   device_, DType::kInt64));
      case 15:
        return Gather(x, 0, Zeros(x.shape(), device_, DType::kInt64));
      case 16:
        return View(x, {-1});
      case 17:
        return T(x);
      case 18:
        return Slice(x, 0, Below(2), 3, 1 + Below(2));
      case 19:
        return Select(x, -1, Below(3));
      case 20:
        return Squeeze(Unsqueeze(x, 0));
      case 21:
        return Expand(x, Below(2) == 0 ? Shape{3, 4} : Shape{2, 5});
      case 22:
        return Clone(x);
      case 23: {
        Tensor y = x;
        if (Below(2) == 0) {
          y *= Any();
        } else {
          y += 1;
        }
        return y;
      }
      case 24:
        FillInPlace(x, Below(5));
        return x;
      case 25:
        CopyTo(Any(), x);
        return x;
      case 26: {
        const Tensor empty = Empty({2, 3}, device_);
        FillInPlace(empty, 0.5);
        return empty;
      }
      default:
        return Creation();
    }
  }

  Tensor Creation() {
    switch (Below(6)) {
      case 0:
        return Rand({3, 4}, device_);
      case 1:
        return Randn({5}, device_);
      case 2:
        return Full({4, 3}, 0.1, device_);
      case 3:
        return Arange(0, 5, 1, device_);
      case 4:
        return Eye(3, 4, device_);
      default:
        return FromVector<float>({1, 2, 3, 4, 5}, {5}, device_);
    }
  }

  const Device device_;
  std::mt19937 random_;
};

template <typename T>
bool SameBits(const Tensor& a, const Tensor& b) {
  const std::vector<T> x = ToVector<T>(a), y = ToVector<T>(b);
  return x.empty() ||  // memcmp wants a pointer, even to nothing
         std::memcmp(x.data(), y.data(), x.size() * sizeof(T)) == 0;
}

void ExpectSameBits(const Tensor& got, const Tensor& expected) {
  ASSERT_EQ(got.shape(), expected.shape());
  ASSERT_EQ(got.dtype(), expected.dtype());
  EXPECT_TRUE(VisitDType(
      got.dtype(),
      [&](auto zero) { return SameBits<decltype(zero)>(got, expected); }))
      << got << expected;
}

class ReplayTest : public testing::TestWithParam<Device> {};

TEST_P(ReplayTest, RepeatsRandomProgramsBitForBit) {
  const Device device = GetParam();
  std::set<std::string> names;
  for (int seed = 0; seed < 60; ++seed) {
    ManualSeed(seed, device);
    Program program(device, seed);
    std::map<std::uint64_t, Tensor> values;  // of the replay, by traced id
    for (const Tensor& argument : program.arguments) {
      values[argument.id()] = Clone(argument);
    }
    Tracer tracer;
    ManualSeed(1000 + seed, device);
    {
      const ScopedOpListener listen(&tracer);
      for (int i = 0; i < 40; ++i) program.AddOp();
    }
    ManualSeed(1000 + seed, device);
    for (Tracer::Op& op : tracer.ops) {
      names.insert(op.call.primitive->name());
      if (seed % 2 == 0) op.call.primitive = FromText(op.call.primitive);
      std::vector<const Tensor*> inputs;
      for (const std::uint64_t id : op.inputs) {
        ASSERT_TRUE(values.count(id)) << op.call.primitive->name();
        inputs.push_back(&values[id]);
      }
      values[op.output] = Replay(
          op.call, inputs, op.call.in_place ? values.at(op.output) : Tensor());
    }
    for (const Tensor& value : program.values) {
      ASSERT_TRUE(values.count(value.id()));
      ExpectSameBits(values[value.id()], value);
    }
  }
  EXPECT_GE(names.size(), 30u) << testing::PrintToString(names);
}

INSTANTIATE_TEST_SUITE_P(All, ReplayTest, testing::ValuesIn(AllDevices()),
                         DeviceTestName);

const Device kCpu(DeviceType::kCpu, 0);
const SourceLocation kHere = SourceLocation::Current();

// Invalid requests of an untrusted program are refused, not run.
TEST(Replay, RefusesWhatItsKernelsRelyOn) {
  const auto replay = [](const char* name, std::vector<Attribute> attributes,
                         std::vector<Tensor> inputs) {
    OpCall call{MakePrimitive(name, attributes).value(), false, kHere, {}};
    std::vector<const Tensor*> pointers;
    for (const Tensor& input : inputs) pointers.push_back(&input);
    return ThrownText([&] { Replay(call, pointers); });
  };
  const Tensor x = Ones({2, 3}, kCpu);
  const Tensor t = T(x);
  const Tensor index = Zeros({1, 3}, kCpu, DType::kInt64);
  EXPECT_THAT(replay("softmax", {{"dim", "0"}}, {t}), HasSubstr("contiguous"));
  EXPECT_THAT(replay("cat", {{"dim", "0"}}, {t, t}), HasSubstr("contiguous"));
  EXPECT_THAT(replay("cat", {{"dim", "0"}}, {}), HasSubstr("at least one"));
  EXPECT_THAT(replay("gather", {{"dim", "1"}}, {x, index}),
              HasSubstr("as many dimensions"));
  EXPECT_THAT(replay("add", {}, {x}), HasSubstr("2 inputs wanted; got 1"));
  EXPECT_THAT(replay("add", {{"first", "2"}}, {x, x}), HasSubstr("1 inputs"));
  EXPECT_THAT(replay("relu", {}, {}), HasSubstr("1 inputs wanted; got 0"));
  EXPECT_THAT(replay("transpose", {{"dim0", "0"}, {"dim1", "1"}}, {}),
              HasSubstr("1 inputs wanted; got 0"));
  EXPECT_THAT(replay("transpose", {{"dim0", "0"}, {"dim1", "7"}}, {x}),
              HasSubstr("out of range"));
  const Tensor strided = Slice(Ones({4, 4}, kCpu), 1, 0, 4, 2);
  EXPECT_THAT(replay("matmul", {}, {strided, x}), HasSubstr("side by side"));
  const std::vector<Attribute> spec = {
      {"shape", "(2)"}, {"dtype", "float32"}, {"device", "cpu:0"}};
  EXPECT_THAT(replay("eye", spec, {}), HasSubstr("2 dimensions"));
  EXPECT_THAT(replay("fill",
                     [&] {
                       auto with_value = spec;
                       with_value.push_back({"value", "1"});
                       return with_value;
                     }(),
                     {x}),
              HasSubstr("0 inputs"));
}

TEST(MakePrimitive, SaysWhatIsWrongWithTheText) {
  const auto error = [](const char* name, std::vector<Attribute> attributes) {
    return std::string(MakePrimitive(name, attributes).status().message());
  };
  EXPECT_THAT(error("frobnicate", {}), HasSubstr("no operation"));
  EXPECT_THAT(error("from_vector", {}), HasSubstr("host's numbers"));
  EXPECT_THAT(error("softmax", {}), HasSubstr("\"dim\" is missing"));
  EXPECT_THAT(error("softmax", {{"dim", "1x"}}), HasSubstr("not an integer"));
  EXPECT_THAT(error("softmax", {{"dim", "0"}, {"dim", "0"}}),
              HasSubstr("given twice"));
  EXPECT_THAT(error("relu", {{"speed", "11"}}), HasSubstr("unknown"));
  EXPECT_THAT(error("add", {{"second", "two"}}), HasSubstr("not a number"));
  EXPECT_THAT(error("view", {{"shape", "(2, 3"}}), HasSubstr("not a shape"));
  EXPECT_THAT(error("sum", {{"dim", "0, "}, {"keepdim", "true"}}),
              HasSubstr("not an integer"));
  EXPECT_THAT(error("sum", {{"dim", "0"}, {"keepdim", "yes"}}),
              HasSubstr("not true or false"));
  const auto empty = [&](const char* shape, const char* dtype,
                         const char* device) {
    return error("empty",
                 {{"shape", shape}, {"dtype", dtype}, {"device", device}});
  };
  EXPECT_EQ(empty("()", "uint8", "cpu:0"), "");
  EXPECT_THAT(empty("()", "float16", "cpu:0"), HasSubstr("\"dtype\""));
  EXPECT_THAT(empty("()", "uint8", "tpu:0"), HasSubstr("\"device\""));
  EXPECT_THAT(empty("(1, 1, 1, 1, 1, 1, 1, 1, 1)", "uint8", "cpu:0"),
              HasSubstr("\"shape\""));
}

}  // namespace
}  // namespace d2l
