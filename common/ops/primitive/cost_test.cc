// Costs against counts made element by element, as one would by hand.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "common/device/device_table.h"
#include "common/kernels/philox.h"
#include "common/ops/nn/primitives.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/primitives.h"
#include "common/ops/primitive/replay.h"
#include "common/ops/testing/testing.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using kernels::IndexOp;

// Counts the work of an operation.
struct Counter {
  void Flop(int n) { flop += n; }
  // A fused multiplication and addition for each coefficient but the first.
  void Polynomial(int coefficients) {
    for (int i = 1; i < coefficients; ++i) Flop(2);
  }
  // Reads or writes an element of x.
  void Touch(const Tensor& x) {
    bytes += static_cast<std::int64_t>(DTypeSize(x.dtype()));
  }
  void TouchAll(const Tensor& x) {
    for (std::int64_t i = 0; i < x.numel(); ++i) Touch(x);
  }
  // What was touched was written.
  void Written(const Tensor& x) {
    written += x.numel() * static_cast<std::int64_t>(DTypeSize(x.dtype()));
  }
  std::int64_t flop = 0;
  std::int64_t bytes = 0;
  std::int64_t written = 0;
  std::int64_t avoidable_flop = 0;
};

class Sizes {
 public:
  explicit Sizes(int seed) : random_(seed) {}

  // A random size from `low` to 7.
  std::int64_t Size(int low = 0) {
    return low + static_cast<std::int64_t>(random_() % (8 - low));
  }
  Tensor Make(const Shape& shape) { return Empty(shape, Device(), dtype); }

  const DType dtype = DType::kFloat64;

 private:
  std::mt19937 random_;
};

void Expect(const Counter& counted, const Primitive& primitive,
            const std::vector<Tensor>& inputs, const Tensor& output) {
  std::vector<const Tensor*> pointers;
  for (const Tensor& input : inputs) pointers.push_back(&input);
  const OpCost cost = primitive.Cost(pointers, output);
  EXPECT_EQ(cost.flop, counted.flop) << primitive.name();
  EXPECT_EQ(cost.bytes, counted.bytes) << primitive.name();
  EXPECT_EQ(cost.written, counted.written) << primitive.name();
  EXPECT_EQ(cost.avoidable_flop, counted.avoidable_flop) << primitive.name();
  EXPECT_EQ(cost.least_flop(), counted.flop - counted.avoidable_flop);
}

// Reads the inputs and writes the output, whole, and does `per_element` for
// each element of `counted_by`.
void ExpectWhole(const Primitive& primitive, const std::vector<Tensor>& inputs,
                 const Tensor& output, int per_element,
                 const Tensor& counted_by) {
  Counter counter;
  for (const Tensor& input : inputs) counter.TouchAll(input);
  counter.TouchAll(output), counter.Written(output);
  for (std::int64_t i = 0; i < counted_by.numel(); ++i) {
    counter.Flop(per_element);
  }
  Expect(counter, primitive, inputs, output);
}

void CheckElementwise(const Primitive& primitive, Sizes& sizes, int operands,
                      int flop) {
  const Tensor x = sizes.Make({sizes.Size(), sizes.Size()});
  std::vector<Tensor> inputs;
  for (int i = 0; i < operands; ++i) inputs.push_back(sizes.Make(x.shape()));
  ExpectWhole(primitive, inputs, x, flop, x);
}

void CheckCreation(const Primitive& primitive, Sizes& sizes) {
  const Tensor x = sizes.Make({sizes.Size(), sizes.Size()});
  ExpectWhole(primitive, {}, x, 0, x);
}

void CheckView(const Primitive& primitive, Sizes& sizes) {
  const Tensor x = sizes.Make({3, 4});
  Expect({}, primitive, {x}, x);
}

