#include "common/lesson/lesson.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/source_location.h"
#include "common/lesson/sections.h"
#include "common/lesson/source.h"

namespace d2l {
namespace {

// Never destroyed; made by the first registration.
std::deque<Lesson>& Registered() {
  static std::deque<Lesson>& lessons = *new std::deque<Lesson>;
  return lessons;
}

// Replaces what the section has.
absl::Status FillIn(const Section& section, CellText* text) {
  const auto set = [](std::string value, std::string* member) {
    if (!value.empty()) *member = std::move(value);
  };
  text->id = section.id;
  set(section.title, &text->title);
  set(section.Listed("Book"), &text->section);
  set(section.Listed("Exercises"), &text->exercises);
  if (const std::string also = section.Listed("Also"); !also.empty()) {
    text->also = absl::StrSplit(also, ", ");
  }
  for (const auto& [language, code] : section.code) {
    if (language != "python" && language != "text") {
      return absl::InvalidArgumentError(absl::StrCat(
          "code in \"", language, "\"; there are python and text"));
    }
    set(code, language == "python" ? &text->python : &text->course_printed);
  }
  for (const auto& [label, part] : section.parts) {
    if (label.empty()) {
      set(part.text, &text->context);
    } else if (label == "Predict" || label == "预测") {
      set(part.text, &text->predict);
      if (!part.items.empty()) text->choices = part.items;
      for (std::size_t i = 0; i < text->choices.size(); ++i) {
        absl::string_view choice = text->choices[i];
        if (!absl::ConsumePrefix(&choice, "[x] ")) continue;
        text->choices[i] = std::string(choice);
        text->right = static_cast<int>(i) + 1;
      }
      if (text->right > static_cast<int>(text->choices.size())) {
        return absl::InvalidArgumentError("fewer choices than in English");
      }
    } else if (label == "You learn" || label == "你会学到") {
      set(part.text, &text->learn);
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          "a part \"", label, "\"; there are Predict and You learn"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool LessonCell::HasId(const std::string& id) const {
  return id == this->id ||
         std::find(text.also.begin(), text.also.end(), id) != text.also.end();
}

bool RegisterLesson(Lesson lesson, SourceLocation at) {
  lesson.file = at.file();
  Registered().push_back(std::move(lesson));
  return true;
}

absl::Status FillInTexts(const std::string& file, absl::string_view markdown,
                         Lesson* lesson) {
  const absl::StatusOr<Markdown> parsed = ParseSections(file, markdown);
  if (!parsed.ok()) return parsed.status();
  lesson->title = parsed->title;
  lesson->section = parsed->head;
  auto cell = lesson->cells.begin();
  for (const Section& section : parsed->sections) {
    const auto error = [&](absl::string_view what) {
      return absl::InvalidArgumentError(absl::StrCat(
          file, ":", section.line, ": ", section.id, " has ", what));
    };
    cell = std::find_if(
        cell, lesson->cells.end(),
        [&](const LessonCell& other) { return other.id == section.id; });
    if (cell == lesson->cells.end()) {
      return error(
          "no cell in the lesson's list, or stands behind a later one");
    }
    const absl::Status filled = FillIn(section, &cell->text);
    if (!filled.ok()) return error(std::string(filled.message()));
    ++cell;
  }
  return absl::OkStatus();
}

absl::Status LoadTexts(const std::string& language) {
  for (Lesson& lesson : Registered()) {
    const absl::string_view stem = absl::StripSuffix(lesson.file, ".cc");
    std::vector<std::string> files = {absl::StrCat(stem, ".md")};
    if (language != "en")
      files.push_back(absl::StrCat(stem, ".", language, ".md"));
    for (const std::string& file : files) {
      const char* markdown = EmbeddedFile(file);
      if (markdown == nullptr) continue;
      const absl::Status filled = FillInTexts(file, markdown, &lesson);
      if (!filled.ok()) return filled;
    }
    for (const LessonCell& cell : lesson.cells) {
      if (!cell.text.title.empty()) continue;
      return absl::NotFoundError(absl::StrCat(files[0], " has no section \"## ",
                                              cell.id, ": TITLE\""));
    }
  }
  return absl::OkStatus();
}

std::vector<const Lesson*> Lessons() {
  std::vector<const Lesson*> lessons;
  for (const Lesson& lesson : Registered()) lessons.push_back(&lesson);
  // The order of registration depends on the linker.
  std::sort(
      lessons.begin(), lessons.end(),
      [](const Lesson* a, const Lesson* b) { return a->number < b->number; });
  return lessons;
}

}  // namespace d2l
