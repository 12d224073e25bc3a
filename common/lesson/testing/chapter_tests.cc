// The tests of every chapter: its lesson run as a program, with the flags that
// its BUILD names, and its benchmarks. No test checks a speed.

#include <gtest/gtest.h>

#include "common/lesson/testing/lesson_testing.h"

namespace d2l {
namespace {

TEST(Chapter, ResultsAreRight) {
  for (const LessonRun* run : LessonRuns()) {
    ExpectRightResults(*run);
    ExpectCellsAsListed(Tested(), *run);
    ExpectEightyColumns(*run);
    ExpectShortCells(*run);
    ExpectReasonsBorneOut(*run);
  }
}

TEST(Chapter, ShowsItsCode) { ExpectSourcePrinted(Tested()); }

TEST(Chapter, RunsACellByAnyOfItsIds) {
  for (const TestedCell& cell : Tested().cells) {
    if (cell.also.empty()) continue;
    ExpectOneCellByAnyId(Tested(), cell);
    return;
  }
}

TEST(Chapter, BenchmarksMirrorTheCells) {
  ExpectBenchmarksMirrorCells(Tested());
}

}  // namespace
}  // namespace d2l
