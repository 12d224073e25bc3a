#include "common/graph/generated/load_cpp.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/child_process.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/base/files/atomic_file.h"
#include "common/base/files/fnv1a.h"

namespace d2l::ir {
namespace {

namespace fs = std::filesystem;

template <typename... Parts>
absl::Status Refusal(const Parts&... parts) {
  return absl::FailedPreconditionError(PrintableText(absl::StrCat(parts...)));
}

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// A command, and the version that it prints.
struct Compiler {
  std::vector<std::string> command;
  std::string version;
};

ProgramResult RunFor(const std::vector<std::string>& command, double seconds) {
  ProgramOptions options;
  options.time_limit = std::chrono::milliseconds(
      static_cast<std::chrono::milliseconds::rep>(1e3 * seconds));
  return RunProgram(command[0], {command.begin() + 1, command.end()}, {},
                    options);
}

absl::StatusOr<Compiler> FindCompiler(double seconds_limit) {
  const std::string wanted = Variable("CXX");
  std::vector<std::string> candidates = {"c++", "g++", "clang++"};
  if (!wanted.empty()) candidates = {wanted};
  for (const std::string& candidate : candidates) {
    Compiler compiler;
    compiler.command = absl::StrSplit(candidate, ' ', absl::SkipWhitespace());
    if (compiler.command.empty()) continue;
    std::vector<std::string> command = compiler.command;
    command.push_back("--version");
    const ProgramResult result = RunFor(command, seconds_limit);
    if (result.failure.empty()) {
      compiler.version = result.output;
      return compiler;
    }
    if (result.exit_code != 127) {
      return Refusal("the compiler ", absl::StrJoin(command, " "), " ",
                     result.failure);
    }
  }
  if (!wanted.empty()) {
    return Refusal(
        Say("there is no C++ compiler: no %s, which CXX names; unset CXX, or "
            "set it to a compiler",
            wanted));
  }
  return Refusal(
      Say("there is no C++ compiler: no %s in PATH; install g++, or set CXX to "
          "a compiler",
          absl::StrJoin(candidates, ", ")));
}

// Makes the directory if needed, and checks that it is this user's.
absl::StatusOr<std::string> Directory(std::string path) {
  if (path.empty()) path = Variable("D2L_CACHE_DIRECTORY");
  if (path.empty()) {
    const std::string cache = Variable("XDG_CACHE_HOME");
    const std::string home = Variable("HOME");
    if (!cache.empty()) {
      path = cache + "/d2l";
    } else if (!home.empty()) {
      path = home + "/.cache/d2l";
    } else {
      return Refusal(
          "there is no place for what the compiler makes: set "
          "D2L_CACHE_DIRECTORY to a directory of yours");
    }
  }
  std::error_code ignored;  // mkdir reports the reason
  fs::create_directories(fs::path(path).parent_path(), ignored);
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return Refusal("the cache directory ", path,
                   " cannot be made: ", std::strerror(errno),
                   "; set D2L_CACHE_DIRECTORY to one that can");
  }
  struct stat path_stat, target_stat;
  if (lstat(path.c_str(), &path_stat) != 0 ||
      stat(path.c_str(), &target_stat) != 0 || !S_ISDIR(target_stat.st_mode)) {
    return Refusal("the cache directory ", path, " is not a directory");
  }
  // Another user's link may lead to a directory of this user.
  for (const uid_t owner : {path_stat.st_uid, target_stat.st_uid}) {
    if (owner == geteuid()) continue;
    return Refusal("the cache directory ", path, " is user ", owner,
                   "'s, and this is user ", geteuid(),
                   "; set D2L_CACHE_DIRECTORY to one of yours");
  }
  if ((target_stat.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Refusal("others may write to the cache directory ", path,
                   "; chmod 700 it, or set D2L_CACHE_DIRECTORY to another");
  }
  return path;
}

// The compiler's first error, for a message.
std::string FirstLine(const std::string& output) {
  const std::vector<absl::string_view> lines =
      absl::StrSplit(output, '\n', absl::SkipWhitespace());
  const auto error = std::find_if(
      lines.begin(), lines.end(),
      [](absl::string_view line) { return absl::StrContains(line, "error"); });
  if (lines.empty()) return "";
  return absl::StrCat(": ", error == lines.end() ? lines[0] : *error);
}

// Returns what the compiler makes of the source. It works in the directory.
absl::StatusOr<std::string> Compile(const Compiler& compiler,
                                    const std::string& source,
                                    const std::vector<std::string>& flags,
                                    const std::string& directory,
                                    double seconds_limit) {
  // Uses a folder of its own: another process may compile the same source.
  std::string folder = directory + "/compile.XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {
    return Refusal("nothing can be written to the cache directory ", directory,
                   ": ", std::strerror(errno),
                   "; set D2L_CACHE_DIRECTORY to another");
  }
  const absl::Cleanup remove = [&] {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  };
  const std::string in = folder + "/source.cc";
  const std::string out = folder + "/output";
  const absl::Status written = WriteAtomically(in, source);
  if (!written.ok()) return written;
  std::vector<std::string> command = compiler.command;
  command.insert(command.end(), flags.begin(), flags.end());
  command.insert(command.end(), {"-o", out, in});
  const ProgramResult result = RunFor(command, seconds_limit);
  if (!result.failure.empty()) {
    return Refusal("the compiler ", absl::StrJoin(compiler.command, " "), " ",
                   result.failure, FirstLine(result.output));
  }
  std::string output = ReadFile(out);
  if (output.empty()) {
    return Refusal("the compiler ", absl::StrJoin(compiler.command, " "),
                   " has made nothing");
  }
  return output;
}

std::string Hash(std::string_view bytes) {
  Fnv1a hash;
  hash.Update(bytes);
  return hash.Hex();
}

// A library is kept with the request for it behind it, and the hash of both.
// The loader ignores what stands behind a library.
std::string Kept(const std::string& library, const std::string& request) {
  const std::string both = library + request;
  return both + Hash(both);
}

// Whether it is the library of this request, and not of one with the same hash,
// and as it was kept.
bool IsWhole(absl::string_view kept, absl::string_view request) {
  const std::size_t end = kept.size() - std::min(kept.size(), Hash("").size());
  const absl::string_view both = kept.substr(0, end);
  return absl::EndsWith(both, request) &&
         kept.substr(end) == Hash({both.data(), both.size()});
}

}  // namespace

