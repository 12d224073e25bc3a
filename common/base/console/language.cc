#include "common/base/console/language.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <regex>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

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
  static const std::regex& factor = *new std::regex("([0-9])x(?![0-9A-Za-z])");
  static const std::regex& calls = *new std::regex("([0-9]) calls");
  return std::regex_replace(std::regex_replace(text, factor, "$1倍"), calls,
                            "$1次");
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
