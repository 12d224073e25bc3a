// RunningValues: the running mean and variance of batch normalisation, which
// move towards those of a batch, with the same bits in every back end.
//
//   const RunningValues<float> running(args);  // of BatchNormPass::kStatistics
//   running.Update(channel, mean, variance);   // the batch's, the biased one
//
// Thread-safety: channels may be updated at the same time.

#ifndef D2L_COMMON_KERNELS_RUNNING_VALUES_H_
#define D2L_COMMON_KERNELS_RUNNING_VALUES_H_

#include <cstdint>

#include "common/kernels/host_device.h"
#include "common/kernels/kernels.h"

namespace d2l::kernels {

template <typename T>
class RunningValues {
 public:
  explicit RunningValues(const BatchNormArgs& args)
      : mean_(static_cast<T*>(args.running_mean)),
        var_(static_cast<T*>(args.running_var)),
        kept_(static_cast<T>(1 - args.momentum)),
        of_mean_(static_cast<T>(args.momentum)) {
    // The running variance is unbiased: its denominator is n - 1.
    const double n = static_cast<double>(args.batch * args.inner);
    of_variance_ = static_cast<T>(args.momentum * n / (n - 1));
  }

  // Does nothing without running values.
  D2L_HOST_DEVICE void Update(std::int64_t channel, T mean, T variance) const {
    if (mean_ == nullptr) return;
    Move(mean_[channel], of_mean_ * mean);
    Move(var_[channel], of_variance_ * variance);
  }

 private:
  // A momentum of 1 forgets the old value, even NaN.
  D2L_HOST_DEVICE void Move(T& running, T part) const {
    running = kept_ == 0 ? part : part + kept_ * running;
  }

  T* mean_;
  T* var_;
  T kept_, of_mean_, of_variance_;
};

}  // namespace d2l::kernels

#endif  // D2L_COMMON_KERNELS_RUNNING_VALUES_H_
