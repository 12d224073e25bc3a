// Random programs through every pass and executor, compared bit for bit with
// the operations themselves: their results, what they wrote in place, and how
// far the random generator went.

#include <string>
#include <utility>
#include <vector>

#include "common/graph/captured.h"
#include "common/graph/interpreter.h"
#include "common/graph/ir.h"
#include "common/graph/ir_testing.h"
#include "common/graph/ir_text.h"
#include "common/graph/passes.h"
#include "common/graph/trace.h"
#include "common/ops/ops.h"
#include "gtest/gtest.h"

namespace d2l::ir {
namespace {

constexpr unsigned kPrograms = 2000;

class RandomProgramTest : public testing::Test {
 protected:
  // Everything that a call leaves behind.
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

  const Device device_{};
};

TEST_F(RandomProgramTest, AllExecutorsAgree) {
  int captured_programs = 0;
  for (unsigned seed = 0; seed < kPrograms; ++seed) {
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
      const absl::Status valid = Verify(g);
      ASSERT_TRUE(valid.ok())
          << what << ", seed " << seed << ": " << valid << "\n"
          << traced;
      const std::string text = ToText(g);
      absl::StatusOr<Graph> parsed = ParseText(text);
      ASSERT_TRUE(parsed.ok())
          << what << ", seed " << seed << ": " << parsed.status() << "\n"
          << text;
      ASSERT_EQ(ToText(*parsed), text) << what << ", seed " << seed;
      // What nothing uses any more has no text.
      for (Weight& weight : parsed->weights) {
        for (const Weight& bound : g.weights) {
          if (bound.name == weight.name) weight.tensor = bound.tensor;
        }
      }
      Captured captured(*parsed);
      captured_programs += captured.not_captured().empty();
      // Twice, with other numbers, through the same arena.
      for (unsigned version = 0; version < 2; ++version) {
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
    // Each alone, of some programs: that is most of the time.
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
  // The comparison is one with the interpreter only for a part.
  EXPECT_GT(captured_programs, static_cast<int>(kPrograms) / 2);
}

}  // namespace
}  // namespace d2l::ir
