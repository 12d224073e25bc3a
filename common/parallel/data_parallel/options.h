// DataParallelOptions: how a DataParallel splits batches and adds gradients up,
// and what each device holds a shard of.

#ifndef D2L_COMMON_PARALLEL_DATA_PARALLEL_OPTIONS_H_
#define D2L_COMMON_PARALLEL_DATA_PARALLEL_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "common/base/source_location.h"
#include "common/parallel/collective/collective.h"

namespace d2l {

// What each device holds only a shard of: nothing; the momentum; or that and
// the gradients.
enum class Shard { kNone, kOptimizer, kGradients };

struct DataParallelOptions {
  Shard shard = Shard::kNone;
  AllReduceAlgorithm allreduce = AllReduceAlgorithm::kSplit;
  // The weights of all processes' devices, see ShardSizes; if empty, the batch
  // is split evenly.
  std::vector<int> split;
  // Whether buckets are added up while gradients are computed, or afterwards.
  bool overlap = true;
  // How many steps may be enqueued and not yet done; at least 1.
  int max_in_flight = 2;
  // A bucket is full when it has this many bytes. The first is small, so that
  // the communication begins early.
  std::int64_t first_bucket_bytes = std::int64_t{1} << 20;
  std::int64_t bucket_bytes = std::int64_t{25} << 20;
  // Whether each Step restarts its devices' peaks of memory, for memory().
  bool measure_memory = false;
  // How many processes train together, and the number of this process: its
  // device i is number `process` * devices + i of all.
  int processes = 1;
  int process = 0;
  // A collective on a tensor of each device of this process and the others,
  // which all call it in the same order. If empty, collective.h's, for one
  // process, with the algorithm above.
  std::function<Work(Collective, Replicas, SourceLocation)> collective;
};

}  // namespace d2l

#endif  // D2L_COMMON_PARALLEL_DATA_PARALLEL_OPTIONS_H_
