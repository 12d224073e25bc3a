#include "common/base/console/text.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace d2l {
namespace {

constexpr absl::string_view kClosing = "，。：；！？、）」』》】”’…%,.:;!?)]";
constexpr absl::string_view kOpening = "（「『《【“‘([";

// The first character, or byte if it is not UTF-8; the text is not empty.
absl::string_view FirstCharacter(absl::string_view text) {
  return text.substr(0, std::max<std::size_t>(Utf8Length(text), 1));
}

// Whether it takes two columns: what East Asian scripts need, and no emoji.
bool IsWide(absl::string_view character) {
  if (character.size() < 3) return false;
  std::size_t code = static_cast<unsigned char>(character[0]) &
                     (character.size() == 3 ? 0x0fu : 0x07u);
  for (const char c : character.substr(1)) {
    code = code << 6 | (static_cast<unsigned char>(c) & 0x3fu);
  }
  constexpr std::size_t kWide[][2] = {
      {0x1100, 0x115f},  {0x2e80, 0x303e}, {0x3041, 0x3247}, {0x3250, 0x4dbf},
      {0x4e00, 0xa4c6},  {0xa960, 0xa97c}, {0xac00, 0xd7a3}, {0xf900, 0xfaff},
      {0xfe10, 0xfe19},  {0xfe30, 0xfe6b}, {0xff01, 0xff60}, {0xffe0, 0xffe6},
      {0x20000, 0x3fffd}};
  return std::any_of(
      std::begin(kWide), std::end(kWide),
      [&](const auto& range) { return range[0] <= code && code <= range[1]; });
}

absl::string_view LastCharacter(absl::string_view text) {
  std::size_t last = text.size();
  while (last > 0 && (text[--last] & 0xc0) == 0x80) continue;
  return text.substr(last);
}

// The parts of a word between which a line may end.
std::vector<absl::string_view> Pieces(absl::string_view word) {
  std::vector<absl::string_view> pieces;
  std::size_t begin = 0;
  absl::string_view before;
  for (std::size_t i = 0; i < word.size(); i += before.size()) {
    const absl::string_view character = FirstCharacter(word.substr(i));
    if (i > 0 && (IsWide(before) || IsWide(character)) &&
        !absl::StrContains(kOpening, before) &&
        !absl::StrContains(kClosing, character)) {
      pieces.push_back(word.substr(begin, i - begin));
      begin = i;
    }
    before = character;
  }
  pieces.push_back(word.substr(begin));
  return pieces;
}

// U+0000 to U+001F, U+007F to U+009F.
bool IsControl(absl::string_view sequence) {
  if (sequence.size() == 1) return absl::ascii_iscntrl(sequence[0]);
  return sequence[0] == '\xc2' &&
         static_cast<unsigned char>(sequence[1]) < 0xa0;
}

}  // namespace

std::size_t TextColumns(absl::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const absl::string_view character = FirstCharacter(text);
    // The rest of a broken character takes no column.
    if ((character[0] & 0xc0) != 0x80) columns += IsWide(character) ? 2 : 1;
    text.remove_prefix(character.size());
  }
  return columns;
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

std::string PrintableText(absl::string_view text, absl::string_view kept) {
  std::string printable;
  while (!text.empty()) {
    const std::size_t length = Utf8Length(text);
    const absl::string_view sequence =
        text.substr(0, std::max<std::size_t>(length, 1));
    const bool shown = absl::StrContains(kept, sequence) ||
                       (length > 0 && !IsControl(sequence));
    if (shown) {
      absl::StrAppend(&printable, sequence);
    } else if (sequence == "\n") {
      absl::StrAppend(&printable, "\\n");
    } else {
      for (const char c : sequence) {
        absl::StrAppendFormat(&printable, "\\x%02x",
                              static_cast<unsigned char>(c));
      }
    }
    text.remove_prefix(sequence.size());
  }
  return printable;
}

std::string CutText(absl::string_view text, std::size_t columns) {
  if (TextColumns(text) <= columns) return std::string(text);
  std::string cut;
  for (std::size_t left = columns - 3;;) {
    const absl::string_view character = text.substr(0, Utf8Length(text));
    if (TextColumns(character) > left) return cut + "...";
    left -= TextColumns(character);
    absl::StrAppend(&cut, character);
    text.remove_prefix(character.size());
  }
}

std::string QuotedText(absl::string_view text) {
  return absl::StrCat("\"", CutText(PrintableText(text), 100), "\"");
}

std::string QuotedTexts(const std::vector<std::string>& texts) {
  constexpr std::size_t kMost = 10;
  std::string result;
  for (std::size_t i = 0; i < std::min(texts.size(), kMost); ++i) {
    absl::StrAppend(&result, i == 0 ? "" : ", ", QuotedText(texts[i]));
  }
  if (texts.size() > kMost) {
    absl::StrAppend(&result, " and ", texts.size() - kMost, " more");
  }
  return result;
}

std::string WrapWords(absl::string_view text, absl::string_view first,
                      absl::string_view rest, std::size_t columns) {
  std::string result;
  absl::string_view prefix = first;
  const std::string printable = PrintableText(text, "\n\t");
  for (const absl::string_view line : absl::StrSplit(printable, '\n')) {
    absl::StrAppend(&result, prefix);
    std::size_t column = TextColumns(prefix);
    prefix = rest;
    bool at_start = true;
    for (const absl::string_view word :
         absl::StrSplit(line, ' ', absl::SkipEmpty())) {
      const absl::string_view last = LastCharacter(result);
      const bool glued = IsWide(last) && (absl::StrContains(kClosing, last) ||
                                          IsWide(FirstCharacter(word)));
      absl::string_view space = glued ? "" : " ";
      for (const absl::string_view piece : Pieces(word)) {
        if (!at_start && column + space.size() + TextColumns(piece) > columns) {
          absl::StrAppend(&result, "\n", rest);
          column = TextColumns(rest);
          at_start = true;
        }
        if (at_start) space = "";
        absl::StrAppend(&result, space, piece);
        column += space.size() + TextColumns(piece);
        at_start = false;
        space = "";
      }
    }
    absl::StrAppend(&result, "\n");
  }
  return result;
}

int TerminalColumns() {
  winsize size = {};
  const bool known = isatty(STDOUT_FILENO) == 1 &&
                     ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
                     size.ws_col > 0;
  return known ? size.ws_col : kTextWidth;
}

int TextWidth() {
  static const int width = std::clamp(TerminalColumns(), 40, kTextWidth);
  return width;
}

std::string Wrap(const std::string& text, const std::string& first, int width) {
  return WrapWords(text, first, std::string(TextColumns(first), ' '),
                   static_cast<std::size_t>(width));
}

std::size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const bool same = absl::ascii_tolower(a[i]) == absl::ascii_tolower(b[j]);
      const std::size_t changed = diagonal + (same ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

std::string NearestName(absl::string_view name,
                        const std::vector<std::string>& names) {
  return *std::min_element(
      names.begin(), names.end(), [name](const auto& a, const auto& b) {
        return EditDistance(name, a) < EditDistance(name, b);
      });
}

}  // namespace d2l
