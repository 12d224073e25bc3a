// Files that are damaged, old or hostile.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/files/atomic_file.h"
#include "common/graph/ir.h"
#include "common/graph/passes/passes.h"
#include "common/graph/saved/saved.h"
#include "common/graph/saved/saved_testing.h"
#include "common/ops/ops.h"
#include "common/safetensors/safetensors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace d2l::ir {
namespace {

using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

class BadSavedTest : public testing::Test {
 protected:
  BadSavedTest() : prefix_(NewPrefix()) {
    EXPECT_EQ(ErrorOf(SaveProgram(Mlp().Program(Rand({1, 3})), prefix_)),
              "none");
    bytes_ = ReadFile(path());
  }
  std::string path() const { return prefix_ + ".safetensors"; }
  void Write(const std::string& bytes) const {
    std::ofstream(path(), std::ios::binary) << bytes;
  }
  // The error for the file, without its folder.
  std::string Error() const {
    return absl::StrReplaceAll(ErrorOf(LoadProgram(prefix_).status()),
                               {{prefix_, "P"}});
  }

  const std::string prefix_;
  std::string bytes_;
};

TEST_F(BadSavedTest, NoBeginningOfAFileIsLoaded) {
  ASSERT_EQ(Error(), "none");
  for (std::size_t size = 0; size < bytes_.size(); size += 3) {
    Write(bytes_.substr(0, size));
    ASSERT_NE(Error(), "none") << size;
  }
}

// The file is refused, or gives a program that can be saved again.
TEST_F(BadSavedTest, ChangedBytesDoNoHarm) {
  int loaded = 0;
  for (std::size_t i = 0; i < bytes_.size(); ++i) {
    std::string changed = bytes_;
    changed[i] ^= 1;
    Write(changed);
    absl::StatusOr<Graph> graph = LoadProgram(prefix_);
    if (!graph.ok()) continue;
    ++loaded;
    Unfuse(*graph);
    safetensors::NamedTensors tensors;
    const std::string json = ProgramToJson(*graph, tensors);
    ASSERT_EQ(ErrorOf(ProgramFromJson(json, tensors).status()), "none") << i;
  }
  EXPECT_GT(loaded, 0);
}

TEST_F(BadSavedTest, OtherFiles) {
  ASSERT_TRUE(safetensors::SaveFile({{"w", Ones({2})}}, path()).ok());
  EXPECT_EQ(Error(),
            "P.safetensors holds tensors, and no program. Save one: "
            "net.Save(\"my_mlp\").");
  std::filesystem::remove(path());
  EXPECT_EQ(LoadProgram(prefix_).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Error(),
            "cannot read P.safetensors: No such file or directory. Name what "
            "the program was saved as, without .safetensors.");
  std::filesystem::create_directory(path());
  EXPECT_THAT(Error(), HasSubstr("it is not a regular file"));
}

TEST_F(BadSavedTest, WeightsOfOtherTypesOrNames) {
  const std::string json =
      safetensors::LoadFile(path())->metadata.at("d2l.program");
  const auto with = [&](const safetensors::NamedTensors& tensors) {
    EXPECT_TRUE(
        safetensors::SaveFile(tensors, path(), {{"d2l.program", json}}).ok());
    return Error();
  };
  const Tensor w0 = Rand({5, 3}), b0 = Rand({5}), w1 = Rand({2, 5});
  EXPECT_EQ(with({{"0.weight", w0}, {"0.bias", b0}, {"1.weight", w1}}), "none");
  EXPECT_THAT(with({{"0.weight", w0}, {"1.weight", w1}}),
              HasSubstr("the file has no tensor \"0.bias\""));
  EXPECT_THAT(with({{"0.weight", T(w0)}, {"0.bias", b0}, {"1.weight", w1}}),
              HasSubstr("the tensor \"0.weight\" is float32[3, 5]; the program "
                        "wants float32[5, 3]"));
}

// ---- The JSON, of def f(%x: float32[2, 3]) { %y = relu(%x); return %x }.

Json Type(const std::vector<std::int64_t>& shape = {2, 3}) {
  return {{"dtype", "float32"}, {"shape", shape}};
}
Json Op(const std::string& op, const Json& attributes = Json::object()) {
  return {{"op", op},
          {"attributes", attributes},
          {"inputs", {0}},
          {"outputs", {Type()}}};
}
Json ProgramOf(const Json& nodes) {
  return {{"version", 3},
          {"name", "f"},
          {"arguments", {Type()}},
          {"nodes", nodes},
          {"returns", {0}}};
}

std::string ErrorOfJson(const std::string& json) {
  const safetensors::NamedTensors tensors = {{"w", Ones({2, 3})}};
  return ErrorOf(ProgramFromJson(json, tensors).status());
}
// The error after `change` has changed the first node.
std::string ErrorOfNode(const std::function<void(Json&)>& change,
                        const std::string& op = "relu") {
  Json node = Op(op);
  change(node);
  return ErrorOfJson(ProgramOf(Json::array({node})).dump());
}

TEST(BadProgramTest, SaysWhatIsWrongAndWhere) {
  const struct {
    std::function<void(Json&)> change;
    const char* error;
  } kCases[] = {
      {[](Json&) {}, "none"},
      {[](Json& n) { n["op"] = "rleu"; },
       "f, node 0: there is no operation \"rleu\""},
      {[](Json& n) { n["inputs"] = Json::array({1}); },
       "f, node 0: the value 1 is used before it is defined"},
      {[](Json& n) { n["inputs"] = Json::array({-1}); },
       "the value -1 is used before"},
      {[](Json& n) { n["inputs"] = Json::array({0.5}); },
       "number stands where an integer"},
      {[](Json& n) {
         n["inputs"] = {0, 0};
       },
       "1 inputs wanted; got 2"},
      {[](Json& n) { n.erase("inputs"); }, "key 'inputs' not found"},
      {[](Json& n) { n = 7; }, "f, node 0: "},
      {[](Json& n) {
         n["outputs"] = Json::array({Type({3, 2})});
       },
       "the value 1 is float32[2, 3], not float32[3, 2]"},
      {[](Json& n) { n["outputs"] = Json::array(); },
       "it has 1 results; the file tells of 0"},
      {[](Json& n) { n["outputs"][0]["name"] = "9"; }, "text cannot hold"},
      {[](Json& n) {
         n = Op("add", {{"second", "two"}});
       },
       "is not a number"},
      {[](Json& n) {
         n = Op("add", {{"third", "2"}});
       },
       "\"third\""},
      {[](Json& n) {
         n = Op("add", {{"second", 2}});
       },
       "type must be string"},
      {[](Json& n) {
         n = Op(
             "copy",
             {{"shape", "(2, 3)"}, {"dtype", "float32"}, {"device", "cpu:0"}});
       },
       "writes in place and has no target"},
      {[](Json& n) {
         n = Op("sum", {{"dim", "all"}, {"keepdim", "false"}});
         n["target"] = 0;
         n["outputs"] = Json::array();
       },
       "does not fit in place into float32[2, 3]"},
      {[](Json& n) {
         n = Op("ones", {{"shape", "(9223372036854775807, 2)"},
                         {"dtype", "float32"},
                         {"device", "cpu:0"},
                         {"fill_value", "1"}});
         n["inputs"] = Json::array();
       },
       "more elements than 64 bits can count"},
      {[](Json& n) { n["outputs"] = Json::array({Type({-2})}); },
       "a size is negative"},
      {[](Json& n) {
         n["outputs"] = Json::array({Type({1, 1, 1, 1, 1, 1, 1, 1, 1})});
       },
       "a tensor has at most 8"},
      {[](Json& n) { n["outputs"][0]["dtype"] = "half"; },
       "no dtype is called half"},
      {[](Json& n) {
         n["weight"] = "w";
         n["outputs"][0]["strides"] = {4611686018427387904, 1};
       },
       "strides that reach too far"},
      {[](Json& n) {
         n["weight"] = "w";
         n["outputs"][0]["strides"] = {-1, 1};
       },
       "strides that reach too far"},
      {[](Json& n) { n["weight"] = "v"; }, "the file has no tensor \"v\""},
      {[](Json& n) {
         n["at"] = {"a.cc", 99999999999999};
       },
       "there is no line"},
  };
  for (const auto& [change, error] : kCases) {
    EXPECT_THAT(ErrorOfNode(change), HasSubstr(error));
  }
  Json two = ProgramOf({Op("relu"), Op("relu")});
  for (Json& node : two["nodes"]) node["outputs"][0]["name"] = "y";
  EXPECT_THAT(ErrorOfJson(two.dump()), HasSubstr("has the name of another, y"));
  for (const char* const json : {"", "7", "[]", "null", "{", "GIF89a"}) {
    EXPECT_THAT(ErrorOfJson(json), HasSubstr("the program: ")) << json;
  }
}

// The messages are the reader's, not those of nlohmann's exceptions.
TEST(BadProgramTest, ErrorsNameNoException) {
  for (const char* const json : {"{", R"({"version": 3})", R"([])"}) {
    EXPECT_THAT(ErrorOfJson(json), Not(HasSubstr("exception"))) << json;
  }
}

TEST(BadProgramTest, WeightsThatNeedTooMuchMemory) {
  const absl::Status status = ProgramFromJson(R"({"version": 3,
        "name": "f", "arguments": [], "nodes": [{
          "weight": "w", "inputs": [], "outputs": [{
            "dtype": "float32", "shape": [2], "strides": [35184372088832]}]}],
        "returns": [0]})",
                                              {{"w", Ones({2})}})
                                  .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(status.message(), HasSubstr("f, node 0: "));
}

