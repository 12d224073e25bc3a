// TrainSteps: the steps of train.cc on several devices, in one process or
// several.
//
//   DataParallel net(MakeNet(options), ids, OptionsOf(options, processes));
//   TrainSteps steps(options, processes, net, batches);
//   while (!steps.AskedToStop()) steps.Step(*batches.Next());
//
// Several processes compare their parameters every options.check_every steps,
// and stop at the same step if one of them is asked to. Errors: CommonError if
// the parameters differ; what DataParallel::Step throws.
//
// Thread-safety: none. All that it is made of outlives it.

#ifndef D2L_CHAPTERS_MULTI_GPU_TRAIN_STEPS_H_
#define D2L_CHAPTERS_MULTI_GPU_TRAIN_STEPS_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "chapters/multi_gpu/processes.h"
#include "chapters/multi_gpu/train_options.h"
#include "common/data/loader.h"
#include "common/parallel/data_parallel.h"
#include "common/tensor/tensor.h"
#include "common/training/trainer.h"

namespace d2l {

// The options with what adds up between the processes.
DataParallelOptions OptionsOf(const TrainOptions& options,
                              Processes& processes);

class TrainSteps {
 public:
  TrainSteps(const TrainOptions& options, Processes& processes,
             DataParallel& net, const DataLoader& batches)
      : options_(options),
        processes_(processes),
        net_(net),
        batches_(batches) {}

  // With the batch that came last from the loader.
  StepResult Step(const Batch& batch);
  // By a signal to one of the processes.
  bool AskedToStop();
  // That all processes have the same; when: "at the start".
  void CheckParameters(const std::string& when);
  // Over all processes, each with a part of the images; nothing if it was
  // stopped, which several processes are not.
  std::optional<double> TestAccuracy(DataLoader& part, std::int64_t images);
  // What a process that is asked to stop says, should that be its end.
  void SetHowToGoOn(std::string text) { how_to_go_on_ = std::move(text); }

 private:
  void BeginStep();
  Tensor EndStep(const Tensor& right);

  const TrainOptions& options_;
  Processes& processes_;
  DataParallel& net_;
  const DataLoader& batches_;
  std::string how_to_go_on_;
  // Of each step of late, more than 0 if a process was asked to stop.
  std::deque<Tensor> stops_;
  bool stopping_ = false;
};

}  // namespace d2l

#endif  // D2L_CHAPTERS_MULTI_GPU_TRAIN_STEPS_H_
