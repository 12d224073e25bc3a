// Processes: those that mpirun started to train one network together, for
// train.cc. If it started none, this one, and all that is summed or compared
// here is its own.
//
//   absl::StatusOr<std::unique_ptr<Processes>> processes = Processes::Start();
//   (*processes)->Agree(Prepare());  // all go on, or all throw
//
// All processes make the same calls in the same order. Errors: CommonError if
// all know of it and end by themselves; what fails between them throws
// AsyncError or std::runtime_error, with the rank that was waited for; then
// Fail. Thread-safety: none.

#ifndef D2L_CHAPTERS_MULTI_GPU_TRAIN_PROCESSES_H_
#define D2L_CHAPTERS_MULTI_GPU_TRAIN_PROCESSES_H_

#include <cstdint>
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
#include "common/ops/creation.h"
#include "common/parallel/data_parallel/data_parallel.h"
#include "common/parallel/mpi/mpi_world.h"
#include "common/parallel/nccl/nccl.h"

namespace d2l {

// Of the parameters, the buffers and, unless each has a shard of it, the
// momentum. Waits for them.
std::string HashOf(DataParallel& net);

// All processes throw it. The message is empty in those that leave it to
// another one.
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

  // Throws CommonError if this is an error in any process, with that of the
  // first that has one.
  void Agree(const absl::Status& mine) const;
  // Throws it, with two ranks and their values, unless these are the same in
  // all. By name; all have the same names.
  void CheckSame(const std::map<std::string, std::string>& values) const;
  // Throws it, with the ranks, unless the value is the same in all.
  void CheckEqual(const std::string& value, const std::string& what) const;
  // Of all processes' devices.
  std::vector<GeneratorState> Gather(
      const std::vector<GeneratorState>& mine) const;
  std::int64_t Sum(std::int64_t mine) const;
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

  // To stderr, with the rank where there are several; nothing if it is empty.
  void Complain(const std::string& message) const;
  // Also says how to go on and ends all processes, if there are several.
  void Fail(const std::string& message) const;
  // "rank 2 of 4"
  std::string Name() const;

 private:
  // The values of all. When it returns, nothing that was sent is on its way.
  std::vector<std::string> Gather(const std::string& mine) const;
  // Throws CommonError with a message that all know, after a Gather.
  [[noreturn]] void EndAll(const std::string& message) const;

  explicit Processes(std::unique_ptr<MpiWorld> world)
      : world_(std::move(world)) {}

  const std::unique_ptr<MpiWorld> world_;  // null without MPI
  std::string how_to_go_on_;
};

}  // namespace d2l

#endif  // D2L_CHAPTERS_MULTI_GPU_TRAIN_PROCESSES_H_
