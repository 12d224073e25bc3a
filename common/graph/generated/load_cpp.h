// LoadCpp: compiles C++ with the system's compiler and loads it into this
// program.
//
//   absl::StatusOr<ir::CompiledCpp> code =
//       ir::LoadCpp(source, ir::CppFlags(), {});
//   if (!code.ok()) return code.status();  // a sentence: why there is none
//   void* const function = code->Function("f_0");
//
// The compiler is $CXX, or the first of c++, g++ and clang++ in PATH. Its
// output is cached: a program that was compiled before is loaded without
// compiling it. The cache is the given directory, or $D2L_CACHE_DIRECTORY,
// $XDG_CACHE_HOME/d2l, or ~/.cache/d2l. A file's name is the hash of source,
// flags and compiler, which stand behind the library in it with a checksum:
// what is another program's, or was damaged since, is compiled again. The
// directory is made with mode 0700, and refused if it is another user's or
// others may write to it, because its files are run.
//
// Errors: FailedPrecondition, of the compiler or the directory. Thread-safe;
// several processes may use a directory at once. Loaded code is never unloaded.

#ifndef D2L_COMMON_GRAPH_GENERATED_LOAD_CPP_H_
#define D2L_COMMON_GRAPH_GENERATED_LOAD_CPP_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace d2l::ir {

struct LoadCppOptions {
  std::string cache_directory;
  // After this time the compiler and its child processes are killed.
  double seconds_limit = 30;
};

struct CompiledCpp {
  // An extern "C" function; null if there is none of that name.
  void* Function(const std::string& name) const;

  void* handle = nullptr;  // dlopen's
  bool from_cache = false;
};

absl::StatusOr<CompiledCpp> LoadCpp(const std::string& source,
                                    const std::vector<std::string>& flags,
                                    const LoadCppOptions& options);

// The machine instructions that the compiler makes of the source, a line each:
// "movl $10, %eax". They are not cached, and -shared has no meaning for them.
absl::StatusOr<std::vector<std::string>> MachineInstructions(
    const std::string& source, std::vector<std::string> flags,
    const LoadCppOptions& options);

}  // namespace d2l::ir

#endif  // D2L_COMMON_GRAPH_GENERATED_LOAD_CPP_H_
