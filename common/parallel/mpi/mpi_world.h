// MpiWorld: the processes that mpirun started, and collectives between the
// devices of all of them.
//
//   // mpirun -np 2 program, with two devices in each process
//   absl::StatusOr<std::unique_ptr<MpiWorld>> world = MpiWorld::Start();
//   std::vector<Tensor> gradients = {Ones({3}, cpu0), Ones({3}, cpu1)};
//   (*world)->AllReduceAsync(gradients, AllReduceAlgorithm::kSplit).Wait();
//   // all four are 4
//
// Every process passes the same number of tensors, as to the collectives of one
// process (collective.h), and makes the same calls in the same order. Tensor i
// of process p is rank p * n + i. The schedules are those of one process, so
// the results have the same bits as on as many devices of one process. MPI's
// own allreduce can be used as well; it adds in an order of its own.
//
// Asynchronous: MPI is called by work on the communication stream of the first
// device, one collective after the other. CPU devices only.
//
// In a program that was built without Open MPI, Start returns an error.
//
// Errors: wrong arguments throw std::invalid_argument. If a process does not
// answer for `timeout_seconds`, or MPI reports an error, the operation fails
// with an AsyncError that names the process, by its MPI rank, and the
// schedule's step. MPI cannot be used after it: call Abort.
//
// Thread-safety: one thread makes the calls. Ownership: the world must outlive
// the work that it enqueued; it ends MPI, once per process.

#ifndef D2L_COMMON_PARALLEL_MPI_MPI_WORLD_H_
#define D2L_COMMON_PARALLEL_MPI_MPI_WORLD_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/source_location.h"
#include "common/device/stream.h"
#include "common/parallel/collective/collective.h"
#include "common/parallel/collective/schedule.h"

namespace d2l {

class MpiWorld {
 public:
  // Starts MPI. If MPI lacks what is needed, the error says what to type. Ends
  // the process, with a message, if the other processes do not start in time,
  // for which they have 20 seconds at least.
  static absl::StatusOr<std::unique_ptr<MpiWorld>> Start(
      double timeout_seconds = 60);
  // Ends MPI, when all processes do so.
  ~MpiWorld();
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;

  // Whether Open MPI was there when this program was built.
  static bool BuiltIn();
  // How many processes mpirun or Slurm's srun started together, and this one's
  // number; 1 and 0 if neither did. Known before Start, and without MPI.
  static int StartedProcesses();
  static int StartedProcess();
  // The number among the processes on this machine.
  static int StartedProcessOfMachine();

  int process() const { return process_; }
  int processes() const { return processes_; }

  // Every tensor becomes the sum of all ranks'. No algorithm: MPI_Allreduce.
  // kHost is not for several processes.
  Work AllReduceAsync(Replicas local,
                      std::optional<AllReduceAlgorithm> algorithm,
                      SourceLocation at = SourceLocation::Current()) {
    return RunAsync(Collective::kAllReduce, local, algorithm, at);
  }
  // AllReduceAsync, or its halves, ReduceScatterAsync and AllGatherAsync of all
  // ranks, which ignore the algorithm.
  Work RunAsync(Collective collective, Replicas local,
                std::optional<AllReduceAlgorithm> algorithm,
                SourceLocation at = SourceLocation::Current());

  // Waits for the value of each process; returns them in the processes' order.
  // To compare hashes. Needs no device.
  std::vector<std::uint64_t> Gather(
      std::uint64_t value, SourceLocation at = SourceLocation::Current());

  // Sets how errors of later calls begin: "batch 3 of epoch 1".
  void SetDuring(const std::string& what) { during_ = what + ": "; }

  // Ends all processes at once: mpirun exits with this code.
  [[noreturn]] static void Abort(int code);

 private:
  MpiWorld(double timeout_seconds, int process, int processes)
      : timeout_seconds_(timeout_seconds),
        process_(process),
        processes_(processes) {}

  int NextTag(bool gathers, std::uint64_t what = 0);

  const double timeout_seconds_;
  const int process_;
  const int processes_;
  std::string during_;
  Stream* stream_ = nullptr;  // of the last RunAsync
  unsigned calls_ = 0;
};

}  // namespace d2l

#endif  // D2L_COMMON_PARALLEL_MPI_MPI_WORLD_H_
