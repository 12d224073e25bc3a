// For tests of generated C++: compares its results with the operations.
//
//   ExpectAsEager(fn, {Numbers(random, {2, 3}, DType::kFloat32)});

#ifndef D2L_COMMON_GRAPH_GENERATED_GENERATED_TESTING_H_
#define D2L_COMMON_GRAPH_GENERATED_GENERATED_TESTING_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "common/graph/captured.h"
#include "common/graph/ir.h"
#include "common/graph/ir_testing.h"
#include "common/graph/passes/passes.h"
#include "common/graph/trace.h"
#include "common/ops/ops.h"
#include "gtest/gtest.h"

namespace d2l::ir {

inline CapturedOptions Generating() {
  CapturedOptions options;
  options.generate_cpp = true;
  options.cache_directory = testing::TempDir() + "/generated_code";
  options.compile_seconds_limit = 300;
  return options;
}

inline int CountFused(const Graph& graph) {
  int count = 0;
  for (const Node& node : graph.main().nodes) {
    count += node.kind == NodeKind::kFused;
  }
  return count;
}

// Traces fn, compiles it and compares; the graph must have `regions` fused
// regions, or any number if that is negative.
inline void ExpectAsEager(const TensorFunction& fn,
                          const std::vector<Tensor>& inputs, int regions = 1) {
  Graph graph = Trace(fn, inputs);
  Optimize(graph);
  if (regions >= 0) {
    EXPECT_EQ(CountFused(graph), regions);
  }
  Captured captured(graph, Generating());
  ASSERT_EQ(captured.not_generated(), "") << captured.generated_source();
  EXPECT_EQ(captured.generated_source().find("strips("), std::string::npos);
  const std::vector<std::string> eager = Bits(fn(inputs));
  // The second call is a replay.
  for (int call = 0; call < 2; ++call) {
    const std::vector<std::string> generated = Bits(captured.Run(inputs));
    ASSERT_EQ(generated.size(), eager.size());
    for (std::size_t i = 0; i < eager.size(); ++i) {
      ASSERT_EQ(generated[i], eager[i])
          << "result " << i << " of\n"
          << ToText(graph, false) << captured.generated_source();
    }
  }
}

// Numbers of all magnitudes, every special value, and small integers.
inline Tensor Numbers(std::mt19937& random, const Shape& shape, DType dtype) {
  return VisitDType(dtype, [&](auto zero) {
    using T = decltype(zero);
    std::vector<T> values(shape.numel());
    for (T& value : values) {
      if constexpr (std::is_floating_point_v<T>) {
        using Limits = std::numeric_limits<T>;
        static constexpr T kSpecial[] = {T(0.0),
                                         T(-0.0),
                                         T(1),
                                         T(-1),
                                         Limits::infinity(),
                                         -Limits::infinity(),
                                         Limits::quiet_NaN(),
                                         Limits::denorm_min(),
                                         -Limits::denorm_min(),
                                         Limits::min(),
                                         Limits::max(),
                                         -Limits::max(),
                                         Limits::epsilon()};
        const unsigned which = random() % 50;
        const auto number = static_cast<double>(random() % 20001) - 10000;
        value = which < 13 ? kSpecial[which] : static_cast<T>(number / 777);
      } else if constexpr (std::is_same_v<T, std::int64_t>) {
        static constexpr T kSpecial[] = {0, std::numeric_limits<T>::min(),
                                         std::numeric_limits<T>::max(), -1};
        const unsigned which = random() % 20;
        value = which < 4 ? kSpecial[which]
                          : static_cast<T>(random() % 2001) - 1000;
      } else {
        value = static_cast<T>(random());
      }
    }
    return FromVector(values, shape);
  });
}

}  // namespace d2l::ir

#endif  // D2L_COMMON_GRAPH_GENERATED_GENERATED_TESTING_H_
