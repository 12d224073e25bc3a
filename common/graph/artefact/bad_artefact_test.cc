// Files that are damaged, exchanged or hostile.

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/files/atomic_file.h"
#include "common/base/files/sha256.h"
#include "common/graph/artefact/artefact.h"
#include "common/graph/artefact/artefact_testing.h"
#include "common/graph/ir_text.h"
#include "common/graph/trace.h"
#include "common/ops/ops.h"
#include "common/safetensors/safetensors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l::ir {
namespace {

using testing::HasSubstr;
using Values = std::vector<Tensor>;

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
