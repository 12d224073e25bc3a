// Processes: those that mpirun started to train one network together, for
// train.cc. If it started none, this one, and all that is summed or compared
// here is its own.
//
//   absl::StatusOr<std::unique_ptr<Processes>> processes = Processes::Start();
//   absl::Status status = (*processes)->Agree(Prepare());
//   if (!status.ok()) return (*processes)->Complain(status);
//
// All processes make the same calls in the same order. Errors: what fails
// between them throws, AsyncError or std::runtime_error, with the rank that was
// waited for; then Abort. Thread-safety: none.

#ifndef D2L_CHAPTERS_MULTI_GPU_TRAIN_PROCESSES_H_
#define D2L_CHAPTERS_MULTI_GPU_TRAIN_PROCESSES_H_

#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chapters/multi_gpu/train/options.h"
#include "common/data/dataset.h"
#include "common/nn/module.h"
#include "common/nn/sgd.h"
#include "common/ops/creation.h"
#include "common/parallel/data_parallel/data_parallel.h"
#include "common/parallel/mpi/mpi_world.h"
#include "common/parallel/nccl/nccl_library.h"

namespace d2l {

// Of the parameters, the buffers and the momentum. Waits for them.
std::uint64_t HashOf(const nn::Module& net, nn::SGD& sgd);

// All processes have met the same error: one message is enough.
class CommonError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The signal that came; 0 if none has.
int StopSignal();

class Processes {
 public:
  // An error if mpirun started several and the program has no MPI. The others
  // have that much time for each answer, and to start.
  static absl::StatusOr<std::unique_ptr<Processes>> Start(
      double timeout_seconds = 60);

  int rank() const { return world_ == nullptr ? 0 : world_->process(); }
  int size() const { return world_ == nullptr ? 1 : world_->processes(); }
  bool several() const { return size() > 1; }

  // OK if it is so in all processes. Else the first process that has an error
  // returns it, and the others Cancelled, of which Complain says nothing.
  absl::Status Agree(const absl::Status& mine);
  // Throws CommonError, with two ranks and their values, unless these are the
  // same in all. By name; all have the same names.
  void CheckSame(const std::map<std::string, std::string>& values);
  // Throws CommonError, with the ranks, unless the hash is the same in all.
  void CheckEqual(std::uint64_t hash, const std::string& what);
  // Of all processes' devices.
  std::vector<GeneratorState> Gather(const std::vector<GeneratorState>& mine);
  std::int64_t Sum(std::int64_t mine);
  // By which NCCL's ranks find each other: made by the first process. Throws
  // CommonError if it cannot make one.
  NcclId SharedNcclId();
  // The options' ones, with what adds up between the processes.
  DataParallelOptions Connect(const TrainOptions& options);
  // The first Ctrl-C or SIGTERM is noted, and the first process says so on
  // stderr, or the second if the first is not on this machine, or gone; the
  // second signal ends the program at once.
  void StopOnSignals();
  // What several processes say if they end early: how to go on, and the batch
  // that they are in.
  void SetHowToGoOn(const std::string& text) { how_to_go_on_ = text; }
  void SetDuring(const std::string& where);
  // This process's part.
  Dataset Part(Dataset data) const;

  // To stderr, with the rank where there are several. Returns 1.
  int Complain(const absl::Status& status) const;
  // The same for what was thrown; several processes say how to go on, and all
  // end at once.
  int Fail(const std::exception& error) const;
  // "rank 2 of 4"
  std::string Name() const;

 private:
  std::vector<std::string> Gather(const std::string& mine);

  explicit Processes(std::unique_ptr<MpiWorld> world)
      : world_(std::move(world)) {}

  const std::unique_ptr<MpiWorld> world_;  // null without MPI
  std::string how_to_go_on_;
};

}  // namespace d2l

#endif  // D2L_CHAPTERS_MULTI_GPU_TRAIN_PROCESSES_H_
