// Shared by the tests of collectives: arrays on devices, and the sums that they
// must become.
//
// Oracles are plain loops, without schedules.

#ifndef D2L_COMMON_PARALLEL_COLLECTIVE_COLLECTIVE_TESTING_H_
#define D2L_COMMON_PARALLEL_COLLECTIVE_COLLECTIVE_TESTING_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/stream.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/record.h"
#include "common/ops/testing/testing.h"
#include "common/parallel/collective/schedule.h"
#include "common/tensor/dtype.h"
#include "common/tensor/tensor.h"

namespace d2l {

using Values = std::vector<float>;

// Groups of the table's devices: those of one type, and one of both types.
inline std::vector<std::vector<Device>> Groups() {
  std::vector<Device> cpu, cuda;
  for (const DeviceInfo& info : Devices()) {
    (info.device.type() == DeviceType::kCpu ? cpu : cuda)
        .push_back(info.device);
  }
  std::vector<std::vector<Device>> groups = {cpu};
  if (cuda.size() > 1) groups.push_back(cuda);
  if (!cuda.empty()) groups.push_back({cuda[0], cpu[0], cpu[1]});
  return groups;
}

inline std::vector<Values> RandomArrays(int ranks, std::int64_t length) {
  std::vector<Values> arrays;
  for (int r = 0; r < ranks; ++r) {
    const std::vector<double> values = RandomValues(length, DType::kFloat32);
    arrays.emplace_back(values.begin(), values.end());
  }
  return arrays;
}

inline std::vector<Tensor> Place(const std::vector<Values>& arrays,
                                 const std::vector<Device>& devices) {
  std::vector<Tensor> tensors;
  for (std::size_t r = 0; r < arrays.size(); ++r) {
    const auto length = static_cast<std::int64_t>(arrays[r].size());
    tensors.push_back(FromVector(arrays[r], {length}, devices[r]));
  }
  return tensors;
}

// The sum of elements [begin, end), from rank `first` on in that direction.
inline void SumInOrder(const std::vector<Values>& arrays, std::int64_t begin,
                       std::int64_t end, int first, int direction,
                       Values* sum) {
  const int ranks = static_cast<int>(arrays.size());
  for (std::int64_t i = begin; i < end; ++i) {
    float total = arrays[first][i];
    for (int k = 1; k < ranks; ++k) {
      total += arrays[(first + ranks + direction * k) % ranks][i];
    }
    (*sum)[i] = total;
  }
}

inline Values Expected(const std::vector<Values>& arrays,
                       AllReduceAlgorithm algorithm) {
  const int ranks = static_cast<int>(arrays.size());
  const auto length = static_cast<std::int64_t>(arrays[0].size());
  Values sum(length);
  const bool both = algorithm == AllReduceAlgorithm::kBidirectionalRing;
  if (!both && algorithm != AllReduceAlgorithm::kRing) {
    SumInOrder(arrays, 0, length, 0, 1, &sum);
    return sum;
  }
  const int chunks = both ? 2 * ranks : ranks;
  for (int c = 0; c < chunks; ++c) {
    SumInOrder(arrays, ChunkBegin(length, chunks, c),
               ChunkBegin(length, chunks, c + 1), c % ranks, c < ranks ? 1 : -1,
               &sum);
  }
  return sum;
}

inline bool SameBits(const Tensor& x, const Values& expected) {
  const auto found = ToVector<float>(x);
  return found.size() == expected.size() &&
         (found.empty() || std::memcmp(found.data(), expected.data(),
                                       found.size() * sizeof(float)) == 0);
}

// For each move of a collective that this thread requests, calls `before`
// before and `after` after the move is enqueued, with its number (not counting
// kBegin and kEnd) and its stream.
class MoveListener final : public OpListener {
 public:
  using Callback = std::function<void(int, Stream&)>;
  explicit MoveListener(
      Callback before, Callback after = [](int, Stream&) {})
      : before_(std::move(before)), after_(std::move(after)) {}
  bool wants_times() const override { return true; }
  OpStamps* NewStamps(Stream& stream) override {
    before_(count_, stream);
    return nullptr;
  }
  void OnOp(const OpRecord& record) override {
    after_(count_++, *record.stream);
  }

 private:
  const Callback before_, after_;
  int count_ = 0;
  const ScopedOpListener listen_{this};
};

inline std::vector<Device> CpuDevices(std::size_t most) {
  std::vector<Device> devices = Groups()[0];
  devices.resize(std::min(devices.size(), most));
  return devices;
}

}  // namespace d2l

#endif  // D2L_COMMON_PARALLEL_COLLECTIVE_COLLECTIVE_TESTING_H_
