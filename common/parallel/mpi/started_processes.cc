#include <cstdlib>
#include <initializer_list>

#include "absl/strings/numbers.h"
#include "common/parallel/mpi/mpi_world.h"

namespace d2l {
namespace {

// Of the first variable that is a number.
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

}  // namespace d2l
