// The output of a run around that of its cells, on stdout: the head of a
// lesson; a cell's text, its program and its question; and, after it has run,
// the verdicts and the conclusion.
//
// For the thread that runs main().

#ifndef D2L_COMMON_LESSON_RUN_PRINTED_H_
#define D2L_COMMON_LESSON_RUN_PRINTED_H_

#include <string>
#include <vector>

#include "common/lesson/cell/cell.h"
#include "common/lesson/text/lesson.h"

namespace d2l {

// A cell of this program, with its lesson.
struct NumberedCell {
  const Lesson* lesson;
  const LessonCell* cell;
  std::string number;  // "2.1"
};

// How much is printed: see LessonOptions.
struct Detail {
  bool program = false;  // the C++ that the cell teaches
  bool code = false;     // and the Python, and where it is measured
  bool verbose = false;
  bool chosen = false;   // only some cells: says what else there is to see
  bool text = true;      // the cell's text, around its results
  bool picture = false;  // of the idea, in characters
  bool predict = true;   // the question
};

// A line across the page.
std::string Rule();

// notes: see Circumstances. Nothing without Detail::text.
void PrintLessonHead(const Lesson& lesson, Size size,
                     const std::vector<std::string>& notes,
                     const Detail& detail);

void PrintCellHead(const NumberedCell& cell, const Detail& detail);

// next: the number of the cell that follows, or "".
void PrintCellResult(const CellResult& result, const Detail& detail,
                     const std::string& next);

}  // namespace d2l

#endif  // D2L_COMMON_LESSON_RUN_PRINTED_H_
