// The code in README.md is the repository's own: a block that begins with
// ```cpp FILE stands in FILE, line for line. The first program, which the
// READMEs of examples show, is run.

#include <cstddef>
#include <regex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "common/base/child_process.h"
#include "common/base/files/atomic_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace d2l {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Quotation {
  std::string file;
  std::string code;
};

std::vector<Quotation> Quotations(const std::string& markdown) {
  constexpr char kFence[] = "```cpp ";
  std::vector<Quotation> found;
  std::istringstream lines(markdown);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(kFence, 0) != 0) continue;
    Quotation quotation;
    quotation.file = line.substr(sizeof(kFence) - 1);
    while (std::getline(lines, line) && line != "```") {
      quotation.code += line + "\n";
    }
    found.push_back(quotation);
  }
  return found;
}

TEST(Readme, QuotesTheCodeAsItIs) {
  const std::vector<Quotation> quotations =
      Quotations(ReadFile("common/README.md"));
  EXPECT_GE(quotations.size(), 8u);
  for (const Quotation& quotation : quotations) {
    const std::string file = ReadFile(quotation.file);
    ASSERT_NE(file, "") << quotation.file;
    EXPECT_THAT(file, HasSubstr(quotation.code)) << quotation.file;
  }
}

// The steps and their losses, of the program's output or a README's.
std::vector<std::pair<int, double>> Losses(const std::string& text) {
  static const std::regex kLine("(?:^|\n)step (\\d+): loss (\\S+)");
  std::vector<std::pair<int, double>> losses;
  for (std::sregex_iterator i(text.begin(), text.end(), kLine), end; i != end;
       ++i) {
    losses.emplace_back(std::stoi((*i)[1]), std::stod((*i)[2]));
  }
  return losses;
}

TEST(FirstProgram, DoesWhatTheReadmesShow) {
  // As `bazel run` starts it.
  const TemporaryDirectory here;
  const ProgramResult run = RunProgram(
      "examples/first_program", {}, {"BUILD_WORKING_DIRECTORY=" + here.path()});
  ASSERT_EQ(run.exit_code, 0) << run.output;
  const auto losses = Losses(run.output);
  ASSERT_GT(losses.size(), 1u) << run.output;
  EXPECT_LT(losses.back().second, losses.front().second / 10);
  EXPECT_THAT(run.output, HasSubstr("matmul"));

  for (const char* const readme :
       {"examples/README.md", "examples/README.zh.md"}) {
    SCOPED_TRACE(readme);
    const std::string text = ReadFile(readme);
    const std::vector<Quotation> quotations = Quotations(text);
    ASSERT_EQ(quotations.size(), 1u);
    EXPECT_EQ(quotations[0].code, ReadFile("examples/first_program.cc"));
    const auto shown = Losses(text);
    ASSERT_EQ(shown.size(), losses.size());
    for (std::size_t i = 0; i < losses.size(); ++i) {
      EXPECT_EQ(shown[i].first, losses[i].first);
      EXPECT_NEAR(shown[i].second, losses[i].second, 0.01 * losses[i].second);
    }
  }

  const std::string page = ReadFile(here.path() + "/profile.html");
  EXPECT_THAT(page, StartsWith("<!DOCTYPE html>"));
  EXPECT_THAT(page, HasSubstr("relu_backward"));
  EXPECT_THAT(page, EndsWith("</html>\n"));
  const auto trace =
      nlohmann::json::parse(ReadFile(here.path() + "/trace.json"), nullptr,
                            /*allow_exceptions=*/false);
  ASSERT_TRUE(trace.is_object());
  int steps = 0;
  for (const auto& event : trace["traceEvents"]) {
    steps += event["name"] == "step" ? 1 : 0;
  }
  EXPECT_EQ(steps, losses.back().first + 1);
}

}  // namespace
}  // namespace d2l
