// What the cell d2l/hybridize-save needs of the system.
//
//   RunProgram(OtherProgram(), {prefix});
//
// Errors: see each. Thread-safe.

#ifndef D2L_CHAPTERS_HYBRID_PROGRAMMING_OTHER_PROGRAM_H_
#define D2L_CHAPTERS_HYBRID_PROGRAMMING_OTHER_PROGRAM_H_

#include <string>

namespace d2l {

// The size and the name of each file, by name, as `ls -lh` prints them.
std::string ListFiles(const std::string& directory);

// Where tools/run_program is: beside the folder that the lesson runs in, or
// beside the lesson itself. "run_program" if it is in neither.
std::string OtherProgram();

}  // namespace d2l

#endif  // D2L_CHAPTERS_HYBRID_PROGRAMMING_OTHER_PROGRAM_H_
