// What a program knows of other processes without MPI; and all of MpiWorld in a
// program that was built without it.

#include <cstdlib>
#include <initializer_list>
#include <stdexcept>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "common/parallel/mpi/mpi_world.h"

namespace d2l {
namespace {

// The value of the first variable that is a number, or `otherwise`.
int FromEnvironment(std::initializer_list<const char*> names, int otherwise) {
  for (const char* name : names) {
    const char* const text = std::getenv(name);
    int number = 0;
    if (text != nullptr && absl::SimpleAtoi(text, &number)) return number;
  }
  return otherwise;
}

}  // namespace

// Open MPI's variables, then those of srun's job steps.
int MpiWorld::StartedProcesses() {
  return FromEnvironment({"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"}, 1);
}

int MpiWorld::StartedProcess() {
  return FromEnvironment({"OMPI_COMM_WORLD_RANK", "SLURM_PROCID"}, 0);
}

int MpiWorld::StartedProcessOfMachine() {
  return FromEnvironment({"OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"}, 0);
}

#ifndef D2L_MPI

absl::StatusOr<std::unique_ptr<MpiWorld>> MpiWorld::Start(double) {
  return absl::FailedPreconditionError(absl::StrFormat(
      "%d processes were started together, and this program was built without "
      "MPI, so each would work alone: sudo apt-get install libopenmpi-dev "
      "openmpi-bin && bazel shutdown, and build it again",
      StartedProcesses()));
}

bool MpiWorld::BuiltIn() { return false; }

MpiWorld::~MpiWorld() = default;

Work MpiWorld::RunAsync(Collective, Replicas, std::optional<AllReduceAlgorithm>,
                        SourceLocation) {
  throw std::logic_error("[MpiWorld] built without MPI");
}

std::vector<std::uint64_t> MpiWorld::Gather(std::uint64_t, SourceLocation) {
  throw std::logic_error("[MpiWorld] built without MPI");
}

void MpiWorld::Abort(int) {
  throw std::logic_error("[MpiWorld] built without MPI");
}

#endif  // D2L_MPI

}  // namespace d2l
