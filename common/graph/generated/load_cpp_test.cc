#include "common/graph/generated/load_cpp.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/files/atomic_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l::ir {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<std::string>& Flags() {
  static const auto& flags = *new std::vector<std::string>{"-fPIC", "-shared"};
  return flags;
}

// Uses a directory of its own, and restores the environment afterwards.
class LoadCppTest : public testing::Test {
 protected:
  LoadCppTest() {
    options_.cache_directory = root_ + "/cache";
    options_.seconds_limit = 100;
  }
  ~LoadCppTest() override {
    unsetenv("CXX");
    setenv("PATH", path_.c_str(), 1);
  }

  static std::string Source(int number) {
    return absl::StrCat("extern \"C\" int number() { return ", number, "; }\n");
  }
  absl::StatusOr<CompiledCpp> Load(int number) const {
    return LoadCpp(Source(number), Flags(), options_);
  }
  static int Call(const CompiledCpp& code) {
    return reinterpret_cast<int (*)()>(code.Function("number"))();
  }
  // The error of compiling the number.
  std::string Failure(int number) const {
    const absl::StatusOr<CompiledCpp> code = Load(number);
    EXPECT_EQ(code.status().code(), absl::StatusCode::kFailedPrecondition);
    return std::string(code.status().message());
  }

  // Makes a shell script the compiler, which also answers --version; the script
  // must create $out.
  void SetCompiler(const std::string& script) const {
    const std::string path = root_ + "/compiler";
    std::ofstream(path) << "#!/bin/sh\n"
                           "case \"$1\" in --version) echo fake; exit;; esac\n"
                           "while [ \"$1\" != -o ]; do shift; done\n"
                           "out=$2\n"
                        << script << "\n";
    ASSERT_EQ(chmod(path.c_str(), 0700), 0);
    ASSERT_EQ(setenv("CXX", path.c_str(), 1), 0);
  }

  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    for (const auto& entry :
         fs::recursive_directory_iterator(options_.cache_directory)) {
      files.push_back(entry.path().string());
    }
    return files;
  }

  const std::string path_ = std::getenv("PATH");
  const TemporaryDirectory directory_;
  const std::string& root_ = directory_.path();
  LoadCppOptions options_;
};

TEST_F(LoadCppTest, CompilesOnceAndKeeps) {
  const auto first = Load(1);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_FALSE(first->from_cache);
  EXPECT_EQ(Call(*first), 1);
  EXPECT_EQ(first->Function("other"), nullptr);
  const auto second = Load(2);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(Call(*second), 2);
  const auto again = Load(1);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->from_cache);
  EXPECT_EQ(Call(*again), 1);
  EXPECT_EQ(Files().size(), 2u);  // the compiler's folder is removed
  struct stat cache_stat;
  ASSERT_EQ(stat(options_.cache_directory.c_str(), &cache_stat), 0);
  EXPECT_EQ(cache_stat.st_mode & 0777, 0700u);
}

// Loading a library that was cut or changed could end the program.
TEST_F(LoadCppTest, ADamagedLibraryIsCompiledAgain) {
  ASSERT_TRUE(Load(1).ok());
  const std::string path = Files().at(0);
  const std::string whole = ReadFile(path);
  std::string changed = whole, other_end = whole;
  for (std::size_t i = 0; i < whole.size(); i += 100) changed[i] ^= 1;
  other_end.back() ^= 1;
  for (const std::string& damaged :
       {std::string(), std::string("x"), whole.substr(0, 100),
        whole.substr(0, whole.size() / 2), whole.substr(0, whole.size() - 1),
        whole + "x", std::string(whole.size(), '\0'), changed, other_end}) {
    fs::remove(path);  // this program has loaded it
    std::ofstream(path, std::ios::binary) << damaged;
    const auto code = Load(1);
    ASSERT_TRUE(code.ok()) << code.status();
    EXPECT_FALSE(code->from_cache) << damaged.size();
    EXPECT_EQ(Call(*code), 1);
    EXPECT_EQ(Files().size(), 1u);
    EXPECT_TRUE(Load(1)->from_cache);
  }
}

