// The language's text as words, for the parser.
//
// Errors: a CompileError. Pure functions.

#ifndef D2L_COMMON_GRAPH_LANGUAGE_TOKENS_H_
#define D2L_COMMON_GRAPH_LANGUAGE_TOKENS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace d2l::language {

// Both count from 1.
struct Position {
  int line = 1;
  int column = 1;
};

struct CompileError {
  Position at;
  std::string what;
};

[[noreturn]] void Fail(Position at, std::string what);

struct Token {
  char kind = 0;  // the symbol, or one of these:
  static constexpr char kName = 'a';
  static constexpr char kNumber = '0';
  static constexpr char kNewline = '\n';
  static constexpr char kEnd = '\0';

  absl::string_view text;  // empty of the latter two
  Position at;
};

// A newline ends each line that is not blank; within parentheses it is a space.
// The last token is kEnd. The text outlives them.
std::vector<Token> Tokenize(absl::string_view text);

// Whether Python, or the language, gives the word a meaning.
bool IsReserved(absl::string_view word);

// Names that are taken, and the last number at the end of each.
using Names = std::map<std::string, int>;
// The name, or the name with a number if it is taken. It is taken then.
std::string Unique(const std::string& name, Names& names);

}  // namespace d2l::language

#endif  // D2L_COMMON_GRAPH_LANGUAGE_TOKENS_H_
