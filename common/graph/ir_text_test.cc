#include "common/graph/ir_text.h"

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/graph/interpreter.h"
#include "common/graph/ir.h"
#include "common/graph/ir_testing.h"
#include "common/graph/passes/passes.h"
#include "common/graph/trace.h"
#include "common/ops/ops.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l::ir {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// One of each form.
constexpr std::string_view kText = R"(d2l.program 1
def twice(%x: float32[2, 3]) {
  %0 = add(%x, %x) : float32[2, 3] @"a \"b\".cc":7 by "main.cc":1
  return %0
}
def main(%x: float32[2, 3], %0: int64[2, 3] strides (1, 2), %1: uint8[] on cpu:1) {
  %w = weight "0.weight" : float32[2, 2] strides (1, 2)
  %c = constant [1, -0, inf, 0x7fc00000, 1e+30, 0.1] : float32[2, 3]
  %2 = call twice(%x) : float32[2, 3] @"main.cc":2
  %3 = transpose(%c) {dim0=0, dim1=1} : float32[3, 2]
  write %c = add(%c) {second=1.0} @"main.cc":3
  %4 = fused(%x, %2) {
    (%a, %b)
    %0 = mul(%a, %b) : float32[2, 3]
    %1 = sub(%0) {first=-0.0} : float32[2, 3]
    return %1
  }
  %5 = sum(%4) {dim="0, 1", keepdim=false} : float32[]
  return %5, %3
}
run main
)";

TEST(IrTextTest, ParsesAndPrintsEveryForm) {
  const absl::StatusOr<Graph> graph = ParseText(kText);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(ToText(*graph), kText);
  EXPECT_EQ(graph->functions.size(), 2u);
  EXPECT_EQ(graph->weights.size(), 1u);
  EXPECT_EQ(graph->main().nodes[0].kind, NodeKind::kWeight);
  const SourceLocation at = graph->functions[0].nodes[0].op.requested_at;
  EXPECT_STREQ(at.file(), "a \"b\".cc");
  EXPECT_EQ(at.line(), 7);
  EXPECT_EQ(Bits(graph->main().nodes[1].constant),
            "float32[2, 3] 3f800000 80000000 7f800000 7fc00000 7149f2ca "
            "3dcccccd");
}

TEST(IrTextTest, ATracePrintsAsItRuns) {
  const Tensor w = Full({3}, 2);
  const Graph graph = Trace(
      [&](const std::vector<Tensor>& x) -> std::vector<Tensor> {
        return {Relu(x[0] * w)};
      },
      {Ones({2, 3})}, {"scale", {{"scale.weight", w}}});
  EXPECT_EQ(ToText(graph, /*with_lines=*/false), R"(d2l.program 1
def scale(%0: float32[2, 3]) {
  %1 = weight "scale.weight" : float32[3]
  %2 = mul(%0, %1) : float32[2, 3]
  %3 = relu(%2) : float32[2, 3]
  return %3
}
run scale
)");
  EXPECT_THAT(ToText(graph), HasSubstr("ir_text_test.cc\":"));
  absl::StatusOr<Graph> parsed = ParseText(ToText(graph));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  parsed->Bind("scale.weight", w);
  EXPECT_THAT(Bits(ir::Run(*parsed, {Full({1, 3}, 1.5) + Ones({2, 3})})),
              ElementsAre(Bits(Full({2, 3}, 5))));
}

TEST(IrTextTest, NoBeginningOfAProgramIsOne) {
  ASSERT_TRUE(ParseText(kText).ok());
  for (std::size_t size = 0; size < kText.size(); ++size) {
    const absl::StatusOr<Graph> graph = ParseText(kText.substr(0, size));
    ASSERT_FALSE(graph.ok()) << kText.substr(0, size);
    EXPECT_NE(graph.status().message(), "");
  }
}

// A changed byte is refused, or makes a program that prints and parses back.
TEST(IrTextTest, ChangedBytesDoNoHarm) {
  for (std::size_t i = 0; i < kText.size(); ++i) {
    for (const char byte : {'\0', '(', '9', '%', '"', '\n', '-', '\xff'}) {
      std::string text(kText);
      text[i] = byte;
      const absl::StatusOr<Graph> graph = ParseText(text);
      if (!graph.ok()) continue;
      const std::string printed = ToText(*graph);
      const absl::StatusOr<Graph> again = ParseText(printed);
      ASSERT_TRUE(again.ok()) << again.status() << "\n" << printed;
      EXPECT_EQ(ToText(*again), printed);
    }
  }
}

