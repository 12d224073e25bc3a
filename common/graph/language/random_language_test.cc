// Random programs, run after passes, by each executor and as decompiled text,
// print the same as in python3.

#include <chrono>
#include <cstdio>
#include <fstream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/child_process.h"
#include "common/graph/captured.h"
#include "common/graph/ir.h"
#include "common/graph/ir_testing.h"
#include "common/graph/language/language.h"
#include "common/graph/passes/passes.h"
#include "gtest/gtest.h"

namespace d2l::language {
namespace {

// Runs each of the programs of a file, which \x1e separates. A program with
// integers beyond int64, where the language differs, prints "differs" instead.
constexpr char kOracle[] = R"(
import ast, contextlib, io, sys

def checked(x):
    if not -2**63 <= x < 2**63:
        raise OverflowError
    return x

class Check(ast.NodeTransformer):
    def visit_UnaryOp(self, node):
        return call('checked', [self.generic_visit(node)], node)
    def visit_BinOp(self, node):
        return call('checked', [self.generic_visit(node)], node)

def call(name, arguments, node):
    name = ast.Name('@' + name, ast.Load())
    new = ast.Call(name, arguments, [])
    return ast.fix_missing_locations(ast.copy_location(new, node))

results = []
for program in open(sys.argv[1]).read().split('\x1e'):
    tree = ast.fix_missing_locations(Check().visit(ast.parse(program)))
    code = compile(tree, '@program', 'exec')
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        try:
            exec(code, {'@checked': checked})
        except OverflowError:
            text = io.StringIO('differs')
    results.append(text.getvalue())
print('\x1e'.join(results), end='')
)";

// The output of each program in python3.
std::vector<std::string> InPython(const std::vector<std::string>& programs) {
  const std::string path = testing::TempDir() + "/programs";
  std::ofstream(path) << absl::StrJoin(programs, "\x1e");
  ProgramOptions options;
  options.time_limit = std::chrono::minutes(2);
  const ProgramResult python =
      RunProgram("python3", {"-c", kOracle, path}, {}, options);
  std::remove(path.c_str());
  EXPECT_EQ(python.failure, "") << "python3 " << python.failure << "\n"
                                << python.output;
  return absl::StrSplit(python.output, '\x1e');
}

class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {}

  std::string Program() {
    for (int i = Int(4); i > 0; --i) Function();
    variables_ = {};
    Statements("", 6);
    absl::StrAppend(&text_, "print(", Expression(3), ")\n");
    return text_;
  }

 private:
  struct Callee {
    std::string name;
    int arguments;
  };

  int Int(int n) { return static_cast<int>(random_() % n); }
  template <typename T>
  const T& Any(const std::vector<T>& of) {
    return of[Int(static_cast<int>(of.size()))];
  }

  void Function() {
    static const std::vector<std::string> kNames = {"f",    "v1", "v",
                                                    "main", "g",  "v3"};
    Callee callee{kNames[callees_.size()], Int(4)};
    variables_.clear();
    for (int i = 0; i < callee.arguments; ++i) {
      variables_.push_back(absl::StrCat("a", i));
    }
    absl::StrAppend(&text_, "def ", callee.name, "(",
                    absl::StrJoin(variables_, ", "), "):  # a function\n");
    Statements("    ", 3);
    absl::StrAppend(&text_, "    return ", Expression(3), "\n\n");
    callees_.push_back(callee);
  }

  void Statements(const std::string& indent, int most) {
    for (int i = Int(most + 1); i > 0; --i) {
      text_ += indent;
      if (Int(4) > 0 || !indent.empty()) {
        static const std::vector<std::string> kNames = {"x", "y", "x_2", "v2",
                                                        "z"};
        const std::string& name = Any(kNames);
        absl::StrAppend(&text_, name, " = ", Expression(3), "\n\n");
        variables_.push_back(name);
      } else {
        absl::StrAppend(&text_, "print(", Expression(2), ")\n");
      }
    }
  }

