#include "common/graph/saved/saved.h"

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/files/atomic_file.h"
#include "common/device/testing/testing.h"
#include "common/graph/captured.h"
#include "common/graph/ir.h"
#include "common/graph/ir_testing.h"
#include "common/graph/passes/passes.h"
#include "common/graph/saved/saved_testing.h"
#include "common/graph/trace.h"
#include "common/ops/nn/functional.h"
#include "common/ops/ops.h"
#include "common/safetensors/safetensors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l::ir {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Values = std::vector<Tensor>;

TEST(SavedTest, ALoadedProgramRunsAsTheSavedOne) {
  for (const Device device : AllDevices()) {
    const std::string prefix = NewPrefix();
    const Mlp mlp(device);
    const Tensor x = Rand({4, 3}, device);
    Graph graph = mlp.Program(x);
    const std::vector<std::string> expected = Bits(ir::Run(graph, {x}));
    for (const bool optimized : {false, true}) {
      if (optimized) Optimize(graph);
      ASSERT_EQ(ErrorOf(SaveProgram(graph, prefix)), "none");
      EXPECT_THAT(FilesBeside(prefix), ElementsAre("my_mlp.safetensors"));
      absl::StatusOr<Graph> loaded = LoadProgram(prefix, device);
      ASSERT_TRUE(loaded.ok()) << loaded.status();
      Graph fused = graph;
      Fuse(fused);
      EXPECT_EQ(ToText(*loaded), ToText(fused));
      EXPECT_EQ(Bits(ir::Run(*loaded, {x})), expected);
      EXPECT_EQ(Bits(Captured(*loaded).Run({x})), expected);
    }
  }
}

// Loaded weights keep layouts other than row by row, and repeated elements: the
// program's types hold them.
TEST(SavedTest, WeightsKeepTheirStrides) {
  const std::string prefix = NewPrefix();
  const Tensor a = T(Rand({3, 4})), b = Expand(Rand({4, 1}), {4, 3});
  const Tensor c = Slice(Rand({4, 7}), 1, 1, 4), d = Empty({3, 0});
  const Tensor x = Rand({4, 3});
  Graph graph = Trace(
      [&](const Values& in) -> Values {
        return {in[0] * a - b / c, T(d) * 2};
      },
      {x});
  ASSERT_EQ(ErrorOf(SaveProgram(graph, prefix)), "none");
  const absl::StatusOr<Graph> loaded = LoadProgram(prefix);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  Fuse(graph);
  EXPECT_EQ(ToText(*loaded), ToText(graph));
  EXPECT_THAT(ToText(graph), HasSubstr("strides (1, 4)"));
  EXPECT_THAT(ToText(graph), HasSubstr("strides (1, 0)"));
  EXPECT_EQ(Bits(Captured(*loaded).Run({x})), Bits(ir::Run(graph, {x})));
}

TEST(SavedTest, TheProgramMovesToTheDevice) {
  const std::string prefix = NewPrefix();
  const Tensor w = Rand({2, 3});
  const Graph graph = Trace(
      [&](const Values& in) -> Values {
        return {in[0] * w + Ones({2, 3}), To(in[0], DType::kFloat64)};
      },
      {w});
  ASSERT_EQ(ErrorOf(SaveProgram(graph, prefix)), "none");
  const std::vector<std::string> expected = Bits(ir::Run(graph, {w}));
  for (const Device device : AllDevices()) {
    const absl::StatusOr<Graph> loaded = LoadProgram(prefix, device);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    const Values results = ir::Run(*loaded, {To(w, device)});
    for (const Tensor& result : results) EXPECT_EQ(result.device(), device);
    EXPECT_EQ(Bits(results), expected);
  }
}

// A program's writes to its weights do not change the files.
TEST(SavedTest, WrittenWeightsAreTheLoadedOnes) {
  const std::string prefix = NewPrefix();
  Tensor count = Full({2}, 5);
  const Graph graph = Trace(
      [&](const Values& in) -> Values {
        count += in[0];
        return {count * 2};
      },
      {Ones({2})}, {"main", {{"count", count}}});  // it is 6 now
  ASSERT_EQ(ErrorOf(SaveProgram(graph, prefix)), "none");
  const std::string bytes = ReadFile(prefix + ".safetensors");
  for (int i = 0; i < 2; ++i) {
    const absl::StatusOr<Graph> loaded = LoadProgram(prefix);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    const Captured captured(*loaded);
    EXPECT_THAT(Bits(ir::Run(*loaded, {Ones({2})})),
                ElementsAre(Bits(Full({2}, 14))));
    EXPECT_THAT(Bits(ir::Run(*loaded, {Ones({2})})),
                ElementsAre(Bits(Full({2}, 16))));
  }
  EXPECT_EQ(Bits(count), Bits(Full({2}, 6)));
  EXPECT_EQ(ReadFile(prefix + ".safetensors"), bytes);
}

