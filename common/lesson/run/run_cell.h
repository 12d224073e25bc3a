// Runs the code of one cell.
//
// For the thread that runs main().

#ifndef D2L_COMMON_LESSON_RUN_RUN_CELL_H_
#define D2L_COMMON_LESSON_RUN_RUN_CELL_H_

#include <string>

#include "common/lesson/cell/cell.h"

namespace d2l {

// Runs `code` on `cell`, waits for all devices and draws the figures. Keeps the
// output, and the time it took, in *result. Meanwhile it reports the time on
// stderr, if that is a terminal: "2.4 (cell 4 of 8): 12 s ...".
//
// Returns false if an error was thrown: it is printed on stderr and is in
// *result, and its effects on the devices are discarded.
//
// name: "2.4 (cell 4 of 8)".
bool RunCell(const std::string& name, void (*code)(Cell& cell), Cell& cell,
             CellResult* result);

}  // namespace d2l

#endif  // D2L_COMMON_LESSON_RUN_RUN_CELL_H_
