// Shards: which elements of the parameters each device updates, and the
// optimisers that do it.
//
//   Shards shards(options.shard, &replicas, &buckets, all);
//   shards.Update(sums, {/*lr=*/0.1, /*momentum=*/0.9}, at);
//   shards.Show(at).momentum_buffers();  // whole, on the first device
//
// Without shards each device updates everything. With them, device r of n, of
// all processes, updates the r-th part of each bucket and has the only momentum
// of that part. Then all gather the new values.
//
// The momentum that Show gives may be written; MomentumWritten tells, and
// CopyMomentum gives it to the devices.
//
// For the thread of a DataParallel, which has the parts that this refers to.

#ifndef D2L_COMMON_PARALLEL_DATA_PARALLEL_SHARDS_H_
#define D2L_COMMON_PARALLEL_DATA_PARALLEL_SHARDS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/base/source_location.h"
#include "common/nn/sgd.h"
#include "common/parallel/data_parallel/buckets.h"
#include "common/parallel/data_parallel/communicator.h"
#include "common/parallel/data_parallel/options.h"
#include "common/parallel/data_parallel/replicas.h"
#include "common/tensor/tensor.h"

namespace d2l {

class Shards {
 public:
  // The elements of a bucket that a device updates.
  struct Range {
    std::int64_t begin;
    std::int64_t end;
    std::int64_t numel() const { return end - begin; }
  };

  Shards(Shard kind, ModuleReplicas* replicas, Buckets* buckets,
         const Communicator& all);

  bool sharded() const { return kind_ != Shard::kNone; }
  // Whether a device keeps only its shards of the gradients.
  bool of_gradients() const { return kind_ == Shard::kGradients; }
  Range RangeOf(std::size_t bucket, std::size_t device) const;

  // sums: the device's range of each bucket, by bucket and device.
  void Update(const std::vector<std::vector<Tensor>>& sums,
              const nn::SGDOptions& options, SourceLocation at);

  // An optimiser of the module, with the whole momentum, until Hide.
  nn::SGD& Show(SourceLocation at);
  void Hide();
  // Whether the momentum was written since it was shown.
  bool MomentumWritten() const;
  void CopyMomentum(SourceLocation at);
  // As before the first step.
  void DropMomentum();
  // Bytes of momentum on a device.
  std::int64_t momentum_bytes(std::size_t device);

 private:
  // The part of a parameter that a device updates: all, some or no elements.
  struct Piece {
    std::int64_t begin = 0;   // in the parameter
    std::int64_t offset = 0;  // in the device's range of the bucket
    Tensor x;

    // These elements of a tensor that has the parameter's shape, flat.
    Tensor Of(const Tensor& whole, SourceLocation at) const;
  };
  struct Part {                 // of a device
    std::vector<Piece> pieces;  // of each parameter
    nn::SGD sgd{{}, {/*lr=*/0}};
  };
  using Versions = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  using OfParameter =
      absl::FunctionRef<Tensor(std::size_t device, std::size_t parameter)>;

  Part MakePart(std::size_t device) const;
  // Gathers tensors like the parameters, of which each device has its pieces,
  // into `whole`, where that gives a tensor.
  void Gather(OfParameter piece, OfParameter whole, SourceLocation at);
  // The ids and versions of the momentum that is shown.
  Versions ShownVersions() const;

  const Shard kind_;
  ModuleReplicas& replicas_;
  Buckets& buckets_;
  const Communicator& all_;
  std::vector<Part> parts_;       // by device
  nn::SGD* shown_ = nullptr;      // the first device's, or the next
  std::optional<nn::SGD> whole_;  // with the gathered momentum
  Versions versions_;             // when it was shown
};

}  // namespace d2l

#endif  // D2L_COMMON_PARALLEL_DATA_PARALLEL_SHARDS_H_
