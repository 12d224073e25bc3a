// Losses and optimisers against slow obvious versions, and training with them.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/autograd/tape.h"
#include "common/device/failure.h"
#include "common/device/testing/testing.h"
#include "common/nn/hybrid.h"
#include "common/nn/layers.h"
#include "common/nn/module.h"
#include "common/nn/sgd.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/record.h"
#include "common/ops/testing/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l::nn {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class TrainingTest : public DeviceTest {
 protected:
  Tensor Labels(const std::vector<std::int64_t>& labels) const {
    return FromVector<std::int64_t>(
        labels, {static_cast<std::int64_t>(labels.size())}, device());
  }
};
INSTANTIATE_FOR_ALL_DEVICES(TrainingTest);

TEST_P(TrainingTest, CrossEntropyIsTheSlowOne) {
  for (const std::int64_t n : {1, 5, 7}) {
    const Tensor logits = RandomTensor({n, 3}, device(), DType::kFloat64);
    std::vector<std::int64_t> labels;
    for (std::int64_t i = 0; i < n; ++i) labels.push_back(i * i % 3);
    const std::vector<double> x = ValuesOf(logits);
    std::vector<double> expected, gradient;
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const double* const row = &x[3 * i];
      const double most = std::max({row[0], row[1], row[2]});
      double total = 0;
      for (int j = 0; j < 3; ++j) total += std::exp(row[j] - most);
      expected.push_back(most + std::log(total) - row[labels[i]]);
      sum += expected.back();
      for (int j = 0; j < 3; ++j) {
        gradient.push_back(std::exp(row[j] - most) / total -
                           (j == labels[i] ? 1 : 0));
      }
    }
    const auto near = [&](const Tensor& got, const Shape& shape,
                          const std::vector<double>& values) {
      EXPECT_TRUE(IsNear(got, shape, DType::kFloat64, values,
                         std::vector<double>(values.size(), 1e-11)));
    };
    const Tensor y = Labels(labels);
    near(CrossEntropyLoss(logits, y, Reduction::kNone), {n}, expected);
    near(CrossEntropyLoss(logits, y), {}, {sum / static_cast<double>(n)});
    GradientTape tape({logits});
    const Tensor loss = CrossEntropyLoss(logits, y, Reduction::kSum);
    near(loss, {}, {sum});
    near(tape.Backward(loss)[0], {n, 3}, gradient);
  }
}

TEST_P(TrainingTest, CrossEntropyOfNoSamples) {
  const Tensor logits = Ones({0, 3}, device());
  EXPECT_EQ(CrossEntropyLoss(logits, Labels({}), Reduction::kNone).shape(),
            Shape{0});
  EXPECT_EQ(Item(CrossEntropyLoss(logits, Labels({}), Reduction::kSum)), 0);
  EXPECT_TRUE(std::isnan(Item(CrossEntropyLoss(logits, Labels({})))));
}

TEST_P(TrainingTest, CrossEntropyRefusesWhatIsNoBatch) {
  const Tensor logits = Ones({2, 3}, device());
  EXPECT_THAT(ThrownText([&] { CrossEntropyLoss(logits, Labels({1})); }),
              HasSubstr("[cross_entropy] logits of shape (n, classes)"));
  EXPECT_THAT(
      ThrownText([&] { CrossEntropyLoss(logits, Ones({2}, device())); }),
      HasSubstr("[cross_entropy] logits of shape (n, classes)"));
  EXPECT_THAT(ThrownText([&] {
                CrossEntropyLoss(Ones({3}, device()), Labels({1, 1, 1}));
              }),
              HasSubstr("[cross_entropy] logits of shape (n, classes)"));
}

// The parameters refuse to be used, instead of being wrong.
TEST_P(TrainingTest, ALabelOutOfRangeFailsLateAndNamesItsLine) {
  Linear net(2, 3, /*bias=*/true, device());
  const int line = __LINE__ + 5;
  std::string error = "nothing thrown";
  try {
    GradientTape tape(Parameters(net));
    const Tensor loss =
        CrossEntropyLoss(net(Ones({2, 2}, device())), Labels({1, 3}));
    SGD sgd(Parameters(net), {0.1});
    sgd.Step(tape.Backward(loss));
    Item(loss);
  } catch (const AsyncError& late) {
    error = late.what();
  }
  EXPECT_THAT(error, AllOf(HasSubstr("cross_entropy"), HasSubstr("3"),
                           HasSubstr("common/nn/training_test.cc:" +
                                     std::to_string(line))));
  RunOnce([] {});  // discards the error
}

