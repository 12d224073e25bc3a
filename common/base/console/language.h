// What a program says to the learner, in English or in Chinese.
//
//   std::cout << Say("Asking took %.0f %% of the time.", 97.2) << "\n";
//   cell.Claim(Worded("The %s takes {} as long.", "sum"), …);
//
// The code speaks English. Its sentence is the key of the Chinese one, in the
// sentences that the program has (common/lesson/language.h), whose conversions
// are the same, in any order ("%2$s … %1$s"). Space around the sentence is no
// part of the key, and how much space is in it does not matter. What has no row
// is said in English. A user's text (a path, a name) stays as it is: only what
// the code says is translated, see Say. chapters/texts_test.py finds sentences
// without a row and rows without a sentence; so the first argument is a
// literal.
//
// SetSentences is called once, before the rest; that is thread-safe.

#ifndef D2L_COMMON_BASE_CONSOLE_LANGUAGE_H_
#define D2L_COMMON_BASE_CONSOLE_LANGUAGE_H_

#include <map>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/types/span.h"

namespace d2l {

// What is said from now on. `language` is "en" or "zh"; a sentence is the key
// of its translation.
void SetSentences(const std::string& language,
                  const std::map<std::string, std::string>& sentences);

// "en" or "zh"; "en" before SetSentences.
const std::string& Language();

// The row of this text, or the text.
std::string Translated(const std::string& english);

// As Translated, of a message that was put together by what knows no language:
// by the most specific row whose conversions take its words in one way only. A
// word stays as it is, unless the translation has braces around it: "{%s}" is
// a message within the message.
std::string TranslatedMessage(const std::string& english);

// As TranslatedMessage, or, of text that no row takes, of each of its parts
// between ", ", " / " and " and ": of a figure's label, or of a list.
std::string TranslatedParts(const std::string& english);

// A figure's factors and counts as the language writes them: "1.62x" is 1.62倍.
std::string Measured(const std::string& text);

// A factor: "1.62x", "13,000x", as the language writes it.
std::string FormatFactor(double factor);

// As Translated, with spaces up to this many columns: behind it, or before it
// if `columns` is negative.
std::string Padded(const std::string& english, int columns);

// As Translated, with a space behind it if something may follow: "Note: ".
std::string Lead(const std::string& english);

// A text that is also a key: the same in every language, and as it is shown.
struct Phrase {
  // NOLINTNEXTLINE(google-explicit-constructor): a literal is a phrase.
  Phrase(const char* text) : Phrase(text, Translated(text)) {}
  explicit Phrase(const std::string& text) : Phrase(text, Translated(text)) {}
  Phrase(std::string english, std::string shown)
      : english(std::move(english)), shown(std::move(shown)) {}

  std::string english;
  std::string shown;
};

namespace language_internal {

std::string Format(const std::string& english,
                   absl::Span<const absl::FormatArg> arguments, bool translate);

template <typename T>
auto Argument(const T& value, bool translate) {
  if constexpr (std::is_convertible_v<const T&, const char*>) {
    return translate ? Translated(value) : std::string(value);
  } else if constexpr (std::is_same_v<T, Phrase>) {
    return translate ? value.shown : value.english;
  } else {
    return value;
  }
}

}  // namespace language_internal

// absl::StrFormat in the run's language. A literal among the arguments is
// translated too, and a Phrase; a std::string is what it is, for it may be a
// user's. Throws std::logic_error if the arguments do not fit the English
// format.
template <typename... Args>
std::string Say(const char* english, const Args&... arguments) {
  using language_internal::Argument;
  return language_internal::Format(
      english, {absl::FormatArg(Argument(arguments, true))...}, true);
}

template <typename... Args>
Phrase Worded(const char* english, const Args&... arguments) {
  using language_internal::Argument;
  return {language_internal::Format(
              english, {absl::FormatArg(Argument(arguments, false))...}, false),
          Say(english, arguments...)};
}

}  // namespace d2l

#endif  // D2L_COMMON_BASE_CONSOLE_LANGUAGE_H_
