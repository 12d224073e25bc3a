#include "common/base/console/language.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <regex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "common/base/console/format.h"
#include "common/base/console/text.h"

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

// What stands around the conversions of a format, which argument each of them
// is of, and whether that is a number.
struct SplitFormat {
  explicit SplitFormat(const std::string& format) {
    static const std::regex& conversion =
        *new std::regex("%(?:([0-9]+)[$])?[-.0-9]*([a-z])");
    std::size_t at = 0;
    std::size_t next = 0;
    for (std::sregex_iterator i(format.begin(), format.end(), conversion), end;
         i != end; ++i) {
      literals.push_back(format.substr(at, i->position() - at));
      arguments.push_back((*i)[1].matched ? std::stoul((*i)[1]) - 1 : next++);
      numbers.push_back((*i)[2] != "s");
      at = static_cast<std::size_t>(i->position() + i->length());
    }
    literals.push_back(format.substr(at));
    for (std::string& literal : literals) {
      absl::StrReplaceAll({{"%%", "%"}}, &literal);
    }
  }

  // The arguments with which the format gives this text; false if none do, or
  // if others do as well: who knows then which words are a user's?
  bool Match(absl::string_view text, std::vector<std::string>* words) const {
    if (arguments.empty()) return text == literals.front();
    words->assign(arguments.size(), "");
    if (!absl::ConsumePrefix(&text, literals.front()) ||
        !absl::ConsumeSuffix(&text, literals.back())) {
      return false;
    }
    absl::string_view rest = text;  // up to the last place of each literal
    std::vector<std::size_t> last(arguments.size(), text.size());
    for (std::size_t i = arguments.size(); i-- > 1;) {
      last[i - 1] = rest.rfind(literals[i]);
      if (last[i - 1] == rest.npos) return false;
      rest = rest.substr(0, last[i - 1]);
    }
    std::size_t begin = 0;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const bool is_last = i + 1 == arguments.size();
      if (!is_last && text.find(literals[i + 1], begin) != last[i])
        return false;
      std::string& word = words->at(arguments[i]);
      word = std::string(text.substr(begin, last[i] - begin));
      double number = 0;
      if (numbers[i] && !absl::SimpleAtod(word, &number)) return false;
      begin = last[i] + literals[i + 1].size();
    }
    return true;
  }

  std::vector<std::string> literals;
  std::vector<std::size_t> arguments;
  std::vector<bool> numbers;
};

constexpr char kSpace[] = " \n";

std::string Normalized(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  absl::RemoveExtraAsciiWhitespace(&text);
  return text;
}

}  // namespace

void SetSentences(const std::string& language,
                  const std::map<std::string, std::string>& sentences) {
  Spoken spoken;
  spoken.language = language;
  for (const auto& [english, other] : sentences) {
    spoken.rows[Normalized(english)] = other;
  }
  TheLanguage() = std::move(spoken);
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

std::string TranslatedMessage(const std::string& english) {
  const auto& rows = TheLanguage().rows;
  if (rows.count(Normalized(english)) > 0) return Translated(english);
  std::size_t most = 5;  // " and " alone says too little
  std::vector<std::string> words;
  const std::string* translation = nullptr;
  for (const auto& [row, other] : rows) {
    if (!absl::StrContains(row, '%')) continue;
    const SplitFormat format(row);
    const std::size_t size = absl::StrJoin(format.literals, "").size();
    std::vector<std::string> found;
    if (size <= most || !format.Match(english, &found)) continue;
    most = size;
    words = found;
    translation = &other;
  }
  if (translation == nullptr) return english;
  const SplitFormat format(*translation);
  std::string text = format.literals[0];
  for (std::size_t i = 0; i < format.arguments.size(); ++i) {
    const std::string& word = words.at(format.arguments[i]);
    absl::string_view after = format.literals[i + 1];
    if (absl::EndsWith(format.literals[i], "{") &&
        absl::ConsumePrefix(&after, "}")) {
      text.pop_back();
      absl::StrAppend(&text, TranslatedMessage(word), after);
    } else {
      absl::StrAppend(&text, word, after);
    }
  }
  return text;
}

std::string TranslatedParts(const std::string& english) {
  const std::string whole = TranslatedMessage(english);
  if (whole != english || TheLanguage().rows.empty()) return whole;
  for (const char* separator : {"; ", " / ", ", ", " and "}) {
    const std::size_t at = english.find(separator);
    if (at == std::string::npos) continue;
    const std::string between = separator;
    const std::string left = TranslatedParts(english.substr(0, at));
    const std::string right =
        TranslatedParts(english.substr(at + between.size()));
    const std::string parts = absl::StrCat(left, between, right);
    // A formula, as "max(t1, t2)".
    if (parts == english && between != " and ") return english;
    return absl::StrCat(left,
                        between == " and " ? "和"
                        : between == ", "  ? "，"
                        : between == "; "  ? "；"
                                           : between,
                        right);
  }
  return english;
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

std::string Padded(const std::string& english, int columns) {
  const std::string text = Translated(english);
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