void* CompiledCpp::Function(const std::string& name) const {
  return dlsym(handle, name.c_str());
}

absl::StatusOr<CompiledCpp> LoadCpp(const std::string& source,
                                    const std::vector<std::string>& flags,
                                    const LoadCppOptions& options) {
  const absl::StatusOr<std::string> directory =
      Directory(options.cache_directory);
  if (!directory.ok()) return directory.status();
  const absl::StatusOr<Compiler> compiler = FindCompiler(options.seconds_limit);
  if (!compiler.ok()) return compiler.status();
  std::string request;
  for (const std::string& part :
       {absl::StrJoin(compiler->command, " "), compiler->version,
        absl::StrJoin(flags, " "), source}) {
    absl::StrAppend(&request, part.size(), " ", part);
  }
  const std::string path = absl::StrCat(*directory, "/", Hash(request), ".so");
  CompiledCpp result;
  // The loader ends the program where a library was cut or changed.
  result.from_cache = IsWhole(ReadFile(path), request);
  if (!result.from_cache) {
    const absl::StatusOr<std::string> object =
        Compile(*compiler, source, flags, *directory, options.seconds_limit);
    if (!object.ok()) return object.status();
    const absl::Status written = WriteAtomically(path, Kept(*object, request));
    if (!written.ok()) return written;
  }
  result.handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (result.handle == nullptr) {
    return Refusal(absl::StrCat("what the compiler has made cannot be loaded; "
                                "delete ",
                                path, ", and it is made again: "),
                   dlerror());
  }
  return result;
}

absl::StatusOr<std::vector<std::string>> MachineInstructions(
    const std::string& source, std::vector<std::string> flags,
    const LoadCppOptions& options) {
  const absl::StatusOr<std::string> directory =
      Directory(options.cache_directory);
  if (!directory.ok()) return directory.status();
  const absl::StatusOr<Compiler> compiler = FindCompiler(options.seconds_limit);
  if (!compiler.ok()) return compiler.status();
  flags.push_back("-S");
  const absl::StatusOr<std::string> assembly =
      Compile(*compiler, source, flags, *directory, options.seconds_limit);
  if (!assembly.ok()) return assembly.status();
  std::vector<std::string> instructions;
  for (absl::string_view line : absl::StrSplit(*assembly, '\n')) {
    // A label begins its line, a directive begins with a dot, and a comment
    // with # or, on ARM, with //.
    if (line.empty() || !absl::ascii_isspace(line[0])) continue;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || absl::StrContains(".#/", line[0])) continue;
    instructions.push_back(absl::StrReplaceAll(line, {{"\t", " "}}));
  }
  return instructions;
}

}  // namespace d2l::ir
