// The results of a lesson, as text and as JSON.
//
//   std::cout << FiguresText(result) << ClaimsText(result);
//   WriteAtomically("out.json", LessonJson(lesson));
//
// JSON of a lesson:
//   {"lesson", "notes": [], "devices": [{"name", "kind"}],
//    "cells": [{"id", "also": [],
//    "figures": [{"name", "unit", "median", "low", "high"}],
//    "claims": [{"text", "verdict", "reason"}],
//    "drawings": [{"name", "file"}]}]}
// and of the course: {"lessons": [ … ]}. Times are in seconds, unit "s". The
// file of a drawing is "" if none was written.
//
// Pure functions; values own what they hold.

#ifndef D2L_COMMON_LESSON_REPORT_H_
#define D2L_COMMON_LESSON_REPORT_H_

#include <string>
#include <vector>

#include "common/base/text.h"
#include "common/device/backend.h"
#include "common/device/device_table.h"
#include "common/lesson/cell.h"

namespace d2l {

struct LessonResult {
  std::string lesson;
  std::vector<DeviceInfo> devices;
  std::vector<CellResult> cells;
  std::vector<std::string> notes;  // see Circumstances
};

std::string LessonJson(const LessonResult& lesson);
std::string CourseJson(const std::vector<LessonResult>& lessons);

// The figures as a table, with columns for enqueue and completion; "" if there
// are none.
std::string FiguresText(const CellResult& cell);

// Each claim with its verdict and the reason; "" if there are none.
std::string ClaimsText(const CellResult& cell);

// All claims: the cell, the claim, what the course printed, what was compared
// here (two medians), the verdict and the kind of device; a column each, or,
// below 76 columns, a line each.
std::string VerdictTable(const std::vector<LessonResult>& lessons,
                         int width = TextWidth());

// "3 cells, 5 claims: 4 HOLDS, 0 FAILS, 1 INCONCLUSIVE."
std::string CountsText(const std::vector<LessonResult>& lessons);

// What may explain a verdict: sentences on what this run or this machine does
// differently. profiled: --trace or --html is given. cores: of the machine.
std::vector<std::string> Circumstances(bool launch_blocking, bool allow_tf32,
                                       bool profiled,
                                       const StreamOptions& stream_options,
                                       const std::vector<DeviceInfo>& devices,
                                       int cores);

// What a lesson that uses `wanted` GPUs runs on instead if there are fewer;
// "" if there are enough.
std::string DevicesNote(int wanted, const std::vector<DeviceInfo>& devices,
                        const DeviceInventory& cuda);

}  // namespace d2l

#endif  // D2L_COMMON_LESSON_REPORT_H_
