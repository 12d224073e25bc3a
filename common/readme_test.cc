// The code in README.md is the repository's own: a block that begins with
// ```cpp FILE stands in FILE, line for line.

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace {

using ::testing::HasSubstr;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

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

}  // namespace
