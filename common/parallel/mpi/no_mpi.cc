// MpiWorld in a program without MPI: there is none.

#include <stdexcept>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "common/parallel/mpi/mpi_world.h"

namespace d2l {

absl::StatusOr<std::unique_ptr<MpiWorld>> MpiWorld::Start(const MpiOptions&) {
  return absl::FailedPreconditionError(absl::StrFormat(
      "%d processes were started together, and this program was built without "
      "MPI, so each would work alone: sudo apt-get install libopenmpi-dev "
      "openmpi-bin && bazel shutdown, and build it again",
      StartedProcesses()));
}

bool MpiWorld::BuiltIn() { return false; }

MpiWorld::~MpiWorld() = default;

Work MpiWorld::AllReduceAsync(Replicas, std::optional<AllReduceAlgorithm>,
                              SourceLocation) {
  throw std::logic_error("[allreduce] built without MPI");
}

std::vector<std::uint64_t> MpiWorld::Gather(std::uint64_t, SourceLocation) {
  throw std::logic_error("[MpiWorld] built without MPI");
}

void MpiWorld::Abort(int) {
  throw std::logic_error("[MpiWorld] built without MPI");
}

}  // namespace d2l
