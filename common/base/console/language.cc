#include "common/base/console/language.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "common/base/console/format.h"
#include "common/base/console/text.h"

namespace d2l {
namespace {

struct Spoken {
  std::string language = "en";
  std::unordered_map<std::string, std::string> translations;
};

Spoken& TheLanguage() {
  static Spoken& spoken = *new Spoken;
  return spoken;
}

}  // namespace

const std::string& Language() { return TheLanguage().language; }

bool AddTranslations(const std::vector<Translation>& translations) {
  for (const auto& [english, translated] : translations) {
    TheLanguage().translations[english] = translated;
  }
  return true;
}

std::string Translated(const std::string& english) {
  const auto& translations = TheLanguage().translations;
  if (Language() == "en") return english;
  const auto found = translations.find(english);
  return found == translations.end() ? english : found->second;
}

std::string Measured(const std::string& text) {
  if (Language() == "en") return text;
  std::string measured;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool behind_digit = i > 0 && absl::ascii_isdigit(text[i - 1]);
    const bool last = i + 1 == text.size() || !absl::ascii_isalnum(text[i + 1]);
    if (behind_digit && last && text[i] == 'x') {
      measured += "倍";
    } else if (behind_digit && text.compare(i, 6, " calls") == 0) {
      measured += "次";
      i += 5;
    } else {
      measured += text[i];
    }
  }
  return measured;
}

std::string FormatFactor(double factor) {
  return Measured(FormatNumber(factor) + "x");
}

std::string Padded(const Phrase& phrase, int columns) {
  const std::string& text = phrase.shown;
  const std::size_t wanted = static_cast<std::size_t>(std::abs(columns));
  const std::string spaces(wanted - std::min(wanted, TextColumns(text)), ' ');
  return columns < 0 ? spaces + text : text + spaces;
}

std::string Lead(const std::string& english) {
  const std::string text = Translated(english);
  const bool wide = absl::EndsWith(text, "：") || absl::EndsWith(text, "。");
  return absl::StrCat(text, wide ? "" : " ");
}

namespace language_internal {

void Speak(const std::string& language) { TheLanguage().language = language; }

std::string Format(const std::string& english,
                   absl::Span<const absl::FormatArg> arguments,
                   bool translate) {
  std::string text;
  if (translate &&
      absl::FormatUntyped(&text, absl::UntypedFormatSpec(Translated(english)),
                          arguments)) {
    return text;
  }
  text.clear();
  if (absl::FormatUntyped(&text, absl::UntypedFormatSpec(english), arguments)) {
    return text;
  }
  throw std::logic_error(
      absl::StrCat("[Say] the arguments do not fit \"", english, "\""));
}

}  // namespace language_internal
}  // namespace d2l
