#include "common/lesson/text/lesson.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/source_location.h"

namespace d2l {
namespace {

// Never destroyed; made by the first registration.
std::deque<Lesson>& Registered() {
  static std::deque<Lesson>& lessons = *new std::deque<Lesson>;
  return lessons;
}

// The key is the name of the lesson.cc, and the language.
std::map<std::pair<std::string, std::string>, LessonText>& Texts() {
  static auto& texts =
      *new std::map<std::pair<std::string, std::string>, LessonText>;
  return texts;
}

}  // namespace

bool RegisterLesson(Lesson lesson, SourceLocation at) {
  lesson.file = at.file();
  Registered().push_back(std::move(lesson));
  return true;
}

bool RegisterTexts(const char* file, const char* language, LessonText text) {
  Texts()[{file, language}] = std::move(text);
  return true;
}

absl::Status LoadTexts(const std::string& language) {
  for (Lesson& lesson : Registered()) {
    auto text = Texts().find({lesson.file, language});
    if (text == Texts().end()) text = Texts().find({lesson.file, "en"});
    if (text == Texts().end()) {
      return absl::NotFoundError(
          absl::StrCat(lesson.file,
                       " has no texts in this binary: build it with "
                       "d2l_lesson, beside a lesson.md"));
    }
    lesson.title = text->second.title;
    lesson.section = text->second.section;
    const std::vector<CellText>& said = text->second.cells;
    for (std::size_t i = 0; i < std::max(said.size(), lesson.cells.size());
         ++i) {
      const std::string listed =
          i < lesson.cells.size() ? lesson.cells[i].id : "no more cells";
      const std::string section = i < said.size() ? said[i].id : "no more";
      if (listed != section) {
        return absl::InvalidArgumentError(absl::StrCat(
            lesson.file, " lists ", listed, " where its lesson.md has ",
            section, "; both need the same cells in the same order"));
      }
      lesson.cells[i].text = said[i];
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
