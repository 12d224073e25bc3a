// Lesson: a notebook, in C++. Its text is Markdown, a section for
// each cell, in the lesson's order (lesson.md):
//
//   # Asynchronous computation
//
//   Dive into Deep Learning, section 13.2
//
//   ## 004/In4: The true cost
//
//   - Book: d2l 13.2.1
//   - Does: the same, then Synchronize
//   - Timed: yes
//   - Claims: 2
//
//   The same, and then we wait.
//
//   ```picture
//   +-----------+  enqueues   +==========+
//   | front end |------------>|  device  |
//   +-----------+             +==========+
//   ```
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
// A picture is what a terminal shows; tools/book/picture.py, which lists its
// characters, draws an SVG of it for the pages of //:book. The translation has
// a picture of its own. It has at most 12 lines of 80 columns.
//
// The list at its head has these facts and no others; chapters/README.md says
// when a cell needs which:
//
//   Group      the heading of the cells from this one on, in //:book
//   Also       the same cell's ids in the other notebooks
//   Book       what it is about: d2l 13.2.1, or notebook 000
//   Exercises  the book's exercises that it answers
//   Does       what it does, in one line of the README's table
//   Defines    the words of the glossary that its text defines: texts_test
//   Timed      yes, or host if no device works: it has benchmarks
//   Claims     how many it judges
//   Not drawn  why it has no drawing
//   Rows       which figure stands beside which time that the Python printed
//
// The code of a cell is in one .cc beside the text, the program and what
// measures it, with the benchmarks (benchmark.h) if it is timed:
//
//   // %% 004/In4
//   void TenProducts(Device device) { … }
//   // %% 004/In4, measured
//   void In4(Cell& cell) { … }
//   // %%
//   D2L_CELL("004/In4", In4);
//
// The cell is number 2.1: the chapter's place in chapters.bzl, and the cell's
// in lesson.md. It is printed as
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
// A lesson on a terminal that runs chosen cells (--cell) shows the taught
// program before the question: the code between two "// %%" lines (Jupytext's
// mark of a cell), unchanged, from the files that the macro d2l_lesson
// (lesson.bzl) embeds in the binary. With --code it shows the Python, too,
// wherever it runs, and with --code --verbose the code that measures, which is
// marked ", measured". The taught program is complete, in at most 40 lines, or
// several such programs in a folder of their own. Helper code that a reader
// needs is marked with the id as well, or with several, "// %% 004/In2,
// 004/In4"; a comment names the file of a helper that is elsewhere. cell.h says
// what the code may do.
//
// lesson.zh.md is the Chinese translation: titles, texts and questions. What it
// lacks is shown in English. Its choices have the same order, and no mark. Of
// the facts it has "- 内容：", in place of Does, and "- 组：", of Group.
//
// Lessons and cells register while the program is loaded (static
// initialisation), on one thread, and live as long as the process. LoadTexts is
// called before they run.

#ifndef D2L_COMMON_LESSON_TEXT_LESSON_H_
#define D2L_COMMON_LESSON_TEXT_LESSON_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"

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
  std::string picture = "";               // of the idea, in characters
  std::string python = "";                // the notebook's cell
  std::string course_printed = "";        // its output there: PrintedBy
  std::string predict = "";               // a question, before the cell runs
  std::vector<std::string> choices = {};  // answers to it
  int right = 0;  // the one right on every machine, from 1; 0: it depends
  std::string learn = "";  // one or two sentences, afterwards
};

// What stands before course_printed: "notebook: ", or "d2l: " for a cell of the
// book, in the language of the run.
std::string PrintedBy(const CellText& text);

// The content of a lesson.md, or of it with a lesson.zh.md.
struct LessonText {
  std::string title;    // "Asynchronous computation"
  std::string section;  // of the book, with its address
  std::vector<CellText> cells;
};

struct LessonCell {
  std::string id;
  void (*run)(Cell& cell);
  CellText text;
};

struct Lesson {
  int number;        // in the course; cells are 2.1, 2.2, …
  const char* name;  // the chapter's directory: "async_computation"
  int devices;       // the number of devices that the lesson uses
  const char* file;  // one of its sources
  // By language; "en" is there.
  std::map<std::string, LessonText> texts;
  // LoadTexts fills these in.
  std::vector<LessonCell> cells = {};
  std::string title = "";
  std::string section = "";
};

// Says which function is a cell's code. For namespace scope, below the
// function.
#define D2L_CELL(id, function)                                \
  [[maybe_unused]] static const bool function##IsRegistered = \
      ::d2l::RegisterCell(id, function)

// For D2L_CELL. Returns true.
bool RegisterCell(const char* id, void (*run)(Cell& cell));

// For embed_lesson.py. Returns true.
bool RegisterLesson(Lesson lesson);

// Fills in every lesson's cells, with texts in that language, or in English if
// there are none. Each section of a lesson.md must have its D2L_CELL, and each
// D2L_CELL its section.
absl::Status LoadTexts(const std::string& language);

// Every lesson linked into this program, by number.
std::vector<const Lesson*> Lessons();

}  // namespace d2l

#endif  // D2L_COMMON_LESSON_TEXT_LESSON_H_
