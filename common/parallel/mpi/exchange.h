// A collective between processes, on plain memory. For mpi_world.cc.
//
//   Exchange({schedule, DType::kFloat32, numel, {x, y}, process, timeout});
//
// The caller waits. Every process makes the moves that it takes part in, in the
// schedule's order: it posts what it sends and receives in a step, waits for
// that, and then makes its own additions. Sends are posted before any wait, so
// no two processes wait for each other.
//
// Errors: std::runtime_error, which names the step and the rank.

#ifndef D2L_COMMON_PARALLEL_MPI_EXCHANGE_H_
#define D2L_COMMON_PARALLEL_MPI_EXCHANGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/parallel/collective/schedule.h"
#include "common/tensor/dtype.h"

namespace d2l::mpi {

struct ExchangeArgs {
  CollectiveSchedule schedule;  // of all ranks, without the host's memory
  DType dtype;
  std::int64_t numel;
  std::vector<void*> local;  // of the ranks process * local.size() and on
  int process;
  double timeout_seconds;
  int tag;             // of the messages: another than the last call's
  std::string during;  // "", or the beginning of messages: "batch 3: "
};

void Exchange(const ExchangeArgs& args);

// MPI_Allreduce of each process's first array, into which the others of the
// process are added before, and which is copied to them afterwards.
void AllReduceByMpi(const ExchangeArgs& args);

// `value` of every process.
std::vector<std::uint64_t> AllGatherValues(std::uint64_t value, int processes,
                                           const std::string& during,
                                           double timeout_seconds, int tag);

}  // namespace d2l::mpi

#endif  // D2L_COMMON_PARALLEL_MPI_EXCHANGE_H_