// A program of one line in main.
std::string WithLine(const std::string& line) {
  return absl::StrCat("d2l.program 1\ndef f(%x: float32[2, 3]) {\n  ", line,
                      "\n  return %x\n}\nrun f\n");
}

std::string ErrorOf(std::string_view text) {
  const absl::StatusOr<Graph> graph = ParseText(text);
  return graph.ok() ? "none" : std::string(graph.status().message());
}

TEST(IrTextTest, SaysWhatIsWrongAndWhere) {
  const struct {
    const char* line;
    const char* error;
  } kCases[] = {
      {"%y = relu(%x) : float32[2, 3]", "none"},
      {"%y = rleu(%x) : float32[2, 3]",
       "line 3 of the program: there is no operation \"rleu\""},
      {"%y = relu(%z) : float32[2, 3]", "%z is used before it is defined"},
      {"%x = relu(%x) : float32[2, 3]", "%x is defined twice"},
      {"%y = relu(%x) : float32[3, 2]",
       "%y is float32[2, 3], not float32[3, 2]"},
      {"%y = relu(%x, %x) : float32[2, 3]", "1 inputs wanted; got 2"},
      {"%y = add(%x) {second=two} : float32[2, 3]", "is not a number"},
      {"%y = add(%x) {third=2} : float32[2, 3]", "\"third\""},
      {"%y = call g(%x) : float32[2, 3]",
       "g is called before it is defined; a program has no recursion"},
      {"%y = call f(%x) : float32[2, 3]", "no recursion"},
      {"%y, %z = relu(%x) : float32[2, 3]", "it has 1 results; 2 are named"},
      {"relu(%x)", "it has 1 results; 0 are named"},
      {"%y = copy(%x) {shape=\"(2, 3)\", dtype=float32, device=cpu:0}",
       "writes in place and has no target"},
      {"write %x = sum(%x) {dim=all, keepdim=false}",
       "does not fit in place into float32[2, 3]"},
      {"%y = expand(%x) {shape=\"(9, 2, 3)\"} : float32[9, 2, 3]\n"
       "  write %y = relu(%y)",
       "repeats its elements in dimension 0"},
      {"%y = constant [1, 2] : float32[3]", "2 numbers for float32[3]"},
      {"%y = constant [256] : uint8[1]", "not a number that fits"},
      {"%y = ones() {shape=\"(9223372036854775807, 2)\", dtype=float32, "
       "device=cpu:0, fill_value=1} : float32[9223372036854775807, 2]",
       "more elements than 64 bits can count"},
      {"%y = ones() {shape=\"(-2)\", dtype=float32, device=cpu:0, "
       "fill_value=1} : float32[-2]",
       "a size is negative"},
      {"%w = weight \"w\" : float32[2, 3] strides (4611686018427387904, 1)",
       "strides that reach too far"},
      {"%w = weight \"w\" : float32[2, 3] strides (-1, 1)",
       "strides that reach too far"},
      {"%w = weight \"w\" : float32[1, 1, 1, 1, 1, 1, 1, 1, 1]",
       "a tensor has at most 8"},
      {"%w = weight \"w\" : float32[2]\n  %v = weight \"w\" : float32[3]",
       "float32[2] in one place and float32[3] in another"},
      {"%w = weight \"\\x00\" : float32[2]", "unknown escape"},
      {"%w = weight \"w : float32[2]", "a text without its \""},
      {"%y = fused(%x) {\n    (%a)\n    %b = sum(%a) {dim=all, "
       "keepdim=false} : float32[]\n    return %b\n  }",
       "element-wise operations"},
      {"%y = fused(%x) {\n    (%a)\n    return %a\n  }",
       "returns each of its results once, and no argument"},
      {"%y = fused(%x) {\n    (%a, %b)\n    return %a\n  }",
       "the region takes more values"},
      {"fused(%x) {\n    (%a)\n    return\n  }",
       "a fused region holds no operation"},
      {"%y = relu(%x) : float32[2, 3] @\"a.cc\":99999999999999", "fits"},
  };
  for (const auto& [line, error] : kCases) {
    EXPECT_THAT(ErrorOf(WithLine(line)), HasSubstr(error)) << line;
  }
  EXPECT_THAT(ErrorOf(""), HasSubstr("the text ends where \"d2l.program \""));
  EXPECT_THAT(ErrorOf("GIF89a"), HasSubstr("\"d2l.program \" expected"));
  const std::string good = WithLine("%y = relu(%x) : float32[2, 3]");
  EXPECT_THAT(ErrorOf(good + "x"), HasSubstr("text after the end"));
  EXPECT_THAT(ErrorOf(absl::StrReplaceAll(good, {{"run f", "run g"}})),
              HasSubstr("names the last function"));
  EXPECT_THAT(ErrorOf(absl::StrCat("d2l.program 1\n", good.substr(14, 60), "\n",
                                   good.substr(14))),
              testing::Not("none"));
}

