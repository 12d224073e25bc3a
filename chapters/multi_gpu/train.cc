// Trains a network on images, on one device or, each with a part of every
// batch, on several:
//
//   bazel run //chapters/multi_gpu:train -- --net=lenet
//   --save=lenet.safetensors
//
// and, where there is Open MPI, in several processes that have as many devices
// each:
//
//   mpirun -np 4 bazel-bin/chapters/multi_gpu/train --devices=cpu:0
//
// Ctrl-C saves a checkpoint, from which --resume goes on, on the same hardware
// bit for bit, as the unbroken run would have; a second one ends the program at
// once. The exit code is 0, 128 + the signal for a run that was stopped, and
// else 1.

#include <fcntl.h>
#include <unistd.h>

#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chapters/multi_gpu/processes.h"
#include "chapters/multi_gpu/stopping.h"
#include "chapters/multi_gpu/train_data.h"
#include "chapters/multi_gpu/train_options.h"
#include "chapters/multi_gpu/train_run.h"
#include "common/base/console/command_line.h"
#include "common/base/console/text.h"
#include "common/lesson/language.h"
#include "common/parallel/mpi/mpi_world.h"

namespace d2l {
namespace {

absl::StatusOr<int> TrainMain(int argc, char** argv, Processes& processes) {
  absl::StatusOr<TrainOptions> options =
      ParseTrainOptions(argc, argv, processes.rank(), processes.size());
  absl::Status status = processes.Agree(options.status());
  if (!status.ok()) return status;
  // Before anything depends on them: they decide what is sent.
  processes.CheckSame(options->SameInAllProcesses());
  absl::StatusOr<TrainData> data = LoadData(options->data_dir, options->images);
  status = processes.Agree(data.status());
  if (!status.ok()) return status;
  StopOnSignals();
  return RunTraining(*std::move(options), *std::move(data), processes);
}

int RunProcess(int argc, char** argv) {
  const absl::StatusOr<std::unique_ptr<Processes>> started =
      Processes::Start(MpiTimeout(argc, argv));
  if (!started.ok()) {
    if (MpiWorld::StartedProcess() > 0) return 0;  // the first says it
    std::cerr << Wrap(
        TranslatedMessage(std::string(started.status().message())),
        Lead("Error:"));
    return 1;
  }
  Processes& processes = **started;
  if (processes.rank() > 0 && dup2(open("/dev/null", O_WRONLY), 1) < 0) {
    return 1;
  }
  try {
    const absl::StatusOr<int> exit_code = TrainMain(argc, argv, processes);
    return exit_code.ok() ? *exit_code : processes.Complain(exit_code.status());
  } catch (const CommonError& error) {
    // The others wait in MPI's end until the first has printed it.
    if (processes.rank() > 0) return 1;
    processes.Complain(absl::InternalError(error.what()));
  } catch (const std::exception& error) {
    processes.Complain(absl::UnknownError(error.what()));
  }
  if (processes.several()) MpiWorld::Abort(1);
  return 1;
}

}  // namespace
}  // namespace d2l

int main(int argc, char** argv) {
  d2l::CheckStdoutAtExit();
  d2l::SetLanguageOf(argc, argv);
  if (d2l::AsksForHelp(argc, argv)) {
    if (d2l::MpiWorld::StartedProcess() == 0) std::cout << d2l::TrainHelp();
    return 0;
  }
  return d2l::RunProcess(argc, argv);
}
