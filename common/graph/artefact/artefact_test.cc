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

// Other layouts than row by row, and repeated elements, are the loaded ones'
// too: the program's types say so.
TEST(ArtefactTest, WeightsKeepTheirStrides) {
  const std::string prefix = NewPrefix();
  const Tensor a = T(Rand({3, 4})), b = Expand(Rand({4, 1}), {4, 3});
  const Tensor c = Slice(Rand({4, 7}), 1, 1, 4), d = Empty({3, 0});
  const Tensor x = Rand({4, 3});
  const Graph graph = Trace(
      [&](const Values& in) -> Values {
        return {in[0] * a - b / c, T(d) * 2};
      },
      {x});
  ASSERT_EQ(ErrorOf(SaveProgram(graph, prefix)), "none");
  const absl::StatusOr<Graph> loaded = LoadProgram(prefix);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(ToText(*loaded), ToText(graph));
  EXPECT_THAT(ToText(graph), HasSubstr("strides (1, 4)"));
  EXPECT_THAT(ToText(graph), HasSubstr("strides (1, 0)"));
  EXPECT_EQ(Bits(Captured(*loaded).Run({x})), Bits(ir::Run(graph, {x})));
}

TEST(ArtefactTest, TheProgramMovesToTheDevice) {
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

// What a program writes to its weights is not seen in the files.
TEST(ArtefactTest, WrittenWeightsAreTheLoadedOnes) {
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

TEST(ArtefactTest, SharedMemoryIsSavedTwiceUnlessItIsWritten) {
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
  const std::string before = ReadFile(prefix + ".program");
  EXPECT_THAT(ErrorOf(SaveProgram(writes, prefix)),
              HasSubstr("main writes to weights that share memory"));
  EXPECT_EQ(ReadFile(prefix + ".program"), before);
}

TEST(ArtefactTest, SavesTheWeightsThatAreUsed) {
  const std::string prefix = NewPrefix();
  const Mlp mlp;
  Graph graph = mlp.Program(Rand({1, 3}));
  graph.AddWeight("unused", TypeOf(mlp.w0));
  ASSERT_EQ(ErrorOf(SaveProgram(graph, prefix)), "none");
  const auto file = safetensors::LoadFile(prefix + ".safetensors");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->tensors.size(), 3u);
  graph.weights[0].tensor = Tensor();
  EXPECT_THROW(SaveProgram(graph, prefix).IgnoreError(), std::invalid_argument);
}

// Every file that a save leaves behind is of one moment.
TEST(ArtefactTest, WhatCannotBeWrittenLeavesTheOldFiles) {
  const std::string prefix = NewPrefix();
  const Tensor x = Rand({1, 3});
  const Graph first = Mlp().Program(x), second = Mlp().Program(x);
  EXPECT_THAT(ErrorOf(SaveProgram(first, prefix + "/none/p")),
              HasSubstr("cannot write"));
  for (const char* const full : {".program", ".safetensors"}) {
    std::filesystem::remove(prefix + ".program");
    std::filesystem::remove(prefix + ".safetensors");
    ASSERT_EQ(ErrorOf(SaveProgram(first, prefix)), "none");
    const std::string bytes = ReadFile(prefix + ".safetensors");
    std::filesystem::remove(prefix + full);
    std::filesystem::create_symlink("/dev/full", prefix + full);
    EXPECT_THAT(ErrorOf(SaveProgram(second, prefix)),
                HasSubstr("No space left on device"));
    EXPECT_THAT(FilesBeside(prefix),
                UnorderedElementsAre("my_mlp.program", "my_mlp.safetensors"));
    if (full == std::string(".program")) {
      EXPECT_EQ(ReadFile(prefix + ".safetensors"), bytes);
    }
    EXPECT_FALSE(LoadProgram(prefix).ok());
  }
}

// Writes both files anew from what they hold.
class BadArtefactTest : public testing::Test {
 protected:
  BadArtefactTest() : prefix_(NewPrefix()) {
    EXPECT_EQ(ErrorOf(SaveProgram(Mlp().Program(Rand({1, 3})), prefix_)),
              "none");
    text_ = ReadFile(prefix_ + ".program");
    weights_ = ReadFile(prefix_ + ".safetensors");
  }
  // What is said of these files, without their folder.
  std::string ErrorOfFiles(const std::string& text,
                           const std::string& weights) {
    Write(".program", text, text_before_);
    Write(".safetensors", weights, weights_before_);
    return absl::StrReplaceAll(ErrorOf(LoadProgram(prefix_).status()),
                               {{prefix_, "P"}});
  }
  // Of a program of these lines, and no weights.
  std::string ErrorOfLines(const std::string& lines) {
    EXPECT_EQ(ErrorOf(SaveProgram(Trace([](const Values& x) { return x; }, {}),
                                  prefix_)),
              "none");
    const std::string text = ReadFile(prefix_ + ".program");
    text_before_.clear();
    weights_before_.clear();
    return ErrorOfFiles(absl::StrCat(text.substr(0, text.find("def ")), lines),
                        ReadFile(prefix_ + ".safetensors"));
  }

  // Unless it is so already: writing takes milliseconds.
  void Write(const char* suffix, const std::string& bytes,
             std::string& before) const {
    if (bytes == before) return;
    before = bytes;
    std::ofstream(prefix_ + suffix, std::ios::binary) << bytes;
  }

  const std::string prefix_;
  std::string text_;
  std::string weights_;
  std::string text_before_;
  std::string weights_before_;
};

TEST_F(BadArtefactTest, NoBeginningOfAFileIsLoaded) {
  ASSERT_EQ(ErrorOfFiles(text_, weights_), "none");
  for (std::size_t size = 0; size < text_.size(); ++size) {
    ASSERT_NE(ErrorOfFiles(text_.substr(0, size), weights_), "none") << size;
  }
  for (std::size_t size = 0; size < weights_.size(); ++size) {
    ASSERT_NE(ErrorOfFiles(text_, weights_.substr(0, size)), "none") << size;
  }
}

TEST_F(BadArtefactTest, ChangedBytes) {
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    std::string changed = weights_;
    changed[i] ^= 4;
    ASSERT_NE(ErrorOfFiles(text_, changed), "none") << i;
  }
  // A changed name or line number is another program, which is one.
  int loaded = 0;
  for (std::size_t i = 0; i < text_.size(); ++i) {
    std::string changed = text_;
    changed[i] ^= 1;
    if (ErrorOfFiles(changed, weights_) == "none") ++loaded;
  }
  EXPECT_LT(loaded, 300);
}

