// What the checkpoints of train.cc have, and going on from one.
//
//   Checkpoint checkpoint =
//       MakeCheckpoint(options, data, progress, net, sgd, processes);
//   absl::StatusOr<TrainingProgress> progress =
//       RestoreTraining(options, data, processes, net, sgd, batches);
//
// All processes call them. Errors name the file and what to type instead.

#ifndef D2L_CHAPTERS_MULTI_GPU_TRAIN_RESUME_H_
#define D2L_CHAPTERS_MULTI_GPU_TRAIN_RESUME_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "chapters/multi_gpu/train/options.h"
#include "chapters/multi_gpu/train/processes.h"
#include "common/data/loader.h"
#include "common/nn/module.h"
#include "common/nn/sgd.h"
#include "common/training/checkpoint.h"

namespace d2l {

Checkpoint MakeCheckpoint(const TrainOptions& options, const TrainData& data,
                          const TrainingProgress& progress,
                          const nn::Module& net, nn::SGD& sgd,
                          Processes& processes);

// From options.checkpoint: the network, the optimiser, the batches' position.
absl::StatusOr<TrainingProgress> RestoreTraining(const TrainOptions& options,
                                                 const TrainData& data,
                                                 const Processes& processes,
                                                 const nn::Module& net,
                                                 nn::SGD& sgd,
                                                 DataLoader& batches);

// What is not as it was when options.checkpoint was made, and so: sentences.
std::vector<std::string> ChangesSince(const TrainOptions& options,
                                      const TrainData& data,
                                      const Processes& processes);

}  // namespace d2l

#endif  // D2L_CHAPTERS_MULTI_GPU_TRAIN_RESUME_H_
