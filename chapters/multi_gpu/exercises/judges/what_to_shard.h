// Types of the exercise what_to_shard: the devices, and the costs of a step.

#ifndef D2L_CHAPTERS_MULTI_GPU_EXERCISES_JUDGES_WHAT_TO_SHARD_H_
#define D2L_CHAPTERS_MULTI_GPU_EXERCISES_JUDGES_WHAT_TO_SHARD_H_

#include <cstdint>

namespace d2l {

// Data parallelism on `devices` equal devices. All sizes are in bytes.
struct Cluster {
  std::int64_t devices;
  std::int64_t parameters;   // of the whole network; as many of gradients, and
                             // of momentum
  std::int64_t activations;  // on each device; these stay where they are
  std::int64_t memory;       // that a device has
  std::int64_t link;         // that a device may receive in a step
};

// Each shards what the ones before it do, and something more: kAll the
// parameters as well (ZeRO's third stage, PyTorch's FSDP), which DataParallel
// here does not do. A device has 1 / devices of what is sharded.
enum class Sharded { kNothing, kMomentum, kGradients, kAll, kNoneFits };

}  // namespace d2l

#endif  // D2L_CHAPTERS_MULTI_GPU_EXERCISES_JUDGES_WHAT_TO_SHARD_H_