void CheckMatMul(const Primitive& primitive, Sizes& sizes) {
  const std::int64_t batch = sizes.Size(), m = sizes.Size(), k = sizes.Size(),
                     n = sizes.Size();
  const Tensor a = sizes.Make({batch, m, k}), b = sizes.Make({batch, k, n});
  const Tensor c = sizes.Make({batch, m, n});
  Counter counter;
  counter.TouchAll(a), counter.TouchAll(b), counter.TouchAll(c);
  counter.Written(c);
  for (std::int64_t i = 0; i < batch * m * n; ++i) {
    for (std::int64_t p = 0; p < k; ++p) counter.Flop(2);
  }
  Expect(counter, primitive, {a, b}, c);
}

// Both directions do the same multiplications and additions.
void CheckConvolution(const std::string& which, Sizes& sizes) {
  const std::int64_t batch = sizes.Size(), out = sizes.Size(1),
                     in = sizes.Size(1), kernel = sizes.Size(1);
  const std::int64_t height = kernel + 2 * sizes.Size(), width = kernel + 5;
  const Tensor x = sizes.Make({batch, in, height, width});
  const Tensor weight = sizes.Make({out, in, kernel, kernel});
  const Tensor bias = sizes.Make({out});
  const Tensor y =
      sizes.Make({batch, out, height - kernel + 1, width - kernel + 1});
  Counter counter;
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    for (std::int64_t j = 0; j < in * kernel * kernel; ++j) counter.Flop(2);
  }
  // Winograd's algorithm, where it needs less.
  std::int64_t least = 0;
  for (std::int64_t image = 0; image < batch * out * in; ++image) {
    for (std::int64_t h = 0; h < y.size(2); h += 4) {
      for (std::int64_t w = 0; w < y.size(3); w += 4) least += 2 * 6 * 6;
    }
  }
  if (kernel == 3 && least < counter.flop) {
    counter.avoidable_flop = counter.flop - least;
  }
  counter.TouchAll(x), counter.TouchAll(weight), counter.TouchAll(y);
  const Conv2dOptions options;
  counter.Written(which == "conv2d_input_gradient"    ? x
                  : which == "conv2d_weight_gradient" ? weight
                                                      : y);
  if (which == "conv2d_input_gradient") {
    Expect(counter, Conv2dBackwardPrimitive(false, options, x.shape()),
           {y, weight}, x);
  } else if (which == "conv2d_weight_gradient") {
    Expect(counter, Conv2dBackwardPrimitive(true, options, weight.shape()),
           {y, x}, weight);
  } else {
    Expect(counter, Conv2dPrimitive(options), {x, weight}, y);
    counter.TouchAll(bias);
    for (std::int64_t i = 0; i < y.numel(); ++i) counter.Flop(1);
    Expect(counter, Conv2dPrimitive(options), {x, weight, bias}, y);
  }
}

void CheckPooling(bool max, bool backward, Sizes& sizes) {
  const std::int64_t images = sizes.Size(), kernel = sizes.Size(1), n = 3;
  const Tensor x = sizes.Make({images, n * kernel, n * kernel});
  const Tensor y = sizes.Make({images, n, n});
  const Pooling pooling = {max, kernel, kernel, 0};
  Counter counter;
  for (std::int64_t i = 0; i < y.numel() * kernel * kernel; ++i) {
    counter.Flop(1);
  }
  counter.TouchAll(x), counter.TouchAll(y);
  counter.Written(backward ? x : y);
  if (!backward) {
    Expect(counter, Pool2dPrimitive(pooling), {x}, y);
    return;
  }
  std::vector<Tensor> inputs = {y};
  if (max) {
    inputs.push_back(sizes.Make(x.shape()));
    counter.TouchAll(inputs[1]);
  }
  Expect(counter, Pool2dBackwardPrimitive(pooling, x.shape()), inputs, x);
}