// So are the running values, which an operation writes beside its output.
TEST(SavedTest, RunningValuesAreTheLoadedOnes) {
  for (const Device device : AllDevices()) {
    const std::string prefix = NewPrefix();
    const Tensor weight = Rand({2}, device), bias = Rand({2}, device);
    const Tensor mean = Rand({2}, device), variance = Rand({2}, device);
    const Tensor x = Rand({5, 2}, device);
    const Graph graph = Trace(
        [&](const Values& in) -> Values {
          const Tensor y = BatchNorm(in[0], weight, bias, mean, variance, true);
          return {y, mean * 1, variance * 1};
        },
        {x}, {"main", {{"mean", mean}, {"variance", variance}}});
    ASSERT_EQ(ErrorOf(SaveProgram(graph, prefix)), "none");
    const absl::StatusOr<Graph> loaded = LoadProgram(prefix, device);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    Captured captured(*loaded);
    std::vector<std::string> last;
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(Bits(ir::Run(*loaded, {x})), Bits(ir::Run(graph, {x})));
      const std::vector<std::string> outputs = Bits(captured.Run({x}));
      EXPECT_EQ(outputs, Bits(ir::Run(graph, {x})));
      EXPECT_NE(outputs, last);  // the running values go on
      last = outputs;
    }
  }
}

TEST(SavedTest, SharedMemoryIsSavedTwiceUnlessItIsWritten) {
  const std::string prefix = NewPrefix();
  Tensor w = Rand({4});
  Tensor half = Slice(w, 0, 0, 2);
  const TraceOptions names = {"main", {{"w", w}, {"half", half}}};
  const Graph reads = Trace(
      [&](const Values&) -> Values {
        return {w + 1, half + 2};
      },
      {}, names);
  ASSERT_EQ(ErrorOf(SaveProgram(reads, prefix)), "none");
  const absl::StatusOr<Graph> loaded = LoadProgram(prefix);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(Bits(ir::Run(*loaded, {})), Bits(ir::Run(reads, {})));
  const Graph writes = Trace(
      [&](const Values&) -> Values {
        half += 1;
        return {w * 2};
      },
      {}, names);
  const std::string before = ReadFile(prefix + ".safetensors");
  EXPECT_THAT(ErrorOf(SaveProgram(writes, prefix)),
              HasSubstr("main writes to weights that share memory"));
  EXPECT_EQ(ReadFile(prefix + ".safetensors"), before);
}

TEST(SavedTest, SavesTheWeightsThatAreUsed) {
  const std::string prefix = NewPrefix();
  const Mlp mlp;
  Graph graph = mlp.Program(Rand({1, 3}));
  graph.AddWeight("unused", mlp.w0);
  ASSERT_EQ(ErrorOf(SaveProgram(graph, prefix)), "none");
  const auto file = safetensors::LoadFile(prefix + ".safetensors");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->tensors.size(), 3u);
}

TEST(SavedTest, WhatCannotBeWrittenLeavesTheOldFile) {
  const std::string prefix = NewPrefix();
  const Graph graph = Mlp().Program(Rand({1, 3}));
  EXPECT_THAT(ErrorOf(SaveProgram(graph, prefix + "/none/p")),
              HasSubstr("cannot write"));
  std::filesystem::create_symlink("/dev/full", prefix + ".safetensors");
  EXPECT_THAT(ErrorOf(SaveProgram(graph, prefix)),
              HasSubstr("No space left on device"));
  EXPECT_THAT(FilesBeside(prefix), ElementsAre("my_mlp.safetensors"));
  EXPECT_FALSE(LoadProgram(prefix).ok());
}

TEST(SavedTest, EveryKindOfNode) {
  const std::string prefix = NewPrefix();
  Graph graph = EveryKindOfNode();
  ASSERT_EQ(ErrorOf(SaveProgram(graph, prefix)), "none");
  const absl::StatusOr<Graph> loaded = LoadProgram(prefix);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const Tensor x = Rand({2, 3});
  EXPECT_EQ(Bits(ir::Run(*loaded, {x})), Bits(ir::Run(graph, {x})));
  Unfuse(graph);
  Fuse(graph);
  EXPECT_EQ(ToText(*loaded), ToText(graph));
}

}  // namespace
}  // namespace d2l::ir
