// UTF-8 text, and its layout in lines of a limited width.
//
//   std::cout << Wrap("A long sentence …", "  ");
//   WrapWords("A long sentence …", "Note: ", "      ", 80);
//   EditDistance("kitten", "sitting");  // 3
//
// Width is counted in columns of a terminal: two for a wide character of
// Chinese, Japanese or Korean (UAX #11: East Asian Width W or F), one for any
// other.
//
// All functions are thread-safe and own nothing.

#ifndef D2L_COMMON_BASE_CONSOLE_TEXT_H_
#define D2L_COMMON_BASE_CONSOLE_TEXT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace d2l {

inline constexpr int kTextWidth = 80;

// The columns of the terminal that stdout is, now; kTextWidth if it is none.
int TerminalColumns();

// The columns of this run's output: kTextWidth, or fewer, down to 40, if stdout
// is a narrower terminal. Determined once.
int TextWidth();

// The number of bytes of the first character; 0 if the text is empty or does
// not begin with UTF-8 (RFC 3629, section 4).
std::size_t Utf8Length(absl::string_view text);

// How many columns text without control characters takes.
std::size_t TextColumns(absl::string_view text);

// The text on one line of valid UTF-8: a line end becomes \n; other control
// characters, except those in `kept`, and invalid bytes become \x1b.
std::string PrintableText(absl::string_view text, absl::string_view kept = "");

// PrintableText, cut to at most `columns` with "..." at its end if it is wider.
// `columns` is at least 3.
std::string CutText(absl::string_view text, std::size_t columns);

// For messages: a text from outside, such as from a file, made printable, cut
// to 100 columns and quoted.
std::string QuotedText(absl::string_view text);
// The first ten texts, quoted: "a", "b" and 19990 more.
std::string QuotedTexts(const std::vector<std::string>& texts);

// Breaks the text into lines of at most `columns`, each ended by a newline: at
// its own line ends, at spaces and next to wide characters. `first` stands
// before the first line, `rest` before the others. Several spaces become one;
// between two wide characters, or after a wide mark, they are dropped. A word
// that is too long gets a line of its own. No line begins with a closing mark,
// as "，", or ends with an opening one, as "（". Made printable,
// except for tabs.
std::string WrapWords(absl::string_view text, absl::string_view first,
                      absl::string_view rest, std::size_t columns);

// As WrapWords: `first` stands before the first line, spaces of the same width
// before the others.
std::string Wrap(const std::string& text, const std::string& first = "",
                 int width = TextWidth());

// How many characters to change, add or remove to turn one text into the other,
// ignoring case; for "did you mean".
std::size_t EditDistance(absl::string_view a, absl::string_view b);

// The first of the names, at least one, with the least EditDistance to `name`.
std::string NearestName(absl::string_view name,
                        const std::vector<std::string>& names);

}  // namespace d2l

#endif  // D2L_COMMON_BASE_CONSOLE_TEXT_H_
