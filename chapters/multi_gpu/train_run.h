// One run of train.cc, from its first line to its files.
//
//   absl::StatusOr<int> exit_code = RunTraining(options, data, processes);

#ifndef D2L_CHAPTERS_MULTI_GPU_TRAIN_RUN_H_
#define D2L_CHAPTERS_MULTI_GPU_TRAIN_RUN_H_

#include "absl/status/statusor.h"
#include "chapters/multi_gpu/processes.h"
#include "chapters/multi_gpu/train_data.h"
#include "chapters/multi_gpu/train_options.h"

namespace d2l {

// The exit code. StopOnSignals comes before it. In several processes it ends
// all of them if one is lost; throws CommonError where all have met the same.
absl::StatusOr<int> RunTraining(TrainOptions options, TrainData data,
                                Processes& processes);

}  // namespace d2l

#endif  // D2L_CHAPTERS_MULTI_GPU_TRAIN_RUN_H_