TEST(BadProgramTest, AnotherVersionIsUnimplemented) {
  for (const char* const version : {"2", "4", "4294967299", "\"3\""}) {
    const absl::Status status =
        ProgramFromJson(absl::StrCat("{\"version\":", version, "}"), {})
            .status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    EXPECT_EQ(status.message(),
              absl::StrCat("the program is of version ", version,
                           "; this library reads 3"));
  }
}

// Sums of bytes do not overflow.
TEST(BadProgramTest, TheBytesOfAllValuesAreBounded) {
  Json ones = Op("ones", {{"shape", "(4000000000000)"},
                          {"dtype", "uint8"},
                          {"device", "cpu:0"},
                          {"fill_value", "1"}});
  ones["inputs"] = Json::array();
  ones["outputs"] = Json::array({Type({4000000000000})});
  ones["outputs"][0]["dtype"] = "uint8";
  EXPECT_EQ(ErrorOfJson(ProgramOf({ones, ones, ones, ones}).dump()), "none");
  EXPECT_THAT(ErrorOfJson(ProgramOf({ones, ones, ones, ones, ones}).dump()),
              HasSubstr("values of more than 17592186044416 bytes"));
  // A view needs no memory.
  Json view = Op("expand", {{"shape", "(100000000000000, 2, 3)"}});
  view["outputs"] = Json::array({Type({100000000000000, 2, 3})});
  EXPECT_EQ(ErrorOfJson(ProgramOf({view, view}).dump()), "none");
}

TEST_F(BadSavedTest, WhatIsTooLargeIsRefused) {
  Json zeros = Op("zeros", {{"shape", "(1000000000000)"},
                            {"dtype", "float32"},
                            {"device", "cpu:0"},
                            {"fill_value", "0"}});
  zeros["inputs"] = Json::array();
  zeros["outputs"] = Json::array({Type({1000000000000})});
  ASSERT_TRUE(
      safetensors::SaveFile(
          {}, path(), {{"d2l.program", ProgramOf(Json::array({zeros})).dump()}})
          .ok());
  EXPECT_THAT(Error(), HasSubstr("P.safetensors: its values need 4000000000000 "
                                 "bytes at once; "));
  const Json many = ProgramOf(std::vector<Json>(kMaxNodes + 1, Op("relu")));
  EXPECT_EQ(ErrorOfJson(many.dump()),
            "f, node 100000: more than 100000 operations");
}

}  // namespace
}  // namespace d2l::ir
