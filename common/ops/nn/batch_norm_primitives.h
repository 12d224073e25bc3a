// The primitives of batch_norm.h, and of its gradients, for tracing, rewriting
// and replaying programs. Their inputs are contiguous: x and what is as x of
// shape (batch, channels, …), statistics (2, channels), the others (channels).
//
// Immutable values; see primitive.h.

#ifndef D2L_COMMON_OPS_NN_BATCH_NORM_PRIMITIVES_H_
#define D2L_COMMON_OPS_NN_BATCH_NORM_PRIMITIVES_H_

#include <cstdint>
#include <vector>

#include "common/ops/primitive.h"

namespace d2l {

// Of x: the means, then the variances.
class BatchNormStatisticsPrimitive final
    : public Cloneable<BatchNormStatisticsPrimitive> {
 public:
  const char* name() const override { return "batch_norm_stats"; }
  ValueSpec Infer(Inputs inputs, int) const override;
  std::uint64_t Launch(Stream& stream, const OpLabel& label, Inputs inputs,
                       Outputs outputs) const override;
};

// Its inputs: x, statistics, weight, bias.
class BatchNormPrimitive final : public Cloneable<BatchNormPrimitive> {
 public:
  // training: the statistics are those of x, so that the gradient of x goes
  // through them as well. They are no way for gradients of their own.
  BatchNormPrimitive(bool training, double eps)
      : training_(training), eps_(eps) {}

  const char* name() const override { return "batch_norm"; }
  ValueSpec Infer(Inputs inputs, int) const override;
  std::uint64_t Launch(Stream& stream, const OpLabel& label, Inputs inputs,
                       Outputs outputs) const override;
  std::vector<Attribute> attributes() const override;

  bool training() const { return training_; }
  double eps() const { return eps_; }

 private:
  const bool training_;
  const double eps_;
};

// The gradients of the bias and of the weight, (2, channels). Its inputs: the
// gradient of the output, x, statistics.
class BatchNormSumsPrimitive final : public Cloneable<BatchNormSumsPrimitive> {
 public:
  // training: the statistics are those of x.
  BatchNormSumsPrimitive(bool training, double eps)
      : training_(training), eps_(eps) {}

  const char* name() const override { return "batch_norm_backward_reduce"; }
  ValueSpec Infer(Inputs inputs, int) const override;
  std::uint64_t Launch(Stream& stream, const OpLabel& label, Inputs inputs,
                       Outputs outputs) const override;
  std::vector<Attribute> attributes() const override;

  bool training() const { return training_; }
  double eps() const { return eps_; }

 private:
  const bool training_;
  const double eps_;
};

// Its inputs: the gradient of the output, x, statistics, weight and, if the
// statistics are those of x, the sums.
class BatchNormInputGradientPrimitive final
    : public Cloneable<BatchNormInputGradientPrimitive> {
 public:
  explicit BatchNormInputGradientPrimitive(double eps) : eps_(eps) {}

  const char* name() const override { return "batch_norm_backward_elemt"; }
  ValueSpec Infer(Inputs inputs, int) const override;
  std::uint64_t Launch(Stream& stream, const OpLabel& label, Inputs inputs,
                       Outputs outputs) const override;
  std::vector<Attribute> attributes() const override;

  double eps() const { return eps_; }

 private:
  const double eps_;
};

}  // namespace d2l

#endif  // D2L_COMMON_OPS_NN_BATCH_NORM_PRIMITIVES_H_
