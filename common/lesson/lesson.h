// Lesson: a notebook of the course, in C++. A lesson.cc reads from top to
// bottom: for each cell its text, then its code, and at the end the list.
//
//   constexpr CellText kIn4 = {"004/In4", {}, "The same, and then we wait.",
//                              R"(with Benchmark(): …)",
//                              "Done: 0.0020 sec"};
//   // %% 004/In4
//   void In4(Cell& cell) { … }
//   // %%
//
//   [[maybe_unused]] const bool registered = RegisterLesson(
//       {"async_computation", "Asynchronous computation", "D2L 13.2 …", 1,
//        {{kIn4, In4}}});
//
// What stands between the two "// %%" lines (Jupytext's mark of a cell) is
// printed, as it stands, when the cell runs: the macro d2l_lesson (lesson.bzl)
// embeds the file in the binary. What the code may do is in cell.h.
//
// The texts are string literals. Lessons register while the program is loaded
// (static initialisation), on one thread, and live as long as the process.

#ifndef D2L_COMMON_LESSON_LESSON_H_
#define D2L_COMMON_LESSON_LESSON_H_

#include <string>
#include <vector>

#include "common/base/source_location.h"

namespace d2l {

class Cell;

struct CellText {
  const char* id;              // SOURCE/CELL, "004/In4"
  const char* also[6];         // the same cell in the other sources; {} if none
  const char* context;         // one or two sentences
  const char* python;          // the course's cell
  const char* course_printed;  // what the course shows below it
};

struct LessonCell {
  CellText text;
  void (*run)(Cell& cell);

  std::vector<std::string> Also() const;
  // True for the cell's id and its `also` ids.
  bool HasId(const std::string& id) const;
};

struct Lesson {
  const char* name;     // the chapter's directory: "async_computation"
  const char* title;    // "Asynchronous computation"
  const char* section;  // of the book, with its address
  int devices;          // how many the lesson uses
  std::vector<LessonCell> cells;
  // The lesson.cc, as the compiler was given it; RegisterLesson fills it in.
  const char* file = "";
};

// Returns true. Call it without `at`, in the lesson.cc itself.
bool RegisterLesson(Lesson lesson,
                    SourceLocation at = SourceLocation::Current());

// Every lesson linked into this program, by name.
std::vector<const Lesson*> Lessons();

}  // namespace d2l

#endif  // D2L_COMMON_LESSON_LESSON_H_
