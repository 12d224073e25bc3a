#include "common/lesson/lesson.h"

#include <algorithm>
#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace d2l {
namespace {

// Never destroyed; made by the first registration.
std::deque<Lesson>& Registered() {
  static std::deque<Lesson>& lessons = *new std::deque<Lesson>;
  return lessons;
}

}  // namespace

std::vector<std::string> LessonCell::Also() const {
  std::vector<std::string> ids;
  for (const char* id : text.also) {
    if (id != nullptr) ids.push_back(id);
  }
  return ids;
}

bool LessonCell::HasId(const std::string& id) const {
  const std::vector<std::string> also = Also();
  return id == text.id || std::find(also.begin(), also.end(), id) != also.end();
}

bool RegisterLesson(Lesson lesson, SourceLocation at) {
  lesson.file = at.file();
  Registered().push_back(std::move(lesson));
  return true;
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
