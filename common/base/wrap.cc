#include "common/base/wrap.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace d2l {

std::size_t TextColumns(absl::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string WrapWords(absl::string_view text, absl::string_view first,
                      absl::string_view rest, std::size_t columns) {
  std::string result;
  absl::string_view prefix = first;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    absl::StrAppend(&result, prefix);
    std::size_t column = TextColumns(prefix);
    prefix = rest;
    bool first_word = true;
    for (const absl::string_view word :
         absl::StrSplit(line, ' ', absl::SkipEmpty())) {
      if (!first_word && column + 1 + TextColumns(word) > columns) {
        absl::StrAppend(&result, "\n", rest);
        column = TextColumns(rest);
        first_word = true;
      }
      absl::StrAppend(&result, first_word ? "" : " ", word);
      column += TextColumns(word) + (first_word ? 0 : 1);
      first_word = false;
    }
    absl::StrAppend(&result, "\n");
  }
  return result;
}

}  // namespace d2l
