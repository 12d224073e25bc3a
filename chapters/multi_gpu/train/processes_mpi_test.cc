// Tests Processes in processes that mpirun started.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "chapters/multi_gpu/train/processes.h"
#include "common/base/child_process.h"
#include "common/base/files/sha256.h"
#include "common/parallel/mpi/mpi_testing.h"
#include "common/parallel/mpi/mpi_world.h"
#include "common/parallel/nccl/nccl.h"

namespace d2l {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

int asked = 0;  // requests of an id

int MakeId(NcclId* id) {
  ++asked;
  const int seed = 7 + 100 * MpiWorld::StartedProcess();
  for (std::size_t i = 0; i < id->bytes.size(); ++i) {
    id->bytes[i] = static_cast<char>(seed + 31 * i);
  }
  return kNcclSuccess;
}

std::string HashOf(const NcclId& id) {
  Sha256 hash;
  hash.Update({id.bytes.data(), id.bytes.size()});
  return hash.Hex();
}

// The rank of one process.
int Rank(const std::string& what) {
  NcclLibrary nccl = {};
  nccl.get_unique_id = &MakeId;
  if (what == "fails") nccl.get_unique_id = [](NcclId*) { return 2; };
  ReplaceNcclForTesting(&nccl);
  const absl::StatusOr<std::unique_ptr<Processes>> processes =
      Processes::Start();
  if (!processes.ok()) return 1;
  std::string text;
  try {
    const NcclId id = (*processes)->SharedNcclId();
    text = absl::StrFormat("asked %d times, has %s", asked, HashOf(id));
  } catch (const CommonError& error) {
    text = absl::StrFormat("error (%s)", error.what());
  }
  std::cout << absl::StrFormat("%s: %s\n", (*processes)->Name(), text)
            << std::flush;
  return 0;
}

TEST(ProcessesTest, TheFirstMakesTheIdOfNccl) {
  NcclId id;
  MakeId(&id);  // the id of rank 0
  const std::string hash = HashOf(id);
  const ProgramResult run = MpiRun(3, "shares");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output,
              AllOf(HasSubstr("rank 0 of 3: asked 1 times, has " + hash),
                    HasSubstr("rank 1 of 3: asked 0 times, has " + hash),
                    HasSubstr("rank 2 of 3: asked 0 times, has " + hash)));
}

TEST(ProcessesTest, OneProcessSaysThatThereIsNoId) {
  const ProgramResult run = MpiRun(2, "fails");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output,
              AllOf(HasSubstr("rank 0 of 2: error (NCCL cannot make an id"),
                    HasSubstr("rank 1 of 2: error ()"), Not(HasSubstr("has"))));
}

int MainOfTest(int argc, char** argv) {
  if (const char* const what = std::getenv("D2L_RANKS")) return Rank(what);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace d2l

int main(int argc, char** argv) { return d2l::MainOfTest(argc, argv); }