  std::string Call(const Callee& callee, int depth) {
    std::vector<std::string> arguments(callee.arguments);
    for (std::string& argument : arguments) argument = Expression(depth - 1);
    return absl::StrCat(callee.name, "(", absl::StrJoin(arguments, ", "), ")");
  }

  std::string Expression(int depth) {
    const int kind = depth == 0 ? Int(4) : Int(14);
    if (kind < 2 && !variables_.empty()) return Any(variables_);
    if (kind < 4) return Literal();
    if (kind == 4) return absl::StrCat("-", Expression(depth - 1));
    if (kind == 5) return absl::StrCat("(", Expression(depth - 1), ")");
    if (kind < 9 && !callees_.empty()) {
      return Call(Any(callees_), depth);
    }
    static const std::vector<std::string> kOperators = {" + ", " - ", " * "};
    return absl::StrCat(Expression(depth - 1), Any(kOperators),
                        Expression(depth - 1));
  }

  std::string Literal() {
    static const std::vector<std::string> kSpecial = {
        "0", "9223372036854775807", "9007199254740993", "4611686018427387904"};
    if (Int(8) == 0) return Any(kSpecial);
    return absl::StrCat(1 + Int(9));
  }

  std::mt19937 random_;
  std::string text_;
  std::vector<Callee> callees_;
  std::vector<std::string> variables_;
};

struct Case {
  unsigned seed;
  std::string text;
  std::string printed;
};

TEST(RandomLanguageTest, PrintsWhatPythonPrints) {
  const std::vector<std::pair<std::string, void (*)(ir::Graph&)>> passes = {
      {"nothing", [](ir::Graph&) {}},
      {"inline", ir::Inline},
      {"fold", ir::Fold},
      {"simplify", ir::Simplify},
      {"common subexpressions", ir::MergeCommonSubexpressions},
      {"dead code", ir::RemoveDeadCode},
      {"fuse", ir::Fuse},
      {"inline and fuse",
       [](ir::Graph& graph) {
         ir::Inline(graph);
         ir::MergeCommonSubexpressions(graph);
         ir::Fuse(graph);
       }},
      {"all", [](ir::Graph& graph) { ir::Optimize(graph); }}};
  std::vector<Case> cases;
  for (unsigned seed = 0; seed < 400; ++seed) {
    const std::string text = Generator(seed).Program();
    const absl::StatusOr<ir::Graph> program = Compile(text, "program");
    ASSERT_TRUE(program.ok()) << program.status() << "\n" << text;
    const std::string printed = language::Run(*program);
    cases.push_back({seed, text, printed});
    for (const auto& [name, pass] : passes) {
      ir::Graph after = *program;
      pass(after);
      const std::string what = absl::StrCat(name, ", seed ", seed, "\n", text,
                                            "\n", ir::ToText(after));
      ASSERT_NO_THROW(ir::Verify(after)) << what;
      ASSERT_EQ(language::Run(after), printed) << what;
      ASSERT_EQ(ir::Bits(ir::Captured(after).Run({})),
                ir::Bits(ir::Run(after, {})))
          << what;
      if (absl::StrContains(name, "fuse")) continue;
      const std::string again = ToPython(after);
      const absl::StatusOr<ir::Graph> compiled = Compile(again, "again");
      ASSERT_TRUE(compiled.ok()) << compiled.status() << what << again;
      ASSERT_EQ(language::Run(*compiled), printed) << what << again;
      cases.push_back({seed, again, printed});
    }
  }
  std::vector<std::string> texts;
  for (const Case& c : cases) texts.push_back(c.text);
  const std::vector<std::string> python = InPython(texts);
  ASSERT_EQ(python.size(), cases.size());
  std::size_t compared = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (python[i] == "differs") continue;
    ++compared;
    const Case& c = cases[i];
    ASSERT_EQ(c.printed, python[i]) << c.seed << "\n" << c.text;
  }
  EXPECT_GT(compared, cases.size() / 2);
}

}  // namespace
}  // namespace d2l::language