void CheckBatchNorm(const std::string& which, Sizes& sizes) {
  const std::int64_t channels = sizes.Size(1);
  const Tensor x = sizes.Make({sizes.Size(1), channels, sizes.Size()});
  const Tensor dy = sizes.Make(x.shape()), out = sizes.Make(x.shape());
  const Tensor statistics = sizes.Make({2, channels});
  const Tensor weight = sizes.Make({channels});
  if (which == "batch_norm_stats") {
    ExpectWhole(BatchNormStatisticsPrimitive(), {x}, statistics, 4, x);
    // The running values are read and written.
    const Tensor mean = sizes.Make({channels}), var = sizes.Make({channels});
    Counter counter;
    for (const Tensor& used : {x, statistics, mean, mean, var, var}) {
      counter.TouchAll(used);
    }
    counter.Written(statistics);
    for (std::int64_t i = 0; i < 4 * x.numel(); ++i) counter.Flop(1);
    for (std::int64_t i = 0; i < 2 * channels; ++i) counter.Flop(3);
    Expect(counter, BatchNormStatisticsPrimitive(0.1), {x, mean, var},
           statistics);
  } else if (which == "batch_norm") {
    ExpectWhole(BatchNormPrimitive(true, 0),
                {x, statistics, weight, sizes.Make({channels})}, out, 3, x);
  } else if (which == "batch_norm_backward_reduce") {
    ExpectWhole(BatchNormBackwardReducePrimitive(true, 0), {dy, x, statistics},
                sizes.Make({2, channels}), 4, x);
  } else {
    ExpectWhole(BatchNormBackwardPrimitive(0),
                {dy, x, statistics, weight, sizes.Make({2, channels})}, out, 5,
                x);
    // Without the sums x is not read.
    Counter counter;
    for (const Tensor& read : {dy, statistics, weight, out}) {
      counter.TouchAll(read);
    }
    counter.Written(out);
    for (std::int64_t i = 0; i < x.numel(); ++i) counter.Flop(1);
    Expect(counter, BatchNormBackwardPrimitive(0), {dy, x, statistics, weight},
           out);
  }
}

// Rows of x are taken, or added to.
void CheckIndices(IndexOp op, bool add, Sizes& sizes) {
  const std::int64_t rows = sizes.Size(), width = sizes.Size(),
                     taken = sizes.Size();
  const Tensor x = sizes.Make({rows, width});
  const Tensor source = sizes.Make({taken, width});
  const Tensor index =
      Empty(op == IndexOp::kGather ? source.shape() : Shape{taken}, Device(),
            DType::kInt64);
  Counter counter;
  counter.TouchAll(index), counter.TouchAll(source);
  Counter in_place = counter;
  const std::int64_t least = std::min(x.numel(), source.numel());
  for (std::int64_t i = 0; i < least; ++i) in_place.Touch(x);
  if (!add) in_place.Written(source);
  if (!add) {
    Expect(in_place, IndexPrimitive(op, 0), {x, index}, source);
    return;
  }
  for (std::int64_t i = 0; i < source.numel(); ++i) in_place.Flop(1);
  for (std::int64_t i = 0; i < least; ++i) in_place.Touch(x);
  Expect(in_place, IndexAddPrimitive(op, 0), {x, index, source}, x);
  counter.flop = in_place.flop;
  const Tensor out = sizes.Make(x.shape());
  counter.TouchAll(x), counter.TouchAll(out), counter.Written(out);
  Expect(counter, IndexAddPrimitive(op, 0), {x, index, source}, out);
}

// ---- Functions, line by line as math.h has them for float.

void CountExp(Counter& c) {
  c.Flop(2), c.Flop(1);  // rounded, n
  c.Flop(2), c.Flop(2);  // f
  c.Polynomial(5);       // ExpTail
  c.Flop(2), c.Flop(2);  // p
  c.Flop(2);             // the scale, of two factors
}

void CountNormalTail(Counter& c) {  // TimesNormalTail
  c.Flop(1), c.Flop(2);             // square, lost
  c.Flop(1), CountExp(c);           // e
  c.Flop(1), c.Flop(2);             // normal
  c.Flop(2);                        // inverse
  c.Flop(2), c.Polynomial(10), c.Flop(1);
  c.Flop(2);  // factor * tail * normal
}

