// The results of a lesson, as text and as JSON.
//
//   std::cout << ClaimsText(result, false) << FiguresText(result);
//   WriteAtomically("out.json", LessonJson(lesson));
//
// JSON of a lesson:
//   {"lesson", "number", "title", "section", "lang", "size", "notes": [],
//    "devices": [{"name", "kind", "description"}],
//    "cells": [{"id", "number", "also": [], "title", "section", "exercises",
//    "context", "picture", "python", "course_printed", "predict", "choices":
//    [], "right", "predicted", "learn", "source": {"file", "line", "text"},
//    "measured": {"file", "line", "text"}, "output", "error", "seconds",
//    "figures": [{"name", "label", "unit", "median", "low", "high"}],
//    "claims": [{"text", "verdict", "meaning", "number", "evidence",
//    "reason", "because"}], "not_asked",
//    "drawings": [{"name", "label", "file", "text"}], "load": {"cores",
//    "of"}}]}
// and of the course: {"lessons": [ … ]}. Times are in seconds, unit "s". The
// text of a claim and the names of figures and drawings are the same in every
// run and every language, with "{}" for the claim's number; its meaning has the
// number. Its reason begins with the judge's; the cell's, "because", may stand
// for itself. Not_asked counts claims that this machine cannot show. Meaning
// and label are in the run's language ("lang"). The output
// is the output of the cell's code, including printed drawings. The error is ""
// unless the cell threw one. The file of a drawing is "" if none was written,
// and a .dot file if Graphviz's dot failed: its text is there even if it was
// not printed. The load is null if it is not known. Source is the taught
// program, measured the code that measures it, empty if source does. Right is
// the number of the choice that is right on every machine, from 1, predicted
// that of the learner's; 0 for none.
//
// Pure functions; values own what they hold.

#ifndef D2L_COMMON_LESSON_RUN_REPORT_H_
#define D2L_COMMON_LESSON_RUN_REPORT_H_

#include <string>
#include <vector>

#include "common/device/backend.h"
#include "common/device/device_table.h"
#include "common/lesson/cell/cell.h"

namespace d2l {

struct LessonResult {
  std::string lesson;
  std::vector<DeviceInfo> devices;
  std::vector<CellResult> cells;
  std::vector<std::string> notes;  // see Circumstances
  // See Lesson and LessonOptions.
  int number = 0;
  std::string title = "";
  std::string section = "";
  Size size = Size::kCourse;
};

std::string LessonJson(const LessonResult& lesson);
std::string CourseJson(const std::vector<LessonResult>& lessons);

// What other programs used while the cells ran that left a claim INCONCLUSIVE
// because of them, and how to run these again. "" if there are none. counted:
// whether the kernel says how long threads wait (undisturbed_timer.h); if not,
// it says that, beside other programs.
std::string LoadText(const std::vector<LessonResult>& lessons, int cores_needed,
                     bool counted);

// The figures, a line each: median and interval; "" if there are none.
std::string FiguresText(const CellResult& cell);

// The first two claims, or with `verbose` all: the verdict, its meaning, and,
// unless it HOLDS, the reason. The evidence stands with it if `verbose`, or if
// it leaves the verdict close. "" if there are none.
std::string ClaimsText(const CellResult& cell, bool verbose);

// "You predicted 3: right."; or the prediction, and the right choice if that is
// known. "" if there was no prediction.
std::string PredictionText(const CellResult& cell);

// The table at the end of the course, a line of 80 columns for each claim: the
// cell's number, the claim, what the notebook or the book printed, the figure
// of this run, and the verdict; long texts are cut. "" if there are no claims.
std::string CourseText(const std::vector<LessonResult>& lessons);

// The lines, joined by "; ".
std::string OneLine(const std::string& text);

// "3 cells, 5 claims: 4 HOLDS, 0 FAILS, 1 INCONCLUSIVE."
std::string CountsText(const std::vector<LessonResult>& lessons);

// Sentences that may explain a verdict: the differences of this run or this
// machine. profiled: --trace or --html is given. cores: of the machine.
std::vector<std::string> Circumstances(bool launch_blocking, bool allow_tf32,
                                       bool profiled,
                                       const StreamOptions& stream_options,
                                       const std::vector<DeviceInfo>& devices,
                                       int cores);

// The devices on which a lesson that uses `wanted` GPUs runs if there are
// fewer; "" if there are enough.
std::string DevicesNote(int wanted, const std::vector<DeviceInfo>& devices,
                        const DeviceInventory& cuda);

}  // namespace d2l

#endif  // D2L_COMMON_LESSON_RUN_REPORT_H_