TEST_F(BadArtefactTest, WeightsOfAnotherProgram) {
  const std::string other = NewPrefix();
  ASSERT_EQ(ErrorOf(SaveProgram(Mlp().Program(Rand({1, 3})), other)), "none");
  Sha256 mine, others;
  mine.Update(weights_);
  const std::string other_weights = ReadFile(other + ".safetensors");
  others.Update(other_weights);
  EXPECT_EQ(ErrorOfFiles(text_, other_weights),
            absl::StrCat("P.safetensors are not the weights that P.program was "
                         "saved with: their SHA-256 is ",
                         others.Hex(), ", not ", mine.Hex(),
                         ". Copy both files again, or save the program "
                         "again."));
  const std::size_t line = text_.find("weights sha256");
  const std::string without =
      text_.substr(0, line) + text_.substr(text_.find('\n', line) + 1);
  EXPECT_THAT(ErrorOfFiles(without, weights_),
              HasSubstr("P.program names no SHA-256 of its weights"));
}

TEST_F(BadArtefactTest, WeightsOfOtherTypesOrNames) {
  const auto with = [&](const safetensors::NamedTensors& tensors) {
    EXPECT_TRUE(safetensors::SaveFile(tensors, prefix_ + ".safetensors").ok());
    weights_before_.clear();
    const std::string bytes = ReadFile(prefix_ + ".safetensors");
    Sha256 old_hash, hash;
    old_hash.Update(weights_);
    hash.Update(bytes);
    return ErrorOfFiles(
        absl::StrReplaceAll(text_, {{old_hash.Hex(), hash.Hex()}}), bytes);
  };
  const Tensor w0 = Rand({5, 3}), b0 = Rand({5}), w1 = Rand({2, 5});
  EXPECT_EQ(with({{"0.weight", w0}, {"0.bias", b0}, {"1.weight", w1}}), "none");
  EXPECT_EQ(with({{"0.weight", w0}, {"1.weight", w1}}),
            "P.safetensors: it has no weight \"0.bias\"");
  EXPECT_EQ(with({{"0.weight", T(w0)}, {"0.bias", b0}, {"1.weight", w1}}),
            "P.safetensors: the weight \"0.weight\" is float32[3, 5]; the "
            "program wants float32[5, 3]");
}