// Two programs whose hashes are the same share a file's name.
TEST_F(LoadCppTest, ALibraryOfAnotherProgramIsCompiledAgain) {
  ASSERT_TRUE(Load(1).ok());
  const std::string first = Files().at(0);
  ASSERT_TRUE(Load(2).ok());
  const std::string both_names[] = {Files().at(0), Files().at(1)};
  const std::string second = both_names[both_names[0] == first ? 1 : 0];
  const std::string library = ReadFile(second);
  fs::remove(first);  // this program has loaded it
  std::ofstream(first, std::ios::binary) << library;
  const auto code = Load(1);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_FALSE(code->from_cache);
  EXPECT_EQ(Call(*code), 1);
  EXPECT_TRUE(Load(1)->from_cache);
}

// The flags and the compiler are parts of the file's name.
TEST_F(LoadCppTest, OtherFlagsAndCompilersAreOtherFiles) {
  ASSERT_TRUE(Load(1).ok());
  std::vector<std::string> flags = Flags();
  flags.push_back("-O1");
  const auto optimised = LoadCpp(Source(1), flags, options_);
  ASSERT_TRUE(optimised.ok()) << optimised.status();
  EXPECT_FALSE(optimised->from_cache);
  ASSERT_EQ(setenv("CXX", "c++ -O2", 1), 0);
  const auto other = Load(1);
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_FALSE(other->from_cache);
  EXPECT_EQ(Files().size(), 3u);
}

// An instruction that would only set the number, if one adds up two numbers.
TEST_F(LoadCppTest, MachineInstructionsAreThoseOfTheOptimisedProgram) {
  const auto instructions = [this](const std::string& source,
                                   const char* level) {
    const absl::StatusOr<std::vector<std::string>> made =
        MachineInstructions(source, {level}, options_);
    EXPECT_TRUE(made.ok()) << made.status();
    return made.value_or(std::vector<std::string>());
  };
  const std::string sum =
      "static int add(int a, int b) { return a + b; }\n"
      "extern \"C\" int number() { return add(30, 41); }\n";
  const std::vector<std::string> optimised = instructions(sum, "-O2");
  EXPECT_THAT(optimised, Contains(HasSubstr("71")));
  EXPECT_EQ(optimised, instructions(Source(71), "-O2"));
  EXPECT_NE(optimised, instructions(Source(72), "-O2"));
  EXPECT_GT(instructions(sum, "-O0").size(), optimised.size());
  EXPECT_TRUE(Files().empty());
  SetCompiler(
      "printf 'f: # a label\n\t.text\n\n# a comment\n\t// another\n"
      "\tmov\tw0, #10\n  ret\n' >$out");
  EXPECT_THAT(instructions("", "-O2"), ElementsAre("mov w0, #10", "ret"));
}

TEST_F(LoadCppTest, CompilerFails) {
  SetCompiler("echo about to; echo 'x.cc:1: error: no' >&2; exit 3");
  EXPECT_THAT(Failure(1), AllOf(HasSubstr("/compiler ended with exit code 3"),
                                HasSubstr("x.cc:1: error: no")));
  EXPECT_TRUE(Files().empty());
  SetCompiler("kill -SEGV $$");
  EXPECT_THAT(Failure(1), HasSubstr("was ended by signal 11"));
  SetCompiler("exit 0");
  EXPECT_THAT(Failure(1), HasSubstr("has made nothing"));
  EXPECT_TRUE(Files().empty());
  SetCompiler("echo no object >$out");
  EXPECT_THAT(Failure(1), HasSubstr("cannot be loaded"));
}

TEST_F(LoadCppTest, CompilerHangs) {
  // The compiler's child process is killed, too.
  SetCompiler("sleep 1000 & wait");
  options_.seconds_limit = 0.2;
  EXPECT_THAT(Failure(1), HasSubstr("was stopped after its limit of 0.2 s"));
  EXPECT_TRUE(Files().empty());
}

TEST_F(LoadCppTest, NoCompiler) {
  ASSERT_EQ(setenv("PATH", "/empty", 1), 0);
  EXPECT_EQ(Failure(1),
            "there is no C++ compiler: no c++, g++, clang++ in PATH; install "
            "g++, or set CXX to a compiler");
  ASSERT_EQ(setenv("CXX", "/empty/c++", 1), 0);
  EXPECT_THAT(Failure(1),
              HasSubstr("no /empty/c++, which CXX names; unset CXX"));
  EXPECT_EQ(MachineInstructions(Source(1), {}, options_).status().message(),
            Failure(1));
}

