// For tests: a chapter's lesson and benchmarks, looked at from outside.
//
//   const TestedLesson& Tested() {
//     static const auto& lesson =
//         *new TestedLesson(ListedLesson("auto_parallelism"));
//     return lesson;
//   }
//   TEST(Lesson, RunsOnTwoDevices) {
//     const LessonRun& run = RunLesson(Tested(), {"--devices=cpu:0,cpu:1"});
//     ExpectRightResults(run);
//     ExpectCellsAsListed(Tested(), run);
//   }
//
// What is expected is results, ids, exit codes and form; never speed. The
// lesson and the benchmarks are at chapters/NAME/lesson and
// chapters/NAME/benchmarks, the source at chapters/NAME/lesson.cc, the list of
// all cells at chapters/cells.json: name them in the test's `data`.
//
// A run takes seconds; the same one is made only once per process. Not
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
  int figures = 0;  // at least
  // Whether the cell times something, and so has a benchmark.
  bool has_benchmark = true;
  // Whether that is of the host library alone, and of no device.
  bool on_host = false;
  // Why it has no drawing; "" if it has one.
  std::string not_drawn = "";
};

struct TestedLesson {
  std::string name;  // the chapter's directory
  std::vector<TestedCell> cells;
  // How the names of times begin that are differences of others, which noise
  // can make negative.
  std::vector<std::string> differences = {};
};

// What chapters/cells.json says of a chapter. A cell that is timed has two
// figures at least, and a benchmark. Throws nlohmann::json's errors, or
// std::out_of_range for a chapter that is not listed.
TestedLesson ListedLesson(const std::string& chapter);

struct LessonRun {
  std::vector<std::string> arguments;
  int exit_code = -1;
  std::string output;
  nlohmann::json json;  // what --json wrote; null if it wrote nothing
};

// RunProgram, of a program that may start mpirun. Each mpirun gets a temporary
// folder of its own: they name it by their process number, which two sandboxes
// may both have.
ProgramResult RunWithMpi(const std::string& program,
                         const std::vector<std::string>& arguments);

// Runs the lesson at --size=small, with further arguments.
const LessonRun& RunLesson(const TestedLesson& lesson,
                           const std::vector<std::string>& arguments);

// It ended well and found no wrong result.
void ExpectRightResults(const LessonRun& run);

// The cells in their order, with their ids and as many claims and figures as
// listed. Every cell asks a question that has two to four choices. Every claim
// has evidence and, unless it HOLDS, a reason; every figure of a cell has a
// name of its own, every interval holds its median, every time is positive and
// says what kind of device it was measured on.
void ExpectCellsAsListed(const TestedLesson& lesson, const LessonRun& run);

// Every cell's code is marked, and short enough to read: 55 lines in all its
// blocks, 40 of them what is taught, and 40 in each block in a folder below.
// With --code --verbose both parts of a cell are printed as they stand.
void ExpectSourcePrinted(const TestedLesson& lesson);

// No cell prints more than 45 lines: about 25, and a small drawing or reasons
// for what does not hold.
void ExpectShortCells(const LessonRun& run);

// Lines of at most 80 columns, except for paths of files that were written and
// for a profiler's tables (KeyAverages::Table), which have PyTorch's columns.
// These begin with a rule, have the same below the headers and at the end, and
// no line is wider than it.
void ExpectEightyColumns(const LessonRun& run);

// Each of its ids runs this cell and no other.
void ExpectOneCellByAnyId(const TestedLesson& lesson, const TestedCell& cell);

// How the names of a cell's benchmarks begin: "BM_d2l_t1_t2_t3_" for
// "d2l/t1-t2-t3".
std::string BenchmarkPrefix(const std::string& id);

// Each cell that times something has benchmarks of its prefix, on CPU devices
// and on GPUs.
void ExpectBenchmarksMirrorCells(const TestedLesson& lesson);

// A benchmark that `filter` selects is skipped, and says that `device` is not
// there.
void ExpectBenchmarkSkipped(const TestedLesson& lesson,
                            const std::string& filter,
                            const std::string& device);

}  // namespace d2l

#endif  // D2L_COMMON_LESSON_TESTING_LESSON_TESTING_H_