TEST_P(TrainingTest, SgdIsTheSlowOne) {
  for (const SGDOptions& options : std::vector<SGDOptions>{
           {0.1}, {0.1, 0.9}, {0.2, 0, 0.03}, {0.3, 0.8, 0.05}}) {
    const Tensor p = RandomTensor({3, 5}, device(), DType::kFloat64);
    std::vector<double> expected = ValuesOf(p), v(15, 0);
    SGD sgd({p}, options);
    for (int step = 0; step < 3; ++step) {
      const Tensor gradient = RandomTensor({3, 5}, device(), DType::kFloat64);
      const std::vector<double> g = ValuesOf(gradient);
      sgd.Step({gradient});
      for (std::size_t i = 0; i < expected.size(); ++i) {
        v[i] =
            options.momentum * v[i] + g[i] + options.weight_decay * expected[i];
        expected[i] -= options.lr * v[i];
      }
      EXPECT_EQ(ValuesOf(gradient), g);
    }
    std::vector<double> errors;
    for (const double value : expected) {
      errors.push_back(1e-13 * (1 + std::abs(value)));
    }
    EXPECT_TRUE(IsNear(p, {3, 5}, DType::kFloat64, expected, errors));
  }
}

// Of more parameters than one launch takes, some strided, on two devices.
template <typename T>
void CheckBitsOfSgd(Device device, const SGDOptions& options) {
  constexpr DType kDType = DTypeOf<T>::value;
  const double special[] = {INFINITY, NAN, 1e38, 1e-44, -0.0};
  const auto as_t = [](const std::vector<double>& values) {
    return std::vector<T>(values.begin(), values.end());
  };
  std::vector<Tensor> parameters;
  std::vector<std::vector<T>> p, v(103);
  for (std::int64_t i = 0; i < 103; ++i) {
    const Shape shape = i == 9 ? Shape{333, 101} : Shape{i * i % 11, i % 7};
    parameters.push_back(RandomTensor(
        shape, i % 20 == 19 ? OtherDevice(device) : device, kDType,
        i % 10 == 8 ? Placement::kTransposed : Placement::kContiguous));
    p.push_back(as_t(ValuesOf(parameters.back())));
  }
  SGD sgd(parameters, options);
  const T lr = static_cast<T>(-options.lr);
  const T momentum = static_cast<T>(options.momentum);
  const T decay = static_cast<T>(options.weight_decay);
  const T kept = static_cast<T>(1 - options.lr * options.weight_decay);
  for (int step = 0; step < 3; ++step) {
    std::vector<Tensor> gradients;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const Tensor& x = parameters[i];
      std::vector<double> values = RandomValues(x.numel(), kDType);
      if (i % 5 == 1 && !values.empty()) values[0] = special[i / 5 % 5];
      gradients.push_back(
          Place(values, x.shape(), x.device(), kDType,
                i % 4 == 2 ? Placement::kTransposed : Placement::kOffset));
      const std::vector<T> g = as_t(ValuesOf(gradients[i]));
      v[i].resize(g.size());
      for (std::size_t e = 0; e < g.size(); ++e) {
        if (options.momentum == 0) {
          p[i][e] = lr * g[e] + kept * p[i][e];
          continue;
        }
        v[i][e] = step == 0 ? g[e] : g[e] + momentum * v[i][e];
        if (decay != 0) v[i][e] = decay * p[i][e] + v[i][e];
        p[i][e] = lr * v[i][e] + p[i][e];
      }
    }
    sgd.Step(gradients);
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::vector<T> got = ToVector<T>(parameters[i]);
    for (std::size_t e = 0; e < got.size(); ++e) {
      ASSERT_TRUE((std::isnan(got[e]) && std::isnan(p[i][e])) ||
                  std::memcmp(&got[e], &p[i][e], sizeof(T)) == 0)
          << "element " << e << " of parameter " << i << ": " << got[e]
          << ", not " << p[i][e];
    }
  }
}

TEST_P(TrainingTest, SgdHasTheBitsOfALoop) {
  for (const SGDOptions& options : std::vector<SGDOptions>{
           {0.1}, {0.1, 0.9}, {0.2, 0, 0.03}, {0.3, 0.8, 0.05}}) {
    CheckBitsOfSgd<float>(device(), options);
    CheckBitsOfSgd<double>(device(), options);
  }
}

TEST_P(TrainingTest, SgdUpdatesAllParametersAtOnce) {
  class Numbers : public OpListener {
   public:
    void OnOp(const OpRecord& record) override {
      if (record.stream != nullptr) numbers.insert(record.number);
    }
    std::set<std::uint64_t> numbers;
  };
  const std::vector<Tensor> p = {Ones({2}, device()), Ones({3}, device()),
                                 Ones({4}, device())};
  SGD sgd(p, {0.1, 0.9, 0.01});
  sgd.Step(p);
  const std::vector<Tensor> g = {Ones({2}, device()), Ones({3}, device()),
                                 Ones({4}, device())};
  Numbers seen;
  const ScopedOpListener listen(&seen);
  sgd.Step(g);
  EXPECT_EQ(seen.numbers.size(), 3u);  // v, its weight decay, p
  sgd.options() = {0.1};
  seen.numbers.clear();
  sgd.Step(g);
  EXPECT_EQ(seen.numbers.size(), 1u);
}

