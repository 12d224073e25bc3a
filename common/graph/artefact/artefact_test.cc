#include "common/graph/artefact/artefact.h"

#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/atomic_file.h"
#include "common/base/sha256.h"
#include "common/device/testing.h"
#include "common/graph/captured.h"
#include "common/graph/interpreter.h"
#include "common/graph/ir_testing.h"
#include "common/graph/ir_text.h"
#include "common/graph/passes.h"
#include "common/graph/trace.h"
#include "common/ops/ops.h"
#include "common/safetensors/safetensors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l::ir {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;
using Values = std::vector<Tensor>;

// An empty directory for the test, and a prefix in it.
std::string NewPrefix() {
  static int next = 0;
  const std::string directory =
      absl::StrCat(testing::TempDir(), "/artefact-", getpid(), "-", next++);
  std::filesystem::create_directories(directory);
  return directory + "/my_mlp";
}

std::vector<std::string> FilesBeside(const std::string& prefix) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(prefix).parent_path())) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

std::string ErrorOf(const absl::Status& status) {
  return status.ok() ? "none" : std::string(status.message());
}

// An MLP; the weights are those of its moment.
struct Mlp {
  explicit Mlp(Device device = Device())
      : w0(Rand({5, 3}, device)),
        b0(Rand({5}, device)),
        w1(Rand({2, 5}, device)) {}

  Graph Program(const Tensor& x) const {
    return Trace(
        [this](const Values& in) -> Values {
          return {MatMul(Relu(MatMul(in[0], T(w0)) + b0), T(w1))};
        },
        {x}, {"my_mlp", {{"0.weight", w0}, {"0.bias", b0}, {"1.weight", w1}}});
  }
  Tensor w0, b0, w1;
};

TEST(ArtefactTest, ALoadedProgramRunsAsTheSavedOne) {
  for (const Device device : AllDevices()) {
    const std::string prefix = NewPrefix();
    const Mlp mlp(device);
    const Tensor x = Rand({4, 3}, device);
    Graph graph = mlp.Program(x);
    const std::vector<std::string> expected = Bits(ir::Run(graph, {x}));
    for (const bool optimized : {false, true}) {
      if (optimized) Optimize(graph);
      ASSERT_EQ(ErrorOf(SaveProgram(graph, prefix)), "none");
      EXPECT_THAT(FilesBeside(prefix),
                  UnorderedElementsAre("my_mlp.program", "my_mlp.safetensors"));
      absl::StatusOr<Graph> loaded = LoadProgram(prefix, device);
      ASSERT_TRUE(loaded.ok()) << loaded.status();
      EXPECT_EQ(ToText(*loaded), ToText(graph));
      EXPECT_EQ(Bits(ir::Run(*loaded, {x})), expected);
      EXPECT_EQ(Bits(Captured(*loaded).Run({x})), expected);
    }
  }
}

}  // namespace
}  // namespace d2l::ir