int FlopOf(kernels::UnaryOp op) {
  using kernels::UnaryOp;
  Counter c;
  if (op == UnaryOp::kExp) {
    CountExp(c);
  } else if (op == UnaryOp::kLog) {
    c.Flop(1), c.Flop(1), c.Flop(1);  // x * scale, e, f
    c.Flop(1), c.Flop(1), c.Flop(2);  // high, sum, error
    c.Polynomial(9), c.Flop(2);       // LogTail
    c.Flop(2), c.Flop(1), c.Flop(1);  // e * kLog2Low, the tail, the sum
    c.Flop(1);                        // special
  } else if (op == UnaryOp::kTanh) {
    c.Flop(2), c.Flop(1), c.Flop(4), c.Flop(1);  // rounded, n, g, z
    c.Flop(1), c.Polynomial(3), c.Flop(2);       // h
    c.Flop(2), c.Flop(2), c.Flop(2), c.Flop(1);  // s + 1, s - 1, the quotient
  } else if (op == UnaryOp::kSigmoid) {
    CountExp(c), c.Flop(2), c.Flop(2);
  } else if (op == UnaryOp::kNdtr || op == UnaryOp::kGelu) {
    CountNormalTail(c), c.Flop(1);
  } else {
    c.Flop(1);
  }
  return static_cast<int>(c.flop);
}

int FlopOf(kernels::BinaryOp op) {
  using kernels::BinaryOp;
  Counter c;
  if (op == BinaryOp::kTanhGradient) {
    c.Flop(1), c.Flop(1), c.Flop(1);  // y * y, 1 - that, dy * that
  } else if (op == BinaryOp::kSigmoidGradient) {
    c.Flop(1), c.Flop(1), c.Flop(1);  // 1 - y, that * y, dy * that
  } else {
    c.Flop(1);
  }
  return static_cast<int>(c.flop);
}

// philox.h for float: whole blocks.
void CheckRandom(kernels::RandomOp op, Sizes& sizes) {
  const Tensor x = sizes.Make({sizes.Size(), 4});
  Counter counter;
  counter.TouchAll(x), counter.Written(x);
  for (std::int64_t block = 0; block < x.size(0); ++block) {
    for (int round = 0; round < kernels::kPhiloxRounds; ++round) {
      // A product takes two lanes, of two each; the first of zero is none.
      counter.Flop(round == 0 ? 4 : 8);
    }
    for (int pair = 0; pair < 2; ++pair) {
      if (op != kernels::RandomOp::kNormal) {
        counter.Flop(2);
        continue;
      }
      counter.Flop(2), counter.Flop(1);  // u, t
      counter.Flop(1), counter.Polynomial(10), counter.Flop(1);
      counter.Flop(2), counter.Flop(1);                         // radius
      counter.Flop(1);                                          // z
      counter.Polynomial(5), counter.Flop(1);                   // sine
      counter.Polynomial(5), counter.Flop(2), counter.Flop(1);  // cosine
      counter.Flop(2);
    }
  }
  Expect(counter, RandomPrimitive(op, {}), {}, x);
}

using Check = std::function<void(Sizes&)>;

template <typename Op, typename Make>
void AddFamily(std::map<std::string, Check>* checks, const Make& make) {
  for (const auto& row : kernels::kOpInfos<Op>) {
    (*checks)[row.name] = [=](Sizes& sizes) { make(row.op, sizes); };
  }
}

