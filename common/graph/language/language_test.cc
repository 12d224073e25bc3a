#include "common/graph/language/language.h"

#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/graph/ir.h"
#include "common/graph/passes/passes.h"
#include "gtest/gtest.h"

namespace d2l::language {
namespace {

constexpr char kFancy[] = R"(
def add(a, b):
    return a + b

def fancy_func(a, b, c, d):
    e = add(a, b)
    f = add(c, d)
    g = add(e, f)
    return g

print(fancy_func(1, 2, 3, 4))
)";

ir::Graph Compiled(const std::string& text) {
  absl::StatusOr<ir::Graph> program = Compile(text, "test.py");
  EXPECT_TRUE(program.ok()) << program.status() << "\n" << text;
  return program.ok() ? *std::move(program) : ir::Graph();
}

std::string Printed(const std::string& text) {
  return language::Run(Compiled(text));
}

std::string Error(const std::string& text) {
  const absl::StatusOr<ir::Graph> program = Compile(text, "test.py");
  EXPECT_FALSE(program.ok()) << text;
  return std::string(program.status().message());
}

std::string After(void (*pass)(ir::Graph&), ir::Graph& program) {
  pass(program);
  EXPECT_NO_THROW(ir::Verify(program));
  return ToPython(program);
}

TEST(LanguageTest, TheCoursesProgramPassByPass) {
  ir::Graph program = Compiled(kFancy);
  EXPECT_EQ(ToPython(program), R"(def add(a, b):
    return a + b

def fancy_func(a, b, c, d):
    return add(add(a, b), add(c, d))

print(fancy_func(1, 2, 3, 4))
)");
  EXPECT_EQ(CountCalls(program), 4);
  EXPECT_EQ(language::Run(program), "10\n");
  EXPECT_EQ(After(ir::Inline, program), "print((1 + 2) + (3 + 4))\n");
  EXPECT_EQ(CountCalls(program), 0);
  EXPECT_EQ(language::Run(program), "10\n");
  EXPECT_EQ(After(ir::Fold, program), "print(10)\n");
  EXPECT_EQ(language::Run(program), "10\n");
}

TEST(LanguageTest, IntegersAreWrittenAsPythonWritesThem) {
  const std::pair<const char*, const char*> cases[] = {
      {"0 * -1", "0"},
      {"-0", "0"},
      {"-9223372036854775808", "-9223372036854775808"},
      {"9223372036854775807", "9223372036854775807"},
      {"2 - 3", "-1"},
  };
  for (const auto& [expression, printed] : cases) {
    const std::string text = absl::StrCat("print(", expression, ")");
    ir::Graph program = Compiled(text);
    EXPECT_EQ(language::Run(program), absl::StrCat(printed, "\n")) << text;
    // ToPython writes such literals, too.
    ir::Optimize(program);
    const std::string again = ToPython(program);
    EXPECT_EQ(Printed(again), absl::StrCat(printed, "\n")) << again;
  }
}

TEST(LanguageTest, WhatPythonReadsThisReads) {
  EXPECT_EQ(Printed(""), "");
  EXPECT_EQ(Printed("\n  # nothing\n\n"), "");
  EXPECT_EQ(Printed("print(2 + 3 * 4 - -1)  # all\nprint(8 - 2 - 2)\n"
                    "print(-(1 - 2) * 3)\r\n"),
            "15\n4\n3\n");
  EXPECT_EQ(Printed("def f(a):\n    return a * a\nprint(f(-5))"), "25\n");
  // Each function has its own names.
  EXPECT_EQ(Printed("x = 1\n"
                    "def f(x):\n"
                    "    x = x + 1\n"
                    "  # not in the way\n"
                    "\n"
                    "    return x\n"
                    "y = f(5)\n"
                    "x = x + y\n"
                    "print(x)\n"),
            "7\n");
}

TEST(LanguageTest, WritesNamesThatAreNotTaken) {
  const ir::Graph program = Compiled(
      "def v1(a):\n"
      "    v2 = a + 1\n"
      "    v2 = v2 * 2\n"
      "    return v2 * v2\n"
      "def main(a):\n"
      "    return v1(a)\n"
      "x = 1\n"
      "x = x + 1\n"
      "print(main(x) + x)\n"
      "print(main(x))\n");
  const std::string again = ToPython(program);
  EXPECT_EQ(Printed(again), "38\n36\n") << again;
}

TEST(LanguageTest, ValuesUsedTwiceAreVariables) {
  ir::Graph program = Compiled(
      "def square(a):\n"
      "    return a * a\n"
      "side = 1 + 2\n"
      "print(square(side))\n"
      "print(-(side - 1) * (2 * 3) * -4)\n");
  EXPECT_EQ(After(ir::Inline, program),
            "side = 1 + 2\n"
            "print(side * side)\n"
            "print((-(side - 1) * (2 * 3)) * -4)\n");
  // The language has no words for Fuse's regions.
  ir::Fuse(program);
  EXPECT_THROW(ToPython(program), std::invalid_argument);
}

TEST(LanguageTest, LongLinesAreSpread) {
  std::string sum = "print(1";
  for (int i = 1; i < 40'000; ++i) sum += "+1";
  const ir::Graph program = Compiled(sum + ")");
  EXPECT_EQ(language::Run(program), "40000\n");
  const std::string again = ToPython(program);
  EXPECT_EQ(Printed(again), "40000\n");
  for (const absl::string_view line : absl::StrSplit(again, '\n')) {
    EXPECT_LT(line.size(), 80u);
  }
}

TEST(LanguageTest, ErrorsShowThePlace) {
  EXPECT_EQ(Error("def add(a, b):\n"
                  "    return a + b\n"
                  "e = ad(1, 2)  # oh\n"),
            "test.py:3:5: no function \"ad\" is defined above\n"
            "    e = ad(1, 2)  # oh\n"
            "        ^");
}

TEST(LanguageTest, ErrorsSayWhatIsWrong) {
  const std::tuple<const char*, const char*, const char*> cases[] = {
      // Names.
      {"y = x", "1:5", "\"x\" is not defined here"},
      {"def f():\n    return x\nx = 1", "2:12", "\"x\" is not defined here"},
      {"x = 1\ndef f():\n    return x", "3:12", "is not defined here"},
      {"def f():\n    return f()", "2:12",
       "no function \"f\" is defined above"},
      {"x = f()", "1:5", "no function \"f\" is defined above"},
      {"def f():\n    return 1\nprint(f)", "3:7", "is not defined here"},
      {"def f():\n    return 1\ndef f():", "3:5", "is defined already"},
      {"def f():\n    return 1\nf = 1", "3:1", "is defined already"},
      {"def f():\n    return 1\ndef g(f):", "3:7", "is defined already"},
      {"f = 1\ndef f():", "2:5", "is defined already"},
      {"x = 1\ny = x()", "2:5", "no function \"x\" is defined above"},
      {"def f(a, a):", "1:10", "\"a\" is defined already"},
      {"return 1", "1:1", "\"return\" cannot stand here"},
      {"x = print(1)", "1:5", "\"print\" cannot stand here"},
      {"def f():\n    def g():", "2:5", "\"def\" cannot stand here"},
      {"def f(a):\n    print(a)", "2:5", "\"print\" cannot stand here"},
      // Values.
      {"def f():\n    return", "2:11",
       "expected a number, a name or \"(\"; got"},
      {"def f(a):\n    a = 1\nprint(f(1))", "3:1", "expected 4 spaces"},
      {"def f(a):\n    return a\n    a = 1", "3:5", "expected 0 spaces"},
      {"def f(a):\n    return a\nx = f(1, 2)", "3:5", "1 argument; got 2"},
      {"def f():\n    return 1\nx = f(1)", "3:5", "takes 0 arguments; got 1"},
      // The form of a line.
      {"x", "1:2", "expected \"=\"; got the end of the line"},
      {"print(1", "1:8", "expected \")\"; got the end of the line"},
      {"print()", "1:7", "expected a number, a name or \"(\"; got \")\""},
      {"print(1, 2)", "1:8", "expected \")\"; got \",\""},
      {"x = 1 2", "1:7", "expected an operator or the end of the line"},
      {"x = 1; y = 2", "1:6", "expected an operator or the end of the line"},
      {"x = 2 ** 3", "1:8", "expected a number, a name or \"(\"; got \"*\""},
      {"x = (1 + 2", "1:11", "expected \")\""},
      {"x = \"a\"", "1:5", "expected a number, a name or \"(\"; got \"\\\"\""},
      {"x = \xc3\xa9", "1:5", "got \"\\xc3\""},
      {"x = 1\n\ty = 2", "2:1", "expected a statement; got \"\\t\""},
      {"  x = 1", "1:3", "expected 0 spaces before it; got 2"},
      {"def f():\nreturn 1", "2:1", "expected 4 spaces before it; got 0"},
      {"def f():", "1:9", "expected a return of the function"},
      {"def f(): return 1", "1:10", "expected an operator or the end"},
      {"def 1():", "1:5", "expected the name of the function"},
      {"def f(1):", "1:7", "expected the name of an argument; got \"1\""},
      {"def f() return 1", "1:9", "expected \":\"; got \"r\""},
      {"def", "1:4", "expected the name of the function; got the end"},
      // Numbers.
      {"x = 1_000", "1:5", "\"1_000\" is no integer"},
      {"x = 0x10", "1:5", "\"0x10\" is no integer"},
      {"x = 1.5", "1:6", "expected an operator or the end of the line"},
      {"x = 9223372036854775808", "1:5", "is no integer from -2**63 to 2**63"},
      {"x = 1 - 9223372036854775808", "1:9", "is no integer from -2**63"},
      {"x = 4 / 2", "1:7", "expected an operator or the end of the line"},
  };
  for (const auto& [text, at, what] : cases) {
    const std::string error = Error(text);
    EXPECT_EQ(error.find(absl::StrCat("test.py:", at, ": ")), 0u)
        << text << "\n"
        << error;
    EXPECT_NE(error.find(what), std::string::npos) << text << "\n" << error;
  }
}

// f1 calls f0 `calls` times, f2 calls f1, …
std::string Chain(int functions, int calls) {
  std::string text = "def f0(a):\n    return a + 1\n";
  for (int i = 1; i < functions; ++i) {
    absl::StrAppend(&text, "def f", i, "(a):\n    return f", i - 1,
                    calls == 1 ? "(a)" : absl::StrCat("(f", i - 1, "(a))"),
                    "\n");
  }
  return absl::StrCat(text, "print(f", functions - 1, "(0))\n");
}

TEST(LanguageTest, Limits) {
  // Nested calls; one level more is too much.
  EXPECT_EQ(Printed(Chain(15, 2)), "16384\n");
  EXPECT_NE(Error(Chain(90, 2)).find("more than 100000 operations"),
            std::string::npos);
  EXPECT_EQ(Printed(Chain(99, 1)), "1\n");
  EXPECT_NE(Error(Chain(101, 1)).find("calls are nested more than 100 deep"),
            std::string::npos);
  EXPECT_FALSE(Compile(Chain(15'000, 1), "f").ok());
  // Nested expressions: parentheses, minuses, calls.
  const auto nested = [](const char* open, const char* close, int n) {
    std::string text = "def f(a):\n    return a\nprint(";
    for (int i = 1; i < n; ++i) text += open;
    text += "15";
    for (int i = 1; i < n; ++i) text += close;
    return text + ")\n";
  };
  for (const auto& [open, close] :
       {std::make_pair("(", ")"), {"- ", ""}, {"f(", ")"}, {"(1*", ")"}}) {
    EXPECT_TRUE(Compile(nested(open, close, kMaxNesting - 1), "f").ok());
    EXPECT_NE(Error(nested(open, close, kMaxNesting + 2))
                  .find("more than 200 expressions"),
              std::string::npos)
        << open;
    EXPECT_FALSE(Compile(nested(open, close, 300'000), "f").ok()) << open;
  }
  // Many functions, and names that are assigned to again and again.
  std::string many;
  for (int i = 0; i < 15'000; ++i) {
    absl::StrAppend(&many, "def f", i, "(a):\n    return a\n");
  }
  EXPECT_EQ(Printed(ToPython(Compiled(many + "print(f0(2))"))), "2\n");
  std::string again = "x = 1\n";
  for (int i = 0; i < 20'000; ++i) again += "x = x + 1\n";
  EXPECT_EQ(Printed(again + "print(x)"), "20001\n");
}

}  // namespace
}  // namespace d2l::language
