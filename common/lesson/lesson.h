// Lesson: a notebook of the course, in C++. A lesson.cc reads from top to
// bottom: for each cell its text, then its code, and at the end the list.
//
//   constexpr CellText kIn4 = {
//       .id = "004/In4",
//       .title = "The true cost",
//       .section = "d2l 13.2.1",
//       .context = "The same, and then we wait.",
//       .python = R"py(with Benchmark(): …)py",
//       .course_printed = "Done: 0.0020 sec",
//       .predict = "By how much does the time grow?",
//       .learn = "Synchronize before you read the clock.",
//   };
//
//   // %% 004/In4
//   void In4(Cell& cell) { … }
//   // %%
//
//   [[maybe_unused]] const bool registered = RegisterLesson(
//       {2, "async_computation", "Asynchronous computation", "D2L 13.2 …", 1,
//        {{kIn4, In4}}});
//
// The cell is number 2.1: the lesson's number and its place in the list. It
// prints as
//
//   2.1  The true cost                                    d2l 13.2.1 [004/In4]
//
//   The same, and then we wait.
//
//   Predict: By how much does the time grow?
//
//   Done: 0.1702 sec                               what its code prints
//
//   HOLDS  …                                       its claims
//
//   You learn: Synchronize before you read the clock.
//
// With --code it prints the Python and what stands between two "// %%" lines
// (Jupytext's mark of a cell), as it stands: the macro d2l_lesson (lesson.bzl)
// embeds the file in the binary. Helper code that a reader needs is marked with
// the id as well, "// %% 004/In4", or with several, "// %% 004/In2, 004/In4";
// of a helper in another file the code names the file in a comment. What the
// code may do is in cell.h.
//
// The texts are string literals; GCC and Clang take designated initializers, of
// C++20, in C++17 as well. Lessons register while the program is loaded
// (static initialisation), on one thread, and live as long as the process.

#ifndef D2L_COMMON_LESSON_LESSON_H_
#define D2L_COMMON_LESSON_LESSON_H_

#include <string>
#include <vector>

#include "common/base/source_location.h"

namespace d2l {

class Cell;

// In this order. What is left out is not printed.
struct CellText {
  const char* id = "";              // SOURCE/CELL, "004/In4"
  const char* title = "";           // "The true cost"
  const char* also[6] = {};         // the same cell in the other sources
  const char* section = "";         // "d2l 13.2.1"
  const char* exercises = "";       // of it that the cell answers: "1, 3"
  const char* context = "";         // what it does, in two to five sentences
  const char* python = "";          // the course's cell
  const char* course_printed = "";  // what the course shows below it
  const char* predict = "";         // a question, before the cell runs
  const char* learn = "";           // one or two sentences, after it ran
};

struct LessonCell {
  CellText text;
  void (*run)(Cell& cell);

  std::vector<std::string> Also() const;
  // True for the cell's id and its `also` ids.
  bool HasId(const std::string& id) const;
};

struct Lesson {
  int number;           // in the course; cells are 2.1, 2.2, …
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

// Every lesson linked into this program, by number.
std::vector<const Lesson*> Lessons();

}  // namespace d2l

#endif  // D2L_COMMON_LESSON_LESSON_H_
