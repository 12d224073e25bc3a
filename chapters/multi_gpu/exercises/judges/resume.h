// The type of the exercise resume: a small training that is hard to resume.

#ifndef D2L_CHAPTERS_MULTI_GPU_EXERCISES_JUDGES_RESUME_H_
#define D2L_CHAPTERS_MULTI_GPU_EXERCISES_JUDGES_RESUME_H_

#include "common/device/device.h"
#include "common/nn/layers.h"
#include "common/nn/sgd.h"

namespace d2l {

struct Training {
  // From the beginning, with first values from the device's generator.
  explicit Training(Device device);
  void Step();

  const Device device;
  nn::Sequential net;  // with dropout, which draws from the same generator
  nn::SGD sgd;         // with momentum; it writes to the parameters' memory
  // The batch of the next step. Each epoch has an order of its own.
  int epoch = 0;
  int batch = 0;
  int steps = 0;  // done so far; the learning rate falls with them
};

}  // namespace d2l

#endif  // D2L_CHAPTERS_MULTI_GPU_EXERCISES_JUDGES_RESUME_H_
