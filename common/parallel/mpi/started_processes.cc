#include <cstdlib>
#include <initializer_list>

#include "absl/strings/numbers.h"
#include "common/parallel/mpi/mpi_world.h"

namespace d2l {

int MpiWorld::StartedProcesses() {
  // The first is Open MPI's, the second that of srun's job step.
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    const char* const text = std::getenv(name);
    int count = 0;
    if (text != nullptr && absl::SimpleAtoi(text, &count)) return count;
  }
  return 1;
}

}  // namespace d2l
