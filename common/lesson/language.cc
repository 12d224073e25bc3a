#include "common/lesson/language.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <regex>
#include <stdexcept>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "common/base/wrap.h"
#include "common/lesson/sections.h"
#include "common/lesson/source.h"

namespace d2l {
namespace {

struct Spoken {
  std::string language = "en";
  std::map<std::string, std::string> rows;
};

Spoken& TheLanguage() {
  static Spoken& spoken = *new Spoken;
  return spoken;
}

constexpr char kSpace[] = " \n";

std::string Normalized(std::string text) {
  absl::RemoveExtraAsciiWhitespace(&text);
  return text;
}

std::string OfEnvironment() {
  for (const char* name : {"LC_ALL", "LC_MESSAGES", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    return absl::StartsWith(value, "zh") ? "zh" : "en";
  }
  return "en";
}

}  // namespace

absl::Status SetLanguage(const std::string& language) {
  if (!language.empty() && language != "en" && language != "zh") {
    return absl::InvalidArgumentError(absl::StrFormat(
        "--lang=%s asked for; there are en (English) and zh (Chinese). Say "
        "--lang=en.",
        language));
  }
  Spoken spoken;
  spoken.language = language.empty() ? OfEnvironment() : language;
  for (const auto& [file, text] : EmbeddedFiles()) {
    if (!absl::EndsWith(file, absl::StrCat(".", spoken.language, ".md"))) {
      continue;
    }
    const absl::StatusOr<Markdown> parsed = ParseSections(file, text);
    if (!parsed.ok()) return parsed.status();
    for (const Section& section : parsed->sections) {
      for (const auto& [english, other] : section.sentences) {
        spoken.rows[Normalized(english)] = other;
      }
    }
  }
  TheLanguage() = std::move(spoken);
  return absl::OkStatus();
}

const std::string& Language() { return TheLanguage().language; }

std::string Translated(const std::string& english) {
  const auto& rows = TheLanguage().rows;
  const auto row = rows.find(Normalized(english));
  if (row == rows.end()) return english;
  const std::size_t begin = english.find_first_not_of(kSpace);
  const std::size_t end = english.find_last_not_of(kSpace) + 1;
  return absl::StrCat(english.substr(0, begin), row->second,
                      english.substr(end));
}

std::string Measured(const std::string& text) {
  if (Language() == "en") return text;
  static const std::regex& factor = *new std::regex("([0-9])x(?![0-9A-Za-z])");
  static const std::regex& calls = *new std::regex("([0-9]) calls");
  return std::regex_replace(std::regex_replace(text, factor, "$1倍"), calls,
                            "$1次");
}

std::string Padded(const std::string& english, int columns) {
  const std::string text = Translated(english);
  const std::size_t wanted = static_cast<std::size_t>(std::abs(columns));
  const std::string spaces(wanted - std::min(wanted, TextColumns(text)), ' ');
  return columns < 0 ? spaces + text : text + spaces;
}

std::string Lead(const std::string& english) {
  const std::string text = Translated(english);
  return absl::StrCat(text, absl::EndsWith(text, "：") ? "" : " ");
}

namespace language_internal {

std::string Format(const std::string& english,
                   absl::Span<const absl::FormatArg> arguments,
                   bool translate) {
  std::string text;
  if (translate &&
      absl::FormatUntyped(&text, absl::UntypedFormatSpec(Translated(english)),
                          arguments)) {
    return Measured(text);
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
