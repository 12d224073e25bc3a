// Random programs, run after every pass and by every executor, compared bit for
// bit, any two NaN being equal, with the operations themselves: their results,
// their writes in place, and the state of the random generator.

#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/device/testing/testing.h"
#include "common/graph/captured.h"
#include "common/graph/ir.h"
#include "common/graph/ir_testing.h"
#include "common/graph/passes/passes.h"
#include "common/graph/saved/saved.h"
#include "common/graph/trace.h"
#include "common/ops/ops.h"
#include "gtest/gtest.h"

namespace d2l::ir {
namespace {

// One CPU device and, where there is one, a GPU.
std::vector<Device> OfEachType() {
  std::vector<Device> devices = {Device()};
  for (const Device device : AllDevices()) {
    if (device.type() == devices.back().type()) continue;
    devices.push_back(device);
  }
  return devices;
}

// Executors rely on this: a region returns each of its results once, and no
// argument, and holds element-wise operations with results of one shape.
void CheckRegions(const Graph& graph) {
  for (const Node& node : graph.main().nodes) {
    if (node.kind != NodeKind::kFused) continue;
    const Function& body = *node.body;
    std::set<ValueId> returned(body.arguments.begin(), body.arguments.end());
    for (const ValueId value : body.returns) {
      ASSERT_TRUE(returned.insert(value).second);
    }
    ASSERT_FALSE(body.nodes.empty());
    const Shape& shape = body.type(body.nodes[0].outputs[0]).shape();
    for (const Node& inner : body.nodes) {
      ASSERT_TRUE(IsFusable(inner, body));
      ASSERT_EQ(body.type(inner.outputs[0]).shape(), shape);
    }
  }
}

class RandomProgramTest : public testing::TestWithParam<Device> {
 protected:
  // All effects of a call.
  template <typename F>
  std::vector<std::string> After(const RandomProgram& program, unsigned version,
                                 const F& call) {
    std::vector<Tensor> seen = program.Arguments(version);
    ManualSeed(7);
    const std::vector<Tensor> results = call(seen);
    std::vector<std::string> bits = Bits(results);
    seen.insert(seen.end(), program.weights().begin(), program.weights().end());
    seen.push_back(Rand({1}, device_));
    for (const Tensor& x : seen) bits.push_back(Bits(x));
    return bits;
  }

