// Types of the exercise overlap_the_gradients: gradients that become ready one
// by one, and a link.

#ifndef D2L_CHAPTERS_MULTI_GPU_EXERCISES_JUDGES_OVERLAP_THE_GRADIENTS_H_
#define D2L_CHAPTERS_MULTI_GPU_EXERCISES_JUDGES_OVERLAP_THE_GRADIENTS_H_

namespace d2l {

struct Gradient {
  double ready;  // when it is computed, in seconds; they come in this order
  double bytes;
};

struct GradientLink {
  double latency;  // of a message, in seconds
  double bytes_per_second;
};

}  // namespace d2l

#endif  // D2L_CHAPTERS_MULTI_GPU_EXERCISES_JUDGES_OVERLAP_THE_GRADIENTS_H_
