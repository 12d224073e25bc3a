#include <gtest/gtest.h>

#include "common/lesson/testing/lesson_testing.h"

namespace d2l {
namespace {

const TestedLesson& Tested() {
  static const auto& lesson = *new TestedLesson(ListedLesson("tiny"));
  return lesson;
}

TEST(Lesson, ResultsAreRight) {
  for (const char* devices : {"--devices=cpu:0", "--devices=cpu:0,cpu:1"}) {
    const LessonRun& run = RunLesson(Tested(), {devices});
    ExpectRightResults(run);
    ExpectCellsAsListed(Tested(), run);
    ExpectEightyColumns(run);
    ExpectShortCells(run);
  }
}

TEST(Lesson, ShowsItsCode) { ExpectSourcePrinted(Tested()); }

TEST(Benchmarks, MirrorTheCells) { ExpectBenchmarksMirrorCells(Tested()); }

}  // namespace
}  // namespace d2l