  const Device device_ = GetParam();
  const bool on_gpu_ = device_.type() == DeviceType::kCuda;
  // A model of a GPU is slow.
  const unsigned programs_ = on_gpu_ ? 200 : 2000;
};

TEST_P(RandomProgramTest, AllExecutorsAgree) {
  int captured_programs = 0;
  for (unsigned seed = 0; seed < programs_; ++seed) {
    const RandomProgram program(seed, device_);
    std::vector<std::vector<std::string>> eager;
    for (unsigned version = 0; version < 2; ++version) {
      eager.push_back(After(program, version, program.function()));
    }
    Graph graph;
    ASSERT_EQ(eager[0], After(program, 0,
                              [&](const std::vector<Tensor>& x) {
                                TraceOptions options;
                                std::vector<Tensor> results;
                                options.results = &results;
                                graph = Trace(program.function(), x, options);
                                return results;
                              }))
        << "seed " << seed;

    const std::string traced = ToText(graph, false);
    const auto check = [&](const Graph& g, const char* what) {
      ASSERT_NO_THROW(Verify(g)) << what << ", seed " << seed << "\n" << traced;
      ASSERT_NO_FATAL_FAILURE(CheckRegions(g)) << what << ", seed " << seed;
      Graph flat = g;
      Unfuse(flat);
      const std::string text = ToText(flat);
      safetensors::NamedTensors tensors;
      const std::string json = ProgramToJson(flat, tensors);
      absl::StatusOr<Graph> parsed = ProgramFromJson(json, tensors, device_);
      ASSERT_TRUE(parsed.ok())
          << what << ", seed " << seed << ": " << parsed.status() << "\n"
          << text;
      ASSERT_EQ(ToText(*parsed), text) << what << ", seed " << seed;
      // Uses the same memory, because the program may write to it. Unused
      // weights are not in the JSON.
      for (Weight& weight : parsed->weights) {
        for (const Weight& bound : g.weights) {
          if (bound.name == weight.name) weight.tensor = bound.tensor;
        }
      }
      // Fuses as loading does, if the program has regions.
      if (CountOperations(g) != CountOperations(flat)) Fuse(*parsed);
      Captured captured(*parsed);
      captured_programs += captured.not_captured().empty();
      // Uses other numbers in the same arena. A GPU's first call runs the
      // interpreter.
      for (unsigned call = on_gpu_ ? 0 : 1; call < 3; ++call) {
        const unsigned version = call % 2;
        ASSERT_EQ(eager[version], After(program, version,
                                        [&](const std::vector<Tensor>& x) {
                                          return ir::Run(g, x);
                                        }))
            << what << ", interpreted, seed " << seed << "\n"
            << traced << "after the pass\n"
            << ToText(g, false);
        ASSERT_EQ(eager[version], After(program, version,
                                        [&](const std::vector<Tensor>& x) {
                                          return captured.Run(x);
                                        }))
            << what << ", captured, seed " << seed << "\n"
            << ToText(g, false);
      }
    };

    check(graph, "trace");
    if (HasFatalFailure()) return;
    const std::pair<const char*, void (*)(Graph&)> passes[] = {
        {"fold", Fold},
        {"simplify", Simplify},
        {"common subexpressions", MergeCommonSubexpressions},
        {"dead code", RemoveDeadCode},
        {"fuse", Fuse}};
    // Tests single passes on few programs: they take most of the time.
    for (const auto& [name, pass] : passes) {
      if (seed % 4 != 0) continue;
      Graph rewritten = graph;
      pass(rewritten);
      check(rewritten, name);
      if (HasFatalFailure()) return;
    }
    Optimize(graph);
    check(graph, "optimized");
    if (HasFatalFailure()) return;
  }
  // At most half of the programs are compared with the interpreter only.
  EXPECT_GT(captured_programs, static_cast<int>(programs_) / 2);
}

// Executors launch updates together: of weights, values and arguments, also
// large ones, in an order that matters, with views and new memory in between.
TEST_P(RandomProgramTest, UpdatesThatAreLaunchedTogether) {
  std::mt19937 random(5);
  for (int program = 0; program < (on_gpu_ ? 40 : 400); ++program) {
    const auto pick = [&](std::size_t n) { return random() % n; };
    const std::int64_t size = pick(4) == 0 ? 20001 : 6;
    const DType of_half = pick(3) == 0 ? DType::kFloat64 : DType::kFloat32;
    std::vector<Tensor> weights;
    for (int i = 0; i < 6; ++i) {
      const DType dtype = i < 3 ? of_half : DType::kFloat32;
      weights.push_back(Rand({i == 5 ? 0 : size}, device_, dtype));
    }
    const std::vector<Tensor> before = [&] {
      std::vector<Tensor> copies;
      for (const Tensor& w : weights) copies.push_back(Clone(w));
      return copies;
    }();
    const std::mt19937 from = random;
    const auto fn = [&](const std::vector<Tensor>& in) -> std::vector<Tensor> {
      std::mt19937 choice = from;
      std::vector<Tensor> pool = weights;
      pool.insert(pool.end(), in.begin(), in.end());
      pool.push_back(in[0] * 2);
      std::vector<Tensor> results;
      for (int i = 0; i < 14; ++i) {
        const std::size_t y = choice() % pool.size(),
                          x = choice() % pool.size();
        const std::size_t kind = choice() % 8;
        if (kind == 0) results.push_back(pool[x] * 3);
        const auto is_argument = [&](std::size_t i) {
          return i >= weights.size() && i < weights.size() + in.size();
        };
        if (kind == 1 && !is_argument(x)) {
          pool.push_back(Slice(pool[x], 0, 0, pool[x].size(0)));
        }
        if (kind == 2) {
          pool.push_back(EmptyLike(pool[x]));
          AxpbyInPlace(pool.back(), 0.5, pool[x], 0);
        }
        // Not to an argument: the interpreter runs such a program.
        if (is_argument(y)) continue;
        if (pool[y].shape() != pool[x].shape() ||
            pool[y].dtype() != pool[x].dtype()) {
          continue;
        }
        AxpbyInPlace(pool[y], -0.5, pool[x], kind == 3 ? 0.25 : 0.75);
      }
      for (std::size_t i = weights.size() + in.size(); i < pool.size(); ++i) {
        results.push_back(pool[i] * 1.5);
      }
      return results;
    };
    const std::vector<Tensor> inputs = {Rand({size}, device_),
                                        Rand({size}, device_)};
    const auto run = [&](const auto& call) {
      for (std::size_t i = 0; i < weights.size(); ++i) {
        CopyTo(before[i], weights[i]);
      }
      std::vector<std::string> bits = Bits(call(inputs));
      for (const Tensor& w : weights) bits.push_back(Bits(w));
      return bits;
    };
    Graph graph = Trace(fn, inputs);
    Optimize(graph);
    Captured captured(graph);
    ASSERT_EQ(captured.not_captured(), "") << program;
    const std::vector<std::string> expected = run(fn);
    for (int call = 0; call < 3; ++call) {
      ASSERT_EQ(
          run([&](const std::vector<Tensor>& in) { return captured.Run(in); }),
          expected)
          << program;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, RandomProgramTest,
                         testing::ValuesIn(OfEachType()), DeviceTestName);

}  // namespace
}  // namespace d2l::ir
