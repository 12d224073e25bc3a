// TrainingStep: the passes of one step of training on all devices, and the sums
// of their gradients.
//
//   TrainingStep step(options, all, &replicas, &buckets, shards, at);
//   step.Run(images, labels, share);
//   shards.Update(step.sums, sgd, at);
//
// Each device runs the forward pass of its part of the batch. Then the devices
// go back together, bucket by bucket: when all have filled one, it is added up
// among them while they compute the next.
//
// For the thread of a DataParallel. Throws what the module throws.

#ifndef D2L_COMMON_PARALLEL_DATA_PARALLEL_STEP_H_
#define D2L_COMMON_PARALLEL_DATA_PARALLEL_STEP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/autograd/tape.h"
#include "common/base/source_location.h"
#include "common/parallel/data_parallel/buckets.h"
#include "common/parallel/data_parallel/communicator.h"
#include "common/parallel/data_parallel/options.h"
#include "common/parallel/data_parallel/replicas.h"
#include "common/parallel/data_parallel/shards.h"
#include "common/parallel/data_parallel/split_batch.h"
#include "common/tensor/tensor.h"

namespace d2l {

class TrainingStep {
 public:
  TrainingStep(const DataParallelOptions& options, const Communicator& all,
               ModuleReplicas* replicas, Buckets* buckets, const Shards& shards,
               SourceLocation at);

  // x, labels: the whole batch, of which this process computes its share.
  void Run(const Tensor& x, const Tensor& labels, const BatchShare& share);

  // The results.
  Tensor loss;                  // the batch's mean, on the first device
  std::vector<Tensor> outputs;  // of the devices that have samples
  std::vector<std::vector<Tensor>> sums;  // as Shards::Update wants them
  std::vector<std::int64_t> activations;  // bytes kept by each device's forward

 private:
  // A device's forward and backward pass.
  struct Pass {
    Pass(const std::vector<Tensor>& parameters, SourceLocation at)
        : tape(parameters, at), gradients(parameters.size()) {}

    GradientTape tape;
    std::vector<Tensor> gradients;  // known, and not in their bucket yet
    Tensor loss;
    bool counts = true;  // whether the gradients are added up
  };

  // Enqueues the forward pass of a device's part. Returns the outputs.
  Tensor Forward(std::size_t device, const Tensor& x, const Tensor& labels,
                 double scale);
  // For a process without samples: computes some of the others', which do not
  // count, to write the buffers as the others do.
  void ForwardForOthers(const Tensor& x, const Tensor& labels);
  void BackwardAndAddUp();
  // Continues the device's backward pass until the bucket's gradients are
  // known, and writes them there; zeros if it has no samples.
  void Fill(std::size_t device, std::size_t bucket, const Tensor& gradients);
  void MakeLoss();
  // Buffers that a device has written become the mean of the devices', weighted
  // with the sizes of their parts of the batch.
  void AverageBuffers(const std::vector<std::int64_t>& sizes,
                      std::int64_t samples);

  const DataParallelOptions& options_;
  const Communicator& all_;
  ModuleReplicas& replicas_;
  Buckets& buckets_;
  const Shards& shards_;
  const SourceLocation at_;
  // By device; null without samples. Ended before those that began earlier.
  std::vector<std::unique_ptr<Pass>> passes_;
};

}  // namespace d2l

#endif  // D2L_COMMON_PARALLEL_DATA_PARALLEL_STEP_H_
