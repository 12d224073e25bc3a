#include "common/parallel/data_parallel/communicator.h"

#include <vector>

namespace d2l {

Work Communicator::Run(Collective collective,
                       const std::vector<Tensor>& tensors,
                       SourceLocation at) const {
  if (ranks() == 1) return {};
  if (options_.collective) return options_.collective(collective, tensors, at);
  switch (collective) {
    case Collective::kAllReduce:
      return AllReduceAsync(tensors, options_.allreduce, at);
    case Collective::kReduceScatter:
      return ReduceScatterAsync(tensors, at);
    case Collective::kAllGather:
      break;
  }
  return AllGatherAsync(tensors, at);
}

}  // namespace d2l