std::map<std::string, Check> Checks() {
  using kernels::BinaryOp, kernels::RandomOp, kernels::ReduceOp,
      kernels::UnaryOp;
  std::map<std::string, Check> checks;
  AddFamily<UnaryOp>(&checks, [](UnaryOp op, Sizes& sizes) {
    CheckElementwise(UnaryPrimitive(op), sizes, 1, FlopOf(op));
  });
  AddFamily<BinaryOp>(&checks, [](BinaryOp op, Sizes& sizes) {
    CheckElementwise(BinaryPrimitive(op, BinaryPrimitive::Which::kNone, 0),
                     sizes, 2, FlopOf(op));
    CheckElementwise(BinaryPrimitive(op, BinaryPrimitive::Which::kFirst, 2),
                     sizes, 1, FlopOf(op));
  });
  AddFamily<RandomOp>(
      &checks, [](RandomOp op, Sizes& sizes) { CheckRandom(op, sizes); });
  AddFamily<ReduceOp>(&checks, [](ReduceOp op, Sizes& sizes) {
    const Tensor x = sizes.Make({sizes.Size(), sizes.Size()});
    ExpectWhole(ReducePrimitive(op, {0}, false), {x}, sizes.Make({x.size(1)}),
                1, x);
  });
  checks["where"] = [](Sizes& sizes) {
    CheckElementwise(WherePrimitive({}, {}), sizes, 3, 1);
  };
  checks["axpby"] = [](Sizes& sizes) {
    CheckElementwise(AxpbyPrimitive(2, 3), sizes, 2, 3);
  };
  for (const bool log : {false, true}) {
    checks[log ? "log_softmax" : "softmax"] = [=](Sizes& sizes) {
      CheckElementwise(SoftmaxPrimitive(log, 1), sizes, 1,
                       FlopOf(kernels::UnaryOp::kExp) + 4);
    };
  }
  checks["matmul"] = [](Sizes& sizes) {
    CheckMatMul(MatMulPrimitive(), sizes);
  };
  for (const char* name :
       {"conv2d", "conv2d_input_gradient", "conv2d_weight_gradient"}) {
    checks[name] = [=](Sizes& sizes) { CheckConvolution(name, sizes); };
  }
  for (const bool backward : {false, true}) {
    const std::string rest = backward ? "_pool2d_backward" : "_pool2d";
    checks["max" + rest] = [=](Sizes& s) { CheckPooling(true, backward, s); };
    checks["avg" + rest] = [=](Sizes& s) { CheckPooling(false, backward, s); };
  }
  for (const char* name :
       {"batch_norm", "batch_norm_stats", "batch_norm_backward_reduce",
        "batch_norm_backward_elemt"}) {
    checks[name] = [=](Sizes& sizes) { CheckBatchNorm(name, sizes); };
  }
  checks["cross_entropy"] = [](Sizes& sizes) {
    const Tensor x = sizes.Make({sizes.Size(), sizes.Size()});
    const Tensor labels = Empty({x.size(0)}, Device(), DType::kInt64);
    ExpectWhole(CrossEntropyPrimitive(), {x, labels}, sizes.Make({x.size(0)}),
                FlopOf(kernels::UnaryOp::kExp) + 3, x);
  };
  checks["cross_entropy_backward"] = [](Sizes& sizes) {
    const Tensor x = sizes.Make({sizes.Size(), sizes.Size()});
    const Tensor labels = Empty({x.size(0)}, Device(), DType::kInt64);
    ExpectWhole(CrossEntropyBackwardPrimitive(),
                {sizes.Make({x.size(0)}), x, labels}, sizes.Make(x.shape()),
                FlopOf(kernels::UnaryOp::kExp) + 5, x);
  };
  checks["gather"] = [](Sizes& sizes) {
    CheckIndices(IndexOp::kGather, false, sizes);
  };
  checks["index_select"] = [](Sizes& sizes) {
    CheckIndices(IndexOp::kSelect, false, sizes);
  };
  checks["scatter_add"] = [](Sizes& sizes) {
    CheckIndices(IndexOp::kGather, true, sizes);
  };
  checks["index_add"] = [](Sizes& sizes) {
    CheckIndices(IndexOp::kSelect, true, sizes);
  };
  // Operations that move or fill memory.
  checks["cat"] = [](Sizes& sizes) {
    const std::int64_t width = sizes.Size(), a = sizes.Size(), b = sizes.Size();
    const Tensor x = sizes.Make({a + b, width});
    ExpectWhole(CatPrimitive(0),
                {sizes.Make({a, width}), sizes.Make({b, width})}, x, 0, x);
  };
  for (const char* name : {"to", "clone", "contiguous", "copy"}) {
    checks[name] = [=](Sizes& sizes) {
      CheckElementwise(CopyPrimitive(name, {}), sizes, 1, 0);
    };
  }
  for (const char* name : {"zeros", "ones", "full"}) {
    checks[name] = [=](Sizes& sizes) {
      CheckCreation(FullPrimitive(name, {}, 0), sizes);
    };
  }
  checks["arange"] = [](Sizes& sizes) {
    CheckCreation(ArangePrimitive({}, 0, 1), sizes);
  };
  checks["eye"] = [](Sizes& sizes) {
    CheckCreation(EyePrimitive(ValueSpec()), sizes);
  };
  checks["fill"] = [](Sizes& sizes) {
    CheckCreation(FillPrimitive({}, 0), sizes);
  };
  checks["empty"] = [](Sizes& sizes) {
    Expect({}, EmptyPrimitive(ValueSpec()), {}, sizes.Make({3}));
  };
  checks["view"] = [](Sizes& s) { CheckView(ReshapePrimitive({4, 3}), s); };
  checks["transpose"] = [](Sizes& s) {
    CheckView(TransposePrimitive(0, 1), s);
  };
  checks["slice"] = [](Sizes& s) { CheckView(SlicePrimitive(0, 0, 2, 1), s); };
  checks["select"] = [](Sizes& s) { CheckView(SelectPrimitive(0, 1), s); };
  checks["squeeze"] = [](Sizes& s) { CheckView(SqueezePrimitive(0), s); };
  checks["unsqueeze"] = [](Sizes& s) { CheckView(UnsqueezePrimitive(0), s); };
  checks["expand"] = [](Sizes& s) { CheckView(ExpandPrimitive({3, 4}), s); };
  return checks;
}

