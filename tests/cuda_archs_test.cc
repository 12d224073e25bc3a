// Tests that a program has kernels for every requested GPU architecture, and
// that cuda_archs.py, which is packed for machines with GPUs, sees them.

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/child_process.h"
#include "common/device/cuda/cuda_api.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using testing::HasSubstr;

constexpr char kScript[] = "tests/cuda_archs.py";

TEST(CudaArchsTest, EveryKernelIsThereForEveryArchitecture) {
  const std::string code =
      absl::StrJoin(BuiltArchs(), " ", [](std::string* text, int arch) {
        absl::StrAppend(text, "sm_", arch / 10);
      });
  const ProgramResult r = RunProgram(kScript, {"tests/all_tests"});
  EXPECT_EQ(r.output, absl::StrCat(code, " and PTX of sm_",
                                   BuiltArchs().back() / 10, "\n"));
  EXPECT_EQ(r.exit_code, 0);
}

TEST(CudaArchsTest, SaysWhenThereIsNothingToSee) {
  ProgramResult r = RunProgram(kScript, {"/bin/true"});
  EXPECT_EQ(r.output, "no kernels\n");
  EXPECT_EQ(r.exit_code, 0);
  r = RunProgram(kScript, {kScript});
  EXPECT_THAT(r.output, HasSubstr("it is no ELF file"));
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_EQ(RunProgram(kScript, {"/nowhere"}).exit_code, 1);
}

}  // namespace
}  // namespace d2l
