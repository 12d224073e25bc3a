// Lesson: a notebook of the course, in C++. Its text is Markdown, a section for
// each cell, in the lesson's order (lesson.md):
//
//   # Asynchronous computation
//
//   Dive into Deep Learning, section 13.2
//
//   ## 004/In4: The true cost
//
//   - Book: d2l 13.2.1
//
//   The same, and then we wait.
//
//   ```python
//   with Benchmark(): …
//   ```
//
//   ```text
//   Done: 0.0020 sec
//   ```
//
//   **Predict:** Which time grows?
//
//   - the work's
//   - [x] the clock's
//
//   **You learn:** Synchronize before you read the clock.
//
// A section has these constructs and no others. The lines of a paragraph are
// joined by spaces, or by nothing between two Chinese characters; "*" is a
// star, not markup. The build reads the file (embed_lesson.py), and fails with
// file and line if it cannot.
//
// Its code is the lesson.cc beside it, which ends with the list of cells:
//
//   // %% 004/In4
//   void TenProducts(Device device) { … }
//   // %% 004/In4, measured
//   void In4(Cell& cell) { … }
//   // %%
//
//   [[maybe_unused]] const bool registered =
//       RegisterLesson({2, "async_computation", 1, {{"004/In4", In4}}});
//
// The cell is number 2.1: the lesson's number and its place in the list. It is
// printed as
//
//   2.1  The true cost                                    d2l 13.2.1 [004/In4]
//
//   The same, and then we wait.
//
//   Predict: Which time grows?
//
//   Done: 0.1702 sec                               what its code prints
//
//   HOLDS  …                                       its claims
//
//   You learn: Synchronize before you read the clock.
//
// "[x]" marks the choice that is right on every machine. A lesson on a terminal
// lists the choices, waits for one, and repeats it below the verdicts.
//
// With --code it prints the Python and the code between two "// %%" lines
// (Jupytext's mark of a cell), unchanged: the macro d2l_lesson (lesson.bzl)
// embeds the files in the binary. That code is the taught program, complete, in
// at most 40 lines, or several such programs in a folder of their own. The code
// that measures it is marked ", measured", and shown with --code --verbose.
// Helper code that a reader needs is marked with the id as well, or with
// several, "// %% 004/In2, 004/In4"; a comment names the file of a helper that
// is elsewhere. cell.h says what the code may do.
//
// lesson.zh.md is the Chinese translation: titles, texts and questions. What it
// lacks is shown in English. Its choices have the same order, and no mark.
//
// Lessons register while the program is loaded (static initialisation), on one
// thread, and live as long as the process. LoadTexts is called before they run.

#ifndef D2L_COMMON_LESSON_TEXT_LESSON_H_
#define D2L_COMMON_LESSON_TEXT_LESSON_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/source_location.h"

namespace d2l {

class Cell;

// A section of lesson.md. Empty parts are not printed.
struct CellText {
  std::string id;                         // SOURCE/CELL, "004/In4"
  std::string title;                      // "The true cost"
  std::vector<std::string> also = {};     // the same cell in the other sources
  std::string section = "";               // "d2l 13.2.1"
  std::string exercises = "";             // those answered here: "1, 3"
  std::string context = "";               // in two to five sentences
  std::string python = "";                // the course's cell
  std::string course_printed = "";        // the course's output of it
  std::string predict = "";               // a question, before the cell runs
  std::vector<std::string> choices = {};  // answers to it
  int right = 0;  // the one right on every machine, from 1; 0: it depends
  std::string learn = "";  // one or two sentences, afterwards
};

// The content of a lesson.md, or of it with a lesson.zh.md.
struct LessonText {
  std::string title;    // "Asynchronous computation"
  std::string section;  // of the book, with its address
  std::vector<CellText> cells;
};

struct LessonCell {
  std::string id;
  void (*run)(Cell& cell);
  CellText text = {};  // LoadTexts fills it in
};

struct Lesson {
  int number;        // in the course; cells are 2.1, 2.2, …
  const char* name;  // the chapter's directory: "async_computation"
  int devices;       // the number of devices that the lesson uses
  std::vector<LessonCell> cells;
  // The compiler's name of the lesson.cc; RegisterLesson fills it in.
  const char* file = "";
  // LoadTexts fills these in.
  std::string title = "";
  std::string section = "";
};

// Returns true. Call it without `at`, in the lesson.cc itself.
bool RegisterLesson(Lesson lesson,
                    SourceLocation at = SourceLocation::Current());

// For the lesson.cc of that name. embed_lesson.py calls it. Returns true.
bool RegisterTexts(const char* file, const char* language, LessonText text);

// Fills in every lesson's texts in that language, or in English if there are
// none. They must have the lesson's cells, in the same order.
absl::Status LoadTexts(const std::string& language);

// Every lesson linked into this program, by number.
std::vector<const Lesson*> Lessons();

}  // namespace d2l

#endif  // D2L_COMMON_LESSON_TEXT_LESSON_H_
