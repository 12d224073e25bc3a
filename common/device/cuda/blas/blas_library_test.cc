#include "common/device/cuda/blas/blas_library.h"

#include <cublas_v2.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string WhyNot(const std::vector<std::string>& folders) {
  try {
    LoadBlas(folders);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "nothing thrown";
}

TEST(BlasLibraryTest, SaysWhereItLookedAndWhatToDo) {
  EXPECT_THAT(
      WhyNot({"/nowhere/a", "/nowhere/b"}),
      AllOf(HasSubstr("it needs cuBLAS, and there is no libcublas.so.1"),
            HasSubstr(" or libcublas.so.1"),
            HasSubstr("in /nowhere/a, /nowhere/b. Install the CUDA toolkit, or "
                      "set LD_LIBRARY_PATH to a folder that has one"),
            Not(HasSubstr("Not usable"))));
}

TEST(BlasLibraryTest, SaysWhatIsWrongWithOneThatIsThere) {
  const std::string folder = testing::TempDir() + "/broken";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/libcublas.so.13") << "no library\n";
  EXPECT_THAT(WhyNot({"/nowhere", folder}),
              HasSubstr("Not usable: " + folder + "/libcublas.so.13: "));
  // A library that has one of the functions.
  EXPECT_THAT(WhyNot({"common/device/cuda/partial"}),
              HasSubstr("undefined symbol: cublasDestroy_v2."));
}

TEST(BlasLibraryTest, TheSystemsSearchHasAName) {
  EXPECT_EQ(BlasFolders().front(), "");
  EXPECT_EQ(BlasFolders()[1], D2L_CUDA_LIBRARY_FOLDER);
  // This test's LD_LIBRARY_PATH has no cuBLAS.
  const std::string text = WhyNot({""});
  if (text == "nothing thrown") GTEST_SKIP() << "the system has a cuBLAS";
  EXPECT_THAT(text, HasSubstr("in LD_LIBRARY_PATH and the system's folders."));
}

TEST(BlasLibraryTest, LoadsTheToolkits) {
  const std::string folder = D2L_CUDA_LIBRARY_FOLDER;
  if (!std::filesystem::exists(folder + "/libcublas.so")) {
    GTEST_SKIP() << folder << " has no cuBLAS";
  }
  const BlasLibrary blas = LoadBlas({"/nowhere", folder});
  // This function needs no GPU, so its result is checked; the others exist.
  EXPECT_STREQ(blas.status_name(CUBLAS_STATUS_ALLOC_FAILED),
               "CUBLAS_STATUS_ALLOC_FAILED");
  EXPECT_NE(blas.dgemm_batched, nullptr);
  EXPECT_NE(blas.sgemm, nullptr);
}

}  // namespace
}  // namespace d2l
