#include "common/base/wrap.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace d2l {

std::size_t TextColumns(absl::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::size_t Utf8Length(absl::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return text.empty() ? 0 : 1;
  const std::size_t length = first < 0xc2   ? 0
                             : first < 0xe0 ? 2
                             : first < 0xf0 ? 3
                             : first < 0xf5 ? 4
                                            : 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong =
      (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool surrogate = first == 0xed && byte(1) >= 0xa0;
  const bool too_large = first == 0xf4 && byte(1) >= 0x90;
  return overlong || surrogate || too_large ? 0 : length;
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
