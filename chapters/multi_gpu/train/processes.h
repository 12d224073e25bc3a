// Processes: the processes that mpirun started to train one network together,
// for train.cc. Without mpirun there is only this process, and all sums and
// comparisons are over it alone.
//
//   absl::StatusOr<std::unique_ptr<Processes>> processes = Processes::Start();
//   (*processes)->Agree(Prepare());  // all go on, or all throw
//
// All processes make the same calls in the same order. Errors: CommonError if
// all processes know the error and end by themselves. A failure between
// processes throws AsyncError or std::runtime_error, with the rank that did not
// answer; then call Fail. Thread-safety: none.

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

namespace d2l {

// A hash of the parameters, the buffers and, unless each device has a shard of
// it, the momentum. Waits for them.
std::string HashOf(DataParallel& net);

// All processes throw it. The message is empty in those that leave printing to
// another process.
class CommonError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The signal that was received; 0 if none was.
int StopSignal();

class Processes {
 public:
  // Returns an error if mpirun started several processes and the program has no
  // MPI. The timeout is for the others' start and for each answer.
  static absl::StatusOr<std::unique_ptr<Processes>> Start(
      double timeout_seconds = 60);

  int rank() const { return world_ == nullptr ? 0 : world_->process(); }
  int size() const { return world_ == nullptr ? 1 : world_->processes(); }
  bool several() const { return size() > 1; }

  // Throws CommonError if any process passes an error, with the error of the
  // first such process.
  void Agree(const absl::Status& mine) const;
  // Throws CommonError, with two ranks and their values, unless all processes
  // have the same values. All must have the same names.
  void CheckSame(const std::map<std::string, std::string>& values) const;
  // Throws CommonError, with the ranks, unless all have the same value.
  void CheckEqual(const std::string& value, const std::string& what) const;
  // Returns the generators of all processes' devices.
  std::vector<GeneratorState> Gather(
      const std::vector<GeneratorState>& mine) const;
  std::int64_t Sum(std::int64_t mine) const;
  // The options, with the collective that adds up between the processes.
  DataParallelOptions Connect(const TrainOptions& options);
  // Records the first Ctrl-C or SIGTERM; the first process says so on stderr,
  // or the second, if the first is on another machine or gone. The second
  // signal ends the program at once.
  void StopOnSignals();
  // Sets the text that several processes print if they end early: how to
  // resume, and the current batch.
  void SetHowToGoOn(const std::string& text) { how_to_go_on_ = text; }
  void SetDuring(const std::string& where);
  // This process's part of the data.
  Dataset Part(Dataset data) const;

  // Prints to stderr, with the rank if there are several; nothing for "".
  void Complain(const std::string& message) const;
  // Also prints how to resume and ends all processes, if there are several.
  void Fail(const std::string& message) const;
  // "rank 2 of 4"
  std::string Name() const;

 private:
  // The values of all. When it returns, no message is still in transit.
  std::vector<std::string> Gather(const std::string& mine) const;
  // Throws CommonError with a message that all know after a Gather.
  [[noreturn]] void EndAll(const std::string& message) const;

  explicit Processes(std::unique_ptr<MpiWorld> world)
      : world_(std::move(world)) {}

  const std::unique_ptr<MpiWorld> world_;  // null without MPI
  std::string how_to_go_on_;
};

}  // namespace d2l

#endif  // D2L_CHAPTERS_MULTI_GPU_TRAIN_PROCESSES_H_
