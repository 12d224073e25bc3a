// What the cell d2l/hybridize-save needs of the system.
//
//   const TemporaryDirectory directory;
//   RunProgram(OtherProgram(), {directory.path() + "/my_mlp"});
//
// Errors: see each. Thread-safe.

#ifndef D2L_CHAPTERS_HYBRID_PROGRAMMING_OTHER_PROGRAM_H_
#define D2L_CHAPTERS_HYBRID_PROGRAMMING_OTHER_PROGRAM_H_

#include <string>

namespace d2l {

// An empty directory, which is removed with all that is in it. Throws
// std::runtime_error if there is no place for one.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The size and the name of each file, by name, as `ls -lh` prints them.
std::string ListFiles(const std::string& directory);

// Where tools/run_program is: beside the folder that the lesson runs in, or
// beside the lesson itself. "run_program" if it is in neither.
std::string OtherProgram();

}  // namespace d2l

#endif  // D2L_CHAPTERS_HYBRID_PROGRAMMING_OTHER_PROGRAM_H_
