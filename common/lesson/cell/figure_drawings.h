// Draws a cell's measurements, from the figures that it reported.
//
//   for (const Drawing& drawing : DrawFigures(figures, asked_for)) {
//     cell.ShowIfVerbose(drawing);
//   }
//
// Figures of a sweep (Cell::At) are curves, one for each label. Others are
// bars, a drawing for each unit, if they have one. Enqueueing and the work
// share a bar. A single figure is drawn only if it has these two parts.
//
// A pure function.

#ifndef D2L_COMMON_LESSON_CELL_FIGURE_DRAWINGS_H_
#define D2L_COMMON_LESSON_CELL_FIGURE_DRAWINGS_H_

#include <vector>

#include "common/drawing/drawing.h"
#include "common/lesson/cell/judge.h"

namespace d2l {

std::vector<Drawing> DrawFigures(const std::vector<Figure>& figures,
                                 const std::vector<AskedFor>& asked_for);

}  // namespace d2l

#endif  // D2L_COMMON_LESSON_CELL_FIGURE_DRAWINGS_H_
