// First values for the parameters of a network (torch.nn.init).
//
//   nn::Sequential net(nn::Linear(20, 256), nn::ReLU(), nn::Linear(256, 10));
//   nn::InitXavierUniform(net);
//
// Weights, the parameters of two or more dimensions, are drawn from the
// generators of their devices; biases become 0; others, such as the scale of a
// normalisation, stay. They are written in place, and no tape notes it.
//
// Thread-safety: none.

#ifndef D2L_COMMON_NN_INIT_H_
#define D2L_COMMON_NN_INIT_H_

#include "common/nn/module.h"

namespace d2l::nn {

// Normal, with the mean 0.
void InitNormal(Module& module, double standard_deviation);

// Uniform in ±sqrt(6 / (fan_in + fan_out)).
void InitXavierUniform(Module& module);

}  // namespace d2l::nn

#endif  // D2L_COMMON_NN_INIT_H_
