// What a program says to the learner, in English or in Chinese.
//
//   SetLanguage("zh").IgnoreError();  // command_line.h
//   std::cout << Say("Enqueueing took %.0f %% of the time.", 97.2) << "\n";
//   cell.Claim(Worded("The %s takes {} as long.", "sum"), …);
//
// The code speaks English. An English text is the key of its translation in
// po/zh.po, a gettext catalogue, whose conversions are the same but may be in
// another order ("%2$s … %1$s"). A text without a translation is shown in
// English. Text of a user (a path, a name) is never translated: it is a string
// argument, which is made printable (PrintableText), since what a file is
// called must not command a terminal; only the code's own texts are keys.
// chapters/texts_test.py finds texts without a translation and translations
// without a text, so the first argument of these functions is a literal.
//
// Set the language once, before the first text; all functions are thread-safe.

#ifndef D2L_COMMON_BASE_CONSOLE_LANGUAGE_H_
#define D2L_COMMON_BASE_CONSOLE_LANGUAGE_H_

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/console/text.h"

namespace d2l {

// "en" or "zh".
const std::string& Language();

struct Translation {
  const char* english;
  const char* translated;
};

// Adds to the translations into Chinese. A program that speaks Chinese links
// //po:zh, whose static initialiser calls this. Returns true.
bool AddTranslations(const std::vector<Translation>& translations);

// The translation of this text, or the text.
std::string Translated(const std::string& english);

// Writes the factors in a measurement as the language does: "1.62x" is 1.62倍.
std::string Measured(const std::string& text);

// A factor: "1.62x", "13,000x", as the language writes it.
std::string FormatFactor(double factor);

// As Translated, with a space at the end if the language needs it: "Note: ".
std::string Lead(const std::string& english);

// A text that is also a key: `english` is the same in every language.
struct Phrase {
  Phrase() = default;
  // NOLINTBEGIN(google-explicit-constructor): a text of the code is a phrase.
  Phrase(const char* text) : Phrase(text, Translated(text)) {}
  Phrase(const std::string& text) : Phrase(text, Translated(text)) {}
  // NOLINTEND(google-explicit-constructor)
  Phrase(std::string english, std::string shown)
      : english(std::move(english)), shown(std::move(shown)) {}

  std::string english;
  std::string shown;
};

// The shown text, padded with spaces to this many columns: on its right, or on
// its left if `columns` is negative.
std::string Padded(const Phrase& phrase, int columns);

inline bool operator==(const Phrase& a, const Phrase& b) {
  return a.english == b.english;
}
inline bool operator!=(const Phrase& a, const Phrase& b) { return !(a == b); }

namespace language_internal {

// For SetLanguage.
void Speak(const std::string& language);

std::string Format(const std::string& english,
                   absl::Span<const absl::FormatArg> arguments, bool translate);

template <typename T>
auto Argument(const T& value, bool translate) {
  static_assert(!std::is_pointer_v<T>,
                "Phrase(x) for a text of the program, std::string(x) for what "
                "a user or a flag is called");
  if constexpr (std::is_convertible_v<const T&, const char*>) {
    return translate ? Translated(value) : std::string(value);
  } else if constexpr (std::is_same_v<T, Phrase>) {
    return translate ? value.shown : value.english;
  } else if constexpr (std::is_convertible_v<const T&, absl::string_view>) {
    return PrintableText(value);
  } else {
    return value;
  }
}

}  // namespace language_internal

// absl::StrFormat in the run's language. Arguments that are literals or Phrases
// are translated too; a std::string is not, since it may be a user's text, and
// is shown on one line without control characters. A pointer could be either,
// and does not compile. Throws std::logic_error if the arguments do not fit the
// English format.
template <typename... Args>
std::string Say(const char* english, const Args&... arguments) {
  using language_internal::Argument;
  return language_internal::Format(
      english, {absl::FormatArg(Argument(arguments, true))...}, true);
}

// As Say, in both languages.
template <typename... Args>
Phrase Worded(const char* english, const Args&... arguments) {
  using language_internal::Argument;
  return {language_internal::Format(
              english, {absl::FormatArg(Argument(arguments, false))...}, false),
          Say(english, arguments...)};
}

}  // namespace d2l

#endif  // D2L_COMMON_BASE_CONSOLE_LANGUAGE_H_
