// For tests: runs a chapter's lesson and benchmarks from outside.
//
//   TEST(Lesson, DrawsEachProgram) {
//     const LessonRun& run = RunLesson(Tested(), {"--devices=cpu:0,cpu:1"});
//     EXPECT_THAT(run.output, HasSubstr("9 operations on 7 levels"));
//   }
//
// d2l_chapter (lesson.bzl) adds the tests of every chapter: chapter_tests.cc.
//
// The tests expect results, ids, exit codes and form; never speed. The lesson
// and the benchmarks are at chapters/NAME/lesson and chapters/NAME/benchmarks,
// the source at chapters/NAME/lesson.cc, the list of all cells at
// chapters/cells.json, which the build makes of every lesson.md.
//
// A run takes seconds; each process makes the same run only once. Not
// thread-safe. The Expect functions fail the test with EXPECT.

#ifndef D2L_COMMON_LESSON_TESTING_LESSON_TESTING_H_
#define D2L_COMMON_LESSON_TESTING_LESSON_TESTING_H_

#include <string>
#include <vector>

#include "common/base/child_process.h"
#include "nlohmann/json.hpp"

namespace d2l {

struct TestedCell {
  std::string id;
  std::vector<std::string> also;
  int claims = 0;
  int figures = 0;  // the least number
  // Whether the cell measures times, and so has a benchmark.
  bool has_benchmark = true;
  // Whether it measures the host library alone, without a device.
  bool on_host = false;
  // Why it has no drawing; "" if it has one.
  std::string not_drawn = "";
};

struct TestedLesson {
  std::string name;  // the chapter's directory
  std::vector<TestedCell> cells;
  // Prefixes of the names of times that are differences of others, and that
  // noise can make negative.
  std::vector<std::string> differences = {};
};

// The entry of a chapter in chapters/cells.json. A cell that measures times has
// at least two figures, and a benchmark. Throws nlohmann::json's errors, or
// std::out_of_range for a chapter that is not listed.
TestedLesson ListedLesson(const std::string& chapter);

// The chapter that this test is of, as d2l_chapter says in D2L_CHAPTER and
// D2L_DIFFERENCES.
const TestedLesson& Tested();

struct LessonRun {
  std::vector<std::string> arguments;
  int exit_code = -1;
  std::string output;
  nlohmann::json json;  // the output of --json; null if there is none
};

// RunProgram for a program that may start mpirun. Each mpirun gets its own
// temporary folder: mpirun names it by its process number, which may be the
// same in two sandboxes.
ProgramResult RunWithMpi(const std::string& program,
                         const std::vector<std::string>& arguments);

// Runs the lesson at --size=small, with further arguments.
const LessonRun& RunLesson(const TestedLesson& lesson,
                           const std::vector<std::string>& arguments);

// "HOLDS  It is so: 1.2x.", a line for each claim of the run. The output shows
// at most two of a cell.
std::string Claims(const LessonRun& run);

// The runs of Tested() with the flags in D2L_RUNS.
std::vector<const LessonRun*> LessonRuns();

// The run's exit code is 0, and no result is wrong.
void ExpectRightResults(const LessonRun& run);

// The cells are in order, with the listed ids and numbers of claims and
// figures; a claim that was not asked counts (Cell::NotAsked). Every cell asks
// a question that has two to four choices. Every claim has evidence and, unless
// it HOLDS, a reason; every figure of a cell has its own name, every interval
// contains its median, every time is positive and names the kind of device it
// was measured on.
void ExpectCellsAsListed(const TestedLesson& lesson, const LessonRun& run);

// Wherever a claim's reason, whatever the verdict, says how figures compare,
// the figures do.
void ExpectReasonsBorneOut(const LessonRun& run);

// Every cell's code is marked, and short enough to read: 55 lines in all its
// blocks, 40 of them taught, and 40 in each block in a folder below. With
// --code --verbose both parts of a cell are printed unchanged.
void ExpectSourcePrinted(const TestedLesson& lesson);

// No cell prints more than 45 lines: about 25, and a small drawing or the
// reasons of claims that do not hold.
void ExpectShortCells(const LessonRun& run);

// Lines have at most 80 columns, except for paths of written files and for a
// profiler's tables (KeyAverages::Table), which have PyTorch's columns. These
// tables begin with a rule, repeat it below the headers and at the end, and no
// line is wider than it.
void ExpectEightyColumns(const LessonRun& run);

// Each of the cell's ids runs this cell and no other.
void ExpectOneCellByAnyId(const TestedLesson& lesson, const TestedCell& cell);

// The prefix of the names of a cell's benchmarks: "BM_d2l_t1_t2_t3_" for
// "d2l/t1-t2-t3".
std::string BenchmarkPrefix(const std::string& id);

// Each cell that measures times has benchmarks of its prefix, on CPU devices
// and on GPUs.
void ExpectBenchmarksMirrorCells(const TestedLesson& lesson);

// A benchmark that `filter` selects is skipped, and says that `device` does not
// exist.
void ExpectBenchmarkSkipped(const TestedLesson& lesson,
                            const std::string& filter,
                            const std::string& device);

}  // namespace d2l

#endif  // D2L_COMMON_LESSON_TESTING_LESSON_TESTING_H_
