#include "common/lesson/sections.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/console/text.h"

namespace d2l {
namespace {

constexpr absl::string_view kFence = "```";

bool IsWide(absl::string_view character) { return TextColumns(character) == 2; }

// Adds the next line of a paragraph.
void Join(absl::string_view line, std::string* text) {
  std::size_t last = text->size();
  while (last > 0 && (((*text)[--last]) & 0xc0) == 0x80) continue;
  const bool glued = IsWide(absl::string_view(*text).substr(last)) &&
                     IsWide(line.substr(0, Utf8Length(line)));
  absl::StrAppend(
      text, text->empty() || text->back() == '\n' || glued ? "" : " ", line);
}

// "**Predict:** text" or "**预测：** text".
bool TakeLabel(absl::string_view* line, std::string* label) {
  if (!absl::StartsWith(*line, "**")) return false;
  for (const absl::string_view end : {":**", "：**"}) {
    const std::size_t at = line->find(end);
    if (at == absl::string_view::npos) continue;
    *label = std::string(line->substr(2, at - 2));
    *line = absl::StripAsciiWhitespace(line->substr(at + end.size()));
    return true;
  }
  return false;
}

class Parser {
 public:
  Parser(const std::string& file, absl::string_view text)
      : file_(file), lines_(absl::StrSplit(text, '\n')) {}

  absl::StatusOr<Markdown> Parse() {
    for (at_ = 0; at_ < lines_.size(); ++at_) {
      const absl::Status status = TakeLine();
      if (!status.ok()) return status;
    }
    at_ = 0;
    if (result_.title.empty()) return Error("there is no line \"# TITLE\"");
    for (Section& section : result_.sections) {
      for (auto& [label, part] : section.parts) {
        part.text = std::string(absl::StripAsciiWhitespace(part.text));
      }
    }
    result_.head = std::string(absl::StripAsciiWhitespace(result_.head));
    return std::move(result_);
  }

 private:
  absl::Status Error(absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat(file_, ":", at_ + 1, ": ", what));
  }

  absl::Status TakeLine() {
    absl::string_view line = absl::StripTrailingAsciiWhitespace(lines_[at_]);
    if (absl::ConsumePrefix(&line, "# ")) {
      result_.title = std::string(line);
      return absl::OkStatus();
    }
    if (absl::ConsumePrefix(&line, "## ")) {
      Section section;
      const std::pair<absl::string_view, absl::string_view> heading =
          absl::StrSplit(line, absl::MaxSplits(": ", 1));
      section.id = std::string(heading.first);
      section.title = std::string(heading.second);
      section.line = static_cast<int>(at_) + 1;
      result_.sections.push_back(std::move(section));
      label_.clear();
      return absl::OkStatus();
    }
    if (result_.sections.empty()) {
      absl::StrAppend(&result_.head, line, "\n");
      return absl::OkStatus();
    }
    if (absl::StartsWith(line, "### ")) return absl::OkStatus();
    if (absl::ConsumePrefix(&line, kFence)) return TakeCode(line);
    TakeProse(line);
    return absl::OkStatus();
  }

  absl::Status TakeCode(absl::string_view language) {
    std::string& code = result_.sections.back().code[std::string(language)];
    const std::size_t begin = at_++;
    for (; at_ < lines_.size(); ++at_) {
      if (absl::StartsWith(lines_[at_], kFence)) {
        code = std::string(absl::StripSuffix(code, "\n"));
        return absl::OkStatus();
      }
      absl::StrAppend(&code, lines_[at_], "\n");
    }
    at_ = begin;
    return Error("the code that begins here has no end: add a line ```");
  }

  void TakeProse(absl::string_view line) {
    Section& section = result_.sections.back();
    line = absl::StripAsciiWhitespace(line);
    if (TakeLabel(&line, &label_)) in_item_ = false;
    Section::Part& part = section.parts[label_];
    if (line.empty()) {
      in_item_ = false;
      if (!part.text.empty()) Paragraph(&part.text);
    } else if (absl::ConsumePrefix(&line, "- ")) {
      in_item_ = true;
      part.items.push_back(std::string(line));
    } else {
      Join(line, in_item_ ? &part.items.back() : &part.text);
    }
  }

  // Ends the paragraph, if it has not ended.
  static void Paragraph(std::string* text) {
    if (!absl::EndsWith(*text, "\n")) absl::StrAppend(text, "\n\n");
  }

  const std::string& file_;
  const std::vector<absl::string_view> lines_;
  std::size_t at_ = 0;
  Markdown result_;
  std::string label_;
  bool in_item_ = false;
};

}  // namespace

std::string Section::Listed(absl::string_view name) const {
  const auto first = parts.find("");
  if (first == parts.end()) return "";
  for (absl::string_view item : first->second.items) {
    if (absl::ConsumePrefix(&item, name) && absl::ConsumePrefix(&item, ": ")) {
      return std::string(item);
    }
  }
  return "";
}

std::string Section::Text(const std::string& label) const {
  const auto part = parts.find(label);
  return part == parts.end() ? "" : part->second.text;
}

absl::StatusOr<Markdown> ParseSections(const std::string& file,
                                       absl::string_view text) {
  return Parser(file, text).Parse();
}

}  // namespace d2l
