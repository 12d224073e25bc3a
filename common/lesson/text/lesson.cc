#include "common/lesson/text/lesson.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/console/language.h"

namespace d2l {
namespace {

// Never destroyed; made by the first registration.
std::deque<Lesson>& Registered() {
  static std::deque<Lesson>& lessons = *new std::deque<Lesson>;
  return lessons;
}

// The code of cells, by id.
std::map<std::string, void (*)(Cell& cell)>& Code() {
  static auto& code = *new std::map<std::string, void (*)(Cell & cell)>;
  return code;
}

}  // namespace

std::string PrintedBy(const CellText& text) {
  return absl::StartsWith(text.id, "d2l/") ? Lead("d2l:") : Lead("notebook:");
}

bool RegisterCell(const char* id, void (*run)(Cell& cell)) {
  Code()[id] = run;
  return true;
}

bool RegisterLesson(Lesson lesson) {
  Registered().push_back(std::move(lesson));
  return true;
}

absl::Status LoadTexts(const std::string& language) {
  std::set<std::string> missing;
  for (const auto& [id, run] : Code()) missing.insert(id);
  for (Lesson& lesson : Registered()) {
    auto text = lesson.texts.find(language);
    if (text == lesson.texts.end()) text = lesson.texts.find("en");
    lesson.title = text->second.title;
    lesson.section = text->second.section;
    lesson.cells.clear();
    for (const CellText& cell : text->second.cells) {
      const auto code = Code().find(cell.id);
      if (code == Code().end()) {
        return absl::NotFoundError(
            absl::StrCat("The lesson ", lesson.name, " has the text of ",
                         cell.id, ", and no code: add D2L_CELL(\"", cell.id,
                         "\", Function); to a .cc of it that BUILD names"));
      }
      lesson.cells.push_back({cell.id, code->second, cell});
      missing.erase(cell.id);
    }
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat(
      "D2L_CELL(\"", *missing.begin(), "\", …) has no text: add \"## ",
      *missing.begin(), ": TITLE\" to the chapter's lesson.md"));
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
