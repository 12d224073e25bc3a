#include "common/graph/language/tokens.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace d2l::language {
namespace {

bool IsWordCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
}

bool BeginsNumber(char c) {
  return absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '.';
}

// So that messages can be read, and "did you mean" takes no time.
constexpr std::size_t kMaxWord = 100;

// How long the name or the number is. "1e-3" is one, and so is what is no
// number: "1x" and "1.2.3".
std::size_t WordSize(absl::string_view text) {
  const bool is_number = BeginsNumber(text[0]);
  std::size_t size = 0;
  for (; size < text.size(); ++size) {
    const char c = text[size];
    const bool is_sign =
        (c == '+' || c == '-') && size > 0 && (text[size - 1] | 32) == 'e';
    if (!IsWordCharacter(c) && !(is_number && (c == '.' || is_sign))) break;
  }
  return size;
}

}  // namespace

void Fail(Position at, std::string what) {
  throw CompileError{at, std::move(what)};
}

std::vector<Token> Tokenize(absl::string_view text) {
  std::vector<Token> tokens;
  Position at;
  std::size_t size = 0;
  int parentheses = 0;
  const auto end_line = [&] {
    if (parentheses == 0 && !tokens.empty() &&
        tokens.back().kind != Token::kNewline) {
      tokens.push_back({Token::kNewline, text.substr(0, 0), at});
    }
  };
  for (; !text.empty(); text.remove_prefix(size)) {
    const char c = text[0];
    size = 1;
    if (c == '\n') {
      end_line();
      at = {at.line + 1, 1};
      continue;
    }
    if (c == '#') {
      size = std::min(text.find('\n'), text.size());
    } else if (IsWordCharacter(c) || c == '.') {
      size = WordSize(text);
      if (size > kMaxWord) {
        Fail(at, absl::StrCat("a word of more than ", kMaxWord, " characters"));
      }
      tokens.push_back({BeginsNumber(c) ? Token::kNumber : Token::kName,
                        text.substr(0, size), at});
    } else if (c != '\0' && absl::string_view("+-*/(),:=").find(c) !=
                                absl::string_view::npos) {
      parentheses = std::max(parentheses + (c == '(') - (c == ')'), 0);
      tokens.push_back({c, text.substr(0, 1), at});
    } else if (c != ' ' && text.substr(0, 2) != "\r\n") {
      Fail(at, c == '\t' ? "a tab; indent with spaces"
                         : absl::StrCat("no character of this language: \"",
                                        absl::CHexEscape({&c, 1}), "\""));
    }
    at.column += static_cast<int>(size);
  }
  parentheses = 0;
  end_line();
  tokens.push_back({Token::kEnd, "", at});
  return tokens;
}

bool IsReserved(absl::string_view word) {
  static constexpr absl::string_view kReserved[] = {
      "False",  "None",     "True",  "and",    "as",       "assert",
      "async",  "await",    "break", "class",  "continue", "def",
      "del",    "elif",     "else",  "except", "finally",  "for",
      "from",   "global",   "if",    "import", "in",       "is",
      "lambda", "nonlocal", "not",   "or",     "pass",     "print",
      "raise",  "return",   "try",   "while",  "with",     "yield"};
  return std::find(std::begin(kReserved), std::end(kReserved), word) !=
         std::end(kReserved);
}

std::string Unique(const std::string& name, Names& names) {
  const auto [taken, is_new] = names.emplace(name, 1);
  if (is_new) return name;
  for (;;) {
    std::string numbered = absl::StrCat(name, "_", ++taken->second);
    if (names.emplace(numbered, 1).second) return numbered;
  }
}

}  // namespace d2l::language
