// KvStore: the book's parameter server, with its push and pull.
//
//   KvStore store(cpu0);
//   store.Init("w", Zeros({3}, cpu0));
//   store.Push("w", {Full({3}, 1, cpu0), Full({3}, 2, cpu1)});
//   std::vector<Tensor> weights = {Empty({3}, cpu0), Empty({3}, cpu1)};
//   store.Pull("w", weights);  // both are 3
//
// A push adds the devices' values up, in their order, on the server's device.
// Then the updater combines the sum with the stored value; without one the sum
// replaces it. So workers that push gradients and pull weights need not know
// the number of workers.
//
// Asynchronous, on the devices' current streams, as CopyTo is.
//
// Errors: std::invalid_argument for a key that does not exist, or is
// initialised twice, and for values of another shape or dtype. A failed value
// fails the stored one, and what is pulled from it.
//
// Not thread-safe.

#ifndef D2L_COMMON_PARALLEL_DATA_PARALLEL_KV_STORE_H_
#define D2L_COMMON_PARALLEL_DATA_PARALLEL_KV_STORE_H_

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/types/span.h"
#include "common/base/source_location.h"
#include "common/device/device.h"
#include "common/tensor/tensor.h"

namespace d2l {

class KvStore {
 public:
  // Updates `stored`, in place, with the sum of the pushed values.
  using Updater = std::function<void(const std::string& key, const Tensor& sum,
                                     const Tensor& stored)>;

  explicit KvStore(Device server, Updater updater = nullptr)
      : server_(server), updater_(std::move(updater)) {}

  // Stores a copy.
  void Init(const std::string& key, const Tensor& value,
            SourceLocation at = SourceLocation::Current());
  void Push(const std::string& key, absl::Span<const Tensor> per_device,
            SourceLocation at = SourceLocation::Current());
  // Copies the stored value into each tensor.
  void Pull(const std::string& key, absl::Span<const Tensor> per_device,
            SourceLocation at = SourceLocation::Current());

 private:
  const Tensor& Find(const char* name, const std::string& key,
                     absl::Span<const Tensor> per_device,
                     SourceLocation at) const;

  const Device server_;
  const Updater updater_;
  std::map<std::string, Tensor> values_;
};

}  // namespace d2l

#endif  // D2L_COMMON_PARALLEL_DATA_PARALLEL_KV_STORE_H_
