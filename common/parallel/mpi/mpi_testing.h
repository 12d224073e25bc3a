// MpiRun: runs the test program again, as several processes.

#ifndef D2L_COMMON_PARALLEL_MPI_MPI_TESTING_H_
#define D2L_COMMON_PARALLEL_MPI_MPI_TESTING_H_

#include <chrono>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/child_process.h"
#include "gtest/gtest.h"

namespace d2l {

// Each process finds its task in D2L_RANKS. Ends after at most 100 s.
inline ProgramResult MpiRun(int processes, const std::string& what) {
  ProgramOptions options;
  options.time_limit = std::chrono::seconds(100);
  return RunProgram(
      "mpirun",
      {"--allow-run-as-root", "--oversubscribe", "-np", absl::StrCat(processes),
       std::filesystem::read_symlink("/proc/self/exe").string()},
      // Open MPI 5 does not start without a home; Bazel's tests have none. Open
      // MPI itself leaks.
      {"D2L_RANKS=" + what, "OMPI_MCA_orte_tmpdir_base=" + testing::TempDir(),
       "HOME=" + testing::TempDir(), "ASAN_OPTIONS=detect_leaks=0"},
      options);
}

}  // namespace d2l

#endif  // D2L_COMMON_PARALLEL_MPI_MPI_TESTING_H_