TEST_P(TrainingTest, SgdRefusesGradientsThatAreNotLikeTheParameters) {
  const Tensor p = Ones({2}, device());
  SGD sgd({p}, {0.1});
  EXPECT_THAT(
      ThrownText([&] { sgd.Step({}); }),
      HasSubstr("[SGD] a gradient for each of 1 parameters wanted; got 0"));
  EXPECT_THAT(ThrownText([&] { sgd.Step({Ones({3}, device())}); }),
              HasSubstr("[SGD] gradient 0 is a float32 tensor of shape (3)"));
  EXPECT_EQ(ValuesOf(p), (std::vector<double>{1, 1}));
}

// A compiled program would request no operations that a tape could record.
TEST_P(TrainingTest, AHybridHasTheGradientsOfItsModule) {
  ManualSeed(3, device());
  Hybrid hybrid = Hybridize(Sequential(Linear(4, 5, true, device()), ReLU(),
                                       Linear(5, 3, true, device())));
  const Tensor x = Randn({2, 4}, device());
  hybrid(x);
  hybrid(x);  // compiled
  const auto gradients = [&](Module& net) {
    GradientTape tape(Parameters(net));
    return tape.Backward(CrossEntropyLoss(net(x), Labels({2, 0})));
  };
  const std::vector<Tensor> expected = gradients(hybrid.module());
  const std::vector<Tensor> got = gradients(hybrid);
  ASSERT_EQ(got.size(), 4u);
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_TRUE(Equal(got[i], expected[i]));
  }
}

// Points around centres: n samples of two numbers, and the centre's class.
struct Clusters {
  Tensor x;
  Tensor labels;
  std::vector<std::int64_t> classes;
};
Clusters MakeClusters(const std::vector<std::vector<float>>& centres,
                      const std::vector<std::int64_t>& classes, int n,
                      unsigned seed, Device device) {
  std::mt19937 random(seed);
  std::normal_distribution<float> noise(0, 0.3f);
  std::vector<float> values;
  Clusters clusters;
  for (int i = 0; i < n; ++i) {
    const std::size_t centre = random() % centres.size();
    for (const float at : centres[centre]) values.push_back(at + noise(random));
    clusters.classes.push_back(classes[centre]);
  }
  clusters.x = FromVector<float>(values, {n, 2}, device);
  clusters.labels = FromVector<std::int64_t>(clusters.classes, {n}, device);
  return clusters;
}

// The accuracy on other points, after this many steps.
double Train(Module& net, const std::vector<std::vector<float>>& centres,
             const std::vector<std::int64_t>& classes, int steps,
             Device device) {
  SGD sgd(Parameters(net), {/*lr=*/0.2, /*momentum=*/0.9});
  for (int step = 0; step < steps; ++step) {
    const Clusters batch = MakeClusters(centres, classes, 32, step, device);
    GradientTape tape(Parameters(net));
    sgd.Step(tape.Backward(CrossEntropyLoss(net(batch.x), batch.labels)));
  }
  const Clusters test = MakeClusters(centres, classes, 500, 1000000, device);
  const auto guesses = ToVector<std::int64_t>(ArgMax(net(test.x), 1));
  int right = 0;
  for (std::size_t i = 0; i < guesses.size(); ++i) {
    right += guesses[i] == test.classes[i] ? 1 : 0;
  }
  return right / 500.0;
}

TEST_P(TrainingTest, ALinearModelLearnsClusters) {
  ManualSeed(1, device());
  Linear net(2, 4, /*bias=*/true, device());
  const std::vector<std::vector<float>> centres = {
      {1, 1}, {1, -1}, {-1, 1}, {-1, -1}};
  EXPECT_GE(Train(net, centres, {0, 1, 2, 3}, 60, device()), 0.9);
}

// Opposite corners are of one class: no linear model gets beyond 0.75.
TEST_P(TrainingTest, AnMlpLearnsWhatALinearModelCannot) {
  ManualSeed(1, device());
  const std::vector<std::vector<float>> centres = {
      {1, 1}, {1, -1}, {-1, 1}, {-1, -1}};
  const std::vector<std::int64_t> classes = {0, 1, 1, 0};
  Linear linear(2, 2, /*bias=*/true, device());
  EXPECT_LE(Train(linear, centres, classes, 100, device()), 0.8);
  Sequential mlp(Linear(2, 16, /*bias=*/true, device()), ReLU(),
                 Linear(16, 2, /*bias=*/true, device()));
  EXPECT_GE(Train(mlp, centres, classes, 100, device()), 0.9);
}

}  // namespace
}  // namespace d2l::nn