// This fails for a new primitive until a count is added here.
TEST(OpCost, IsThatOfHandCounts) {
  const std::map<std::string, Check> checks = Checks();
  for (const std::string& name : PrimitiveNames()) {
    const auto check = checks.find(name);
    ASSERT_NE(check, checks.end()) << name << " is not counted";
    for (int seed = 0; seed < 20; ++seed) {
      Sizes sizes(seed);
      check->second(sizes);
    }
  }
}

OpCost CostOf(const Primitive& primitive, std::vector<const Tensor*> inputs,
              const Tensor& output) {
  return primitive.Cost(inputs, output);
}

TEST(OpCost, CountsBytesOnce) {
  const Tensor x = Empty({5, 7}), y = Empty({5, 7});
  const BinaryPrimitive add(kernels::BinaryOp::kAdd,
                            BinaryPrimitive::Which::kNone, 0);
  EXPECT_EQ(CostOf(add, {&x, &x}, y).bytes, 2 * 35 * 4);
  // In place: reads both and writes one.
  EXPECT_EQ(CostOf(add, {&x, &y}, x).bytes, 3 * 35 * 4);
  EXPECT_EQ(CostOf(add, {&x, &y}, x).written, 0);
  // A row expanded to all rows; a slice without the elements in between.
  const Tensor row = Expand(Empty({1, 7}), {5, 7});
  EXPECT_EQ(CostOf(add, {&x, &row}, y).bytes, (2 * 35 + 7) * 4);
  const Tensor columns = Empty({5, 70})[{kAll, Range{0, 7}}];
  EXPECT_EQ(CostOf(add, {&columns, &y}, y).bytes, 3 * 35 * 4);
  // Each tensor counts with its own dtype.
  const Tensor wide = Empty({5, 7}, Device(), DType::kFloat64);
  EXPECT_EQ(CostOf(CopyPrimitive("to", {}), {&x}, wide).bytes, 35 * (4 + 8));
}

}  // namespace
}  // namespace d2l