TEST_F(LoadCppTest, DirectoriesThatCannotBeTrusted) {
  const std::string& cache = options_.cache_directory;
  std::ofstream(cache) << "a file";
  EXPECT_THAT(Failure(1), HasSubstr("is not a directory"));
  fs::remove(cache);
  for (const mode_t mode : {0720, 0702, 0777}) {
    ASSERT_EQ(mkdir(cache.c_str(), 0700), 0);
    ASSERT_EQ(chmod(cache.c_str(), mode), 0);
    EXPECT_THAT(Failure(1), HasSubstr("others may write"));
    EXPECT_TRUE(Files().empty());
    fs::remove(cache);
  }
  if (geteuid() == 0) {
    ASSERT_EQ(mkdir(cache.c_str(), 0700), 0);
    ASSERT_EQ(chown(cache.c_str(), 65534, 65534), 0);
  } else {
    options_.cache_directory = "/usr";  // root's
  }
  EXPECT_THAT(Failure(1), HasSubstr("'s, and this is user"));
  // Another user's link to a directory of this user.
  options_.cache_directory = "/proc/self";  // root's
  if (geteuid() == 0) {
    options_.cache_directory = root_ + "/link";
    ASSERT_EQ(mkdir((root_ + "/mine").c_str(), 0700), 0);
    fs::create_symlink(root_ + "/mine", root_ + "/link");
    ASSERT_TRUE(Load(1).ok());
    ASSERT_EQ(lchown((root_ + "/link").c_str(), 65534, 65534), 0);
  }
  EXPECT_THAT(Failure(1), HasSubstr("'s, and this is user"));
}

TEST_F(LoadCppTest, DirectoriesThatCannotBeWritten) {
  options_.cache_directory = "/proc/no/cache";
  EXPECT_THAT(Failure(1), HasSubstr("cannot be made"));
  // This user's, and nobody can write to it; root could write to others.
  options_.cache_directory = absl::StrCat("/proc/", getpid());
  EXPECT_THAT(Failure(1), HasSubstr("nothing can be written"));
}

// Simulates a full disk: a file cannot grow beyond 100 bytes.
TEST_F(LoadCppTest, FullDirectory) {
  ASSERT_TRUE(Load(1).ok());
  rlimit old;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const rlimit full = {100, old.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &full), 0);
  const std::string failure = Failure(2);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  signal(SIGXFSZ, handler);
  EXPECT_NE(failure, "");
  EXPECT_EQ(Files().size(), 1u);
  const auto code = Load(2);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(Call(*code), 2);
}

TEST_F(LoadCppTest, SeveralProcessesAtOnce) {
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const auto code = Load(7);
      _exit(code.ok() && Call(*code) == 7 ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(Files().size(), 1u);
  const auto code = Load(7);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_TRUE(code->from_cache);
}

TEST_F(LoadCppTest, TheUsualDirectory) {
  options_.cache_directory = "";
  ASSERT_EQ(setenv("XDG_CACHE_HOME", (root_ + "/made/xdg").c_str(), 1), 0);
  ASSERT_TRUE(Load(3).ok());
  ASSERT_EQ(setenv("D2L_CACHE_DIRECTORY", (root_ + "/ours").c_str(), 1), 0);
  ASSERT_TRUE(Load(3).ok());
  ASSERT_EQ(unsetenv("D2L_CACHE_DIRECTORY"), 0);
  ASSERT_EQ(unsetenv("XDG_CACHE_HOME"), 0);
  ASSERT_EQ(setenv("HOME", (root_ + "/home").c_str(), 1), 0);
  ASSERT_TRUE(Load(3).ok());
  ASSERT_EQ(unsetenv("HOME"), 0);
  EXPECT_THAT(Failure(3), HasSubstr("set D2L_CACHE_DIRECTORY"));
  for (const char* path : {"/made/xdg/d2l", "/ours", "/home/.cache/d2l"}) {
    options_.cache_directory = root_ + path;
    EXPECT_EQ(Files().size(), 1u) << path;
  }
}

}  // namespace
}  // namespace d2l::ir
