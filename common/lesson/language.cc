#include "common/lesson/language.h"

#include <cstdlib>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/lesson/sections.h"
#include "common/lesson/source.h"

namespace d2l {
namespace {

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
    return absl::InvalidArgumentError(
        Say("--lang=%s asked for; there are en (English) and zh (Chinese). Say "
            "--lang=en.",
            language));
  }
  const std::string spoken = language.empty() ? OfEnvironment() : language;
  std::map<std::string, std::string> rows;
  for (const auto& [file, text] : EmbeddedFiles()) {
    if (!absl::EndsWith(file, absl::StrCat(".", spoken, ".md"))) continue;
    const absl::StatusOr<Markdown> parsed = ParseSections(file, text);
    if (!parsed.ok()) return parsed.status();
    for (const Section& section : parsed->sections) {
      rows.insert(section.sentences.begin(), section.sentences.end());
    }
  }
  SetSentences(spoken, rows);
  return absl::OkStatus();
}

void SetLanguageOf(int argc, char** argv) {
  std::string language;
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (absl::ConsumePrefix(&argument, "-") &&
        (absl::ConsumePrefix(&argument, "-"), true) &&
        absl::ConsumePrefix(&argument, "lang=")) {
      language = std::string(argument);
    }
  }
  if (!SetLanguage(language).ok()) SetLanguage("").IgnoreError();
}

}  // namespace d2l
