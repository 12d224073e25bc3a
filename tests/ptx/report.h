// What the interpreter finds, and the variables that change how it runs.
//
//   Report("a launch of AddKernel is refused: the grid is empty");
//   ReportAt("reads shared memory that nobody wrote", warp, instruction, lane);
//
// Findings go to stderr, each once. A program with findings ends with exit code
// 66, whatever its tests say.
// Thread-safe.

#ifndef D2L_TESTS_PTX_REPORT_H_
#define D2L_TESTS_PTX_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/ptx/kernel.h"

namespace d2l::ptx {

inline constexpr int kExitCodeOfFindings = 66;

// The detail is printed, and findings that differ in it alone are one.
void Report(const std::string& finding, const std::string& detail = "");
// For a lane at an instruction: once for each instruction.
void ReportAt(const std::string& finding, const Warp& warp,
              const Instruction& instruction, int lane);
// The findings so far, and none from then on. The program's exit code forgets
// them, too.
std::vector<std::string> TakeFindings();

// Read from the environment at the first call.
struct Settings {
  int seed = 0;   // D2L_PTX_SEED: orders blocks and warps; 0: ascending
  int slice = 0;  // D2L_PTX_SLICE: instructions of a warp in a row; 0: all
  bool diverge = false;  // D2L_PTX_DIVERGE: lanes that part run in any order
  int perturb = 0;       // D2L_PTX_PERTURB: a seed; moves approximate results
  std::string counts;    // D2L_PTX_COUNTS: the file that gets the counts
  std::int64_t most_steps = 0;  // of a block, until it counts as hanging
};
const Settings& TheSettings();
// For tests.
void SetSettings(const Settings& settings);

// Adds to what is written to D2L_PTX_COUNTS when the program ends: a line for
// each kernel with its name and the numbers of Counts in their order.
void AddCounts(const std::string& kernel, const Counts& counts);

}  // namespace d2l::ptx

#endif  // D2L_TESTS_PTX_REPORT_H_