TEST(IrTextTest, TheHashOfTheWeightsIsPartOfTheText) {
  const std::string text = absl::StrReplaceAll(
      std::string(kText), {{"1\ndef twice",
                            "1\nweights sha256 \"ba78\"\ndef "
                            "twice"}});
  const absl::StatusOr<Graph> graph = ParseText(text);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->weights_sha256, "ba78");
  EXPECT_EQ(ToText(*graph), text);
}

TEST(IrTextTest, OneDeviceInsteadOfThoseOfTheText) {
  const std::string text = R"TEXT(d2l.program 1
def f(%x: float32[2] on cuda:3) {
  %w = weight "w" : float32[2]
  %0 = to(%x) {shape="(2)", dtype=int64, device=cuda:3} : int64[2] on cuda:3
  return %0, %w
}
run f
)TEXT";
  const absl::StatusOr<Graph> graph =
      ParseText(text, Device(DeviceType::kCpu, 1));
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(ToText(*graph),
            absl::StrReplaceAll(
                text, {{"cuda:3", "cpu:1"},
                       {"\"w\" : float32[2]", "\"w\" : float32[2] on cpu:1"}}));
}

// Sums of bytes do not overflow, in any function that is called.
TEST(IrTextTest, TheBytesOfAllValuesAreBounded) {
  const std::string line =
      " = ones() {shape=\"(4000000000000)\", dtype=uint8, device=cpu:0, "
      "fill_value=1} : uint8[4000000000000]\n";
  std::string lines;
  for (const char* const name : {"%a", "  %b", "  %c", "  %d"}) {
    absl::StrAppend(&lines, name, line);
  }
  EXPECT_EQ(ErrorOf(WithLine(lines + "  %y = relu(%x)")), "none");
  EXPECT_THAT(ErrorOf(WithLine(lines + "  %e" + line + "  %y = relu(%x)")),
              HasSubstr("values of more than 17592186044416 bytes"));
  // A view needs none.
  const std::string view =
      "expand(%x) {shape=\"(100000000000000, 2, 3)\"} : "
      "float32[100000000000000, 2, 3]";
  EXPECT_EQ(ErrorOf(WithLine(absl::StrCat("%y = ", view, "\n  %z = ", view))),
            "none");
}

TEST(IrTextTest, ANewerVersionIsUnimplemented) {
  for (const std::string version : {"2", "4294967297"}) {  // 2^32 + 1
    const std::string text = absl::StrReplaceAll(
        std::string(kText), {{"d2l.program 1", "d2l.program " + version}});
    const absl::Status status = ParseText(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    EXPECT_EQ(status.message(), "the program is of version " + version +
                                    "; this library reads 1");
  }
}

// A bomb: each function calls the one before it twice.
TEST(IrTextTest, CallsOfCallsAreBounded) {
  std::string text =
      "d2l.program 1\ndef f0(%x: float32[]) {\n  %0 = relu(%x) : float32[]\n  "
      "return %0\n}\n";
  const auto add = [&](int i) {
    absl::StrAppend(&text, "def f", i, "(%x: float32[]) {\n  %0 = call f",
                    i - 1, "(%x) : float32[]\n  %1 = call f", i - 1,
                    "(%0) : float32[]\n  return %1\n}\n");
  };
  for (int i = 1; i <= 40; ++i) add(i);
  absl::StatusOr<Graph> graph = ParseText(text + "run f40\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THROW(Inline(*graph), std::invalid_argument);
  for (int i = 41; i <= 120; ++i) add(i);
  EXPECT_THAT(ErrorOf(text + "run f120\n"),
              HasSubstr("calls are nested more than 100 deep"));
}

TEST(IrTextTest, RefusesToPrintWhatHasNoText) {
  Graph graph;
  graph.functions.emplace_back("f");
  Graph traced = Trace(
      [](const std::vector<Tensor>&) -> std::vector<Tensor> {
        return {FromVector<float>({1, 2}, {2})};
      },
      {});
  // A trace keeps the numbers.
  EXPECT_THAT(ToText(traced), HasSubstr("constant [1, 2] : float32[2]"));
}

}  // namespace
}  // namespace d2l::ir
