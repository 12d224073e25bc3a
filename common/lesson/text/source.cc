#include "common/lesson/text/source.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace d2l {
namespace {

constexpr char kMark[] = "// %%";

std::map<std::string, const char*>& Sources() {
  static auto& sources = *new std::map<std::string, const char*>;
  return sources;
}

bool IsMark(absl::string_view line) {
  return absl::StartsWith(absl::StripLeadingAsciiWhitespace(line), kMark);
}

bool IsMarkOf(absl::string_view line, const std::string& id, CodePart part) {
  absl::string_view ids = absl::StripAsciiWhitespace(line);
  if (!absl::ConsumePrefix(&ids, kMark)) return false;
  const bool measured = absl::ConsumeSuffix(&ids, ", measured");
  if (measured != (part == CodePart::kMeasured)) return false;
  for (const absl::string_view marked : absl::StrSplit(ids, ',')) {
    if (!id.empty() && absl::StripAsciiWhitespace(marked) == id) return true;
  }
  return false;
}

bool IsBlank(absl::string_view line) {
  return absl::StripAsciiWhitespace(line).empty();
}

// Up to the last slash.
std::string Directory(const std::string& file) {
  return file.substr(0, file.rfind('/') + 1);
}

std::size_t Indentation(absl::string_view line) {
  return line.size() - absl::StripLeadingAsciiWhitespace(line).size();
}

}  // namespace

absl::StatusOr<SourceExcerpt> ExtractCell(const std::string& file_text,
                                          const std::string& id,
                                          CodePart part) {
  const std::vector<absl::string_view> lines = absl::StrSplit(file_text, '\n');
  SourceExcerpt excerpt;
  bool found = false;
  for (std::size_t mark = 0; mark < lines.size(); ++mark) {
    if (!IsMarkOf(lines[mark], id, part)) continue;
    std::size_t begin = mark + 1;
    std::size_t end = begin;
    while (end < lines.size() && !IsMark(lines[end])) ++end;
    while (begin < end && IsBlank(lines[begin])) ++begin;
    while (begin < end && IsBlank(lines[end - 1])) --end;

    std::size_t indentation = std::string::npos;
    for (std::size_t i = begin; i < end; ++i) {
      if (IsBlank(lines[i])) continue;
      indentation = std::min(indentation, Indentation(lines[i]));
    }
    if (!found) excerpt.line = static_cast<int>(begin) + 1;
    if (!excerpt.text.empty()) excerpt.text += "\n";
    for (std::size_t i = begin; i < end; ++i) {
      const absl::string_view line = lines[i];
      absl::StrAppend(&excerpt.text,
                      line.substr(std::min(indentation, line.size())), "\n");
    }
    found = true;
  }
  if (found) return excerpt;
  return absl::NotFoundError(
      absl::StrCat("there is no line \"", kMark, " ", id,
                   part == CodePart::kMeasured ? ", measured" : "", "\""));
}

bool RegisterSource(const char* file, const char* text) {
  Sources()[file] = text;
  return true;
}

const char* EmbeddedFile(const std::string& file) {
  const auto found = Sources().find(file);
  return found == Sources().end() ? nullptr : found->second;
}

absl::StatusOr<SourceExcerpt> CellSource(const std::string& file,
                                         const std::string& id, CodePart part) {
  const char* text = EmbeddedFile(file);
  if (text == nullptr) {
    return absl::NotFoundError(absl::StrCat(
        file, " is not embedded in this binary: build it with d2l_lesson"));
  }
  const std::string directory = Directory(file);
  for (const auto& [name, embedded] : Sources()) {
    if (!absl::StartsWith(name, directory)) continue;
    absl::StatusOr<SourceExcerpt> excerpt = ExtractCell(embedded, id, part);
    if (!excerpt.ok()) continue;
    excerpt->file = name.c_str();
    return excerpt;
  }
  return absl::NotFoundError(absl::StrCat(
      file, ": ", std::string(ExtractCell(text, id, part).status().message())));
}

}  // namespace d2l
