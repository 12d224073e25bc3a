// What the flags of train.cc say about devices and how they add up. For
// train_options.cc.
//
//   absl::Status status = TakeDevices(&options);  // after the device table
//
// Errors say what was asked, what is there and what to type instead.
// Thread-safety: none.

#ifndef D2L_CHAPTERS_MULTI_GPU_TRAIN_DEVICES_H_
#define D2L_CHAPTERS_MULTI_GPU_TRAIN_DEVICES_H_

#include <string>

#include "absl/status/status.h"
#include "chapters/multi_gpu/train_options.h"

namespace d2l {

// What --devices means in a process of several on a machine: with "auto" it has
// the `count` GPUs behind those of the processes before it, if there are so
// many that it can see (with CUDA_VISIBLE_DEVICES its own ones).
std::string DevicesOfProcess(const std::string& devices, int count, int process,
                             int gpus);

// Those of the table that are to train, and how.
absl::Status TakeDevices(TrainOptions* options);

}  // namespace d2l

#endif  // D2L_CHAPTERS_MULTI_GPU_TRAIN_DEVICES_H_