TEST_F(BadArtefactTest, MissingFiles) {
  std::filesystem::remove(prefix_ + ".safetensors");
  EXPECT_EQ(LoadProgram(prefix_).status().code(), absl::StatusCode::kNotFound);
  std::filesystem::remove(prefix_ + ".program");
  EXPECT_EQ(ErrorOf(LoadProgram(prefix_).status()),
            absl::StrCat("cannot read ", prefix_,
                         ".program: No such file or directory. Name what the "
                         "program was saved as, without .program."));
  std::filesystem::create_directory(prefix_ + ".program");
  EXPECT_THAT(ErrorOf(LoadProgram(prefix_).status()), HasSubstr("cannot read"));
}

TEST_F(BadArtefactTest, HostilePrograms) {
  EXPECT_EQ(
      ErrorOfFiles(absl::StrReplaceAll(text_, {{"program 1", "program 2"}}),
                   weights_),
      "P.program: the program is of version 2; this library reads 1");
  EXPECT_EQ(
      ErrorOfFiles(absl::StrReplaceAll(text_, {{"relu(", "rleu("}}), weights_),
      "P.program: line 11 of the program: there is no operation \"rleu\"");
  const std::string header = "def f(%x: float32[2]) {\n";
  const std::string end = "  return %x\n}\nrun f\n";
  EXPECT_EQ(ErrorOfLines(header + end), "none");
  EXPECT_THAT(ErrorOfLines(header +
                           "  %a = relu(%b) : float32[2]\n"
                           "  %b = relu(%a) : float32[2]\n" +
                           end),
              HasSubstr("P.program: line 4 of the program: %b is used before"));
  EXPECT_THAT(ErrorOfLines(header + "  %a = call f(%x) : float32[2]\n" + end),
              HasSubstr("P.program: line 4 of the program: f is called before "
                        "it is defined; a program has no recursion"));
  EXPECT_THAT(ErrorOfLines(header +
                           "  %a = zeros() {shape=\"(1000000000000)\", "
                           "dtype=float32, device=cpu:0, fill_value=0}\n" +
                           end),
              HasSubstr("P.program: its values need 4000000000000 bytes at "
                        "once; "));
  // Each function calls the one before it twice.
  std::string bomb =
      "def f0(%x: float32[2]) {\n  %0 = relu(%x)\n  return %0\n}\n";
  for (int i = 1; i <= 40; ++i) {
    absl::StrAppend(&bomb, "def f", i, "(%x: float32[2]) {\n  %0 = call f",
                    i - 1, "(%x)\n  %1 = call f", i - 1,
                    "(%0)\n  return %1\n}\n");
  }
  EXPECT_EQ(ErrorOfLines(bomb + "run f40\n"),
            "P.program: [inline] f40 has more than 100000 operations");
  std::string many = header;
  for (int i = 0; i <= kMaxNodes; ++i) {
    absl::StrAppend(&many, "  %", i, " = relu(%x)\n");
  }
  EXPECT_EQ(ErrorOfLines(many + end),
            "P.program: line 100004 of the program: more than 100000 "
            "operations");
}

// The names of that many weights need more than a megabyte.
TEST_F(BadArtefactTest, ManyWeights) {
  const auto program = [](int count) {
    Graph graph;
    Function f("f");
    const Tensor w = Ones({1});
    for (int i = 0; i < count; ++i) {
      const int index = static_cast<int>(graph.weights.size());
      graph.weights.push_back({absl::StrCat("layers.", i), TypeOf(w), w});
      f.returns = {f.AddWeight(graph, index)};
    }
    graph.functions.push_back(f);
    return graph;
  };
  ASSERT_EQ(ErrorOf(SaveProgram(program(10000), prefix_)), "none");
  const absl::StatusOr<Graph> loaded = LoadProgram(prefix_);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->weights.size(), 10000u);
  EXPECT_THAT(ErrorOf(SaveProgram(program(30000), prefix_)),
              HasSubstr("1000000 is the most"));
  EXPECT_TRUE(LoadProgram(prefix_).ok());  // the one before
}

}  // namespace
}  // namespace d2l::ir
