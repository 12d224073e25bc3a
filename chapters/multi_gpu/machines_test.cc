// Tests the cell of several machines, if MPI is there.

#include <string>
#include <vector>

#include "common/base/child_process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

ProgramResult SeveralMachines(const std::string& devices,
                              std::vector<std::string> environment) {
  environment.push_back("OMPI_MCA_orte_tmpdir_base=" + testing::TempDir());
  return RunProgram(
      "chapters/multi_gpu/lesson",
      {"--devices=" + devices, "--size=small", "--cell=d2l/several-machines"},
      environment);
}

TEST(SeveralMachines, TwoProcessesHaveTheBitsOfOne) {
  for (const char* devices : {"cpu:0", "cpu:0,cpu:1,cpu:2"}) {
    const ProgramResult run = SeveralMachines(devices, {});
    EXPECT_EQ(run.exit_code, 0) << run.output;
    EXPECT_THAT(run.output, HasSubstr("HOLDS  Sums between processes equal "
                                      "those of one, bit for bit: 3 of 3"));
    EXPECT_THAT(run.output, ContainsRegex("\n  split( +[0-9.]+ .s, "
                                          "[0-9.e-]+ GB/s){3}\n"));
    EXPECT_THAT(run.output, ContainsRegex("\n  MPI_Allreduce +[0-9.]+ .s, "
                                          "[0-9.e-]+ GB/s\n"));
  }
}

TEST(SeveralMachines, SayWhatIsMissing) {
  const ProgramResult run = SeveralMachines("cpu:0", {"PATH=/nowhere"});
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("Open MPI is not installed, or was not"));
  EXPECT_THAT(run.output, HasSubstr("INCONCLUSIVE  Sums between processes"));
}

}  // namespace
}  // namespace d2l
