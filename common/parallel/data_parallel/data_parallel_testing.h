// Shared by the tests of DataParallel: a small network, batches, and one device
// that computes the same as several.

#ifndef D2L_COMMON_PARALLEL_DATA_PARALLEL_DATA_PARALLEL_TESTING_H_
#define D2L_COMMON_PARALLEL_DATA_PARALLEL_DATA_PARALLEL_TESTING_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "common/autograd/tape.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/testing/testing.h"
#include "common/nn/layers.h"
#include "common/nn/module.h"
#include "common/nn/sgd.h"
#include "common/ops/ops.h"
#include "common/ops/testing/testing.h"
#include "common/parallel/data_parallel/data_parallel.h"

namespace d2l {

inline constexpr int kClasses = 10;

// The numbers of the first `count` of the devices to test.
inline std::vector<int> Ids(int count) {
  std::vector<int> ids;
  for (const Device device : AllDevices()) {
    for (std::size_t i = 0; i < Devices().size(); ++i) {
      if (Devices()[i].device == device &&
          static_cast<int>(ids.size()) < count) {
        ids.push_back(static_cast<int>(i));
      }
    }
  }
  return ids;
}

inline Device First() { return AllDevices()[0]; }

inline nn::Sequential Mlp(Device device = First()) {
  return nn::Sequential(nn::Linear(7, 13, device), nn::ReLU(),
                        nn::Linear(13, kClasses, device));
}

struct TestBatch {
  Tensor x;
  Tensor labels;
};
inline TestBatch MakeBatch(std::int64_t samples, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < samples; ++i) {
    labels.push_back(random() % kClasses);
  }
  return {RandomTensor({samples, 7}, First()),
          FromVector<std::int64_t>(labels, {samples}, First())};
}

// All bits: 0 and -0 differ.
inline std::vector<std::uint32_t> BitsOf(const Tensor& x) {
  const std::vector<float> values = ToVector<float>(x);
  std::vector<std::uint32_t> bits(values.size());
  if (!bits.empty()) std::memcpy(bits.data(), values.data(), 4 * bits.size());
  return bits;
}

inline std::vector<std::vector<std::uint32_t>> BitsOf(const nn::Module& net) {
  std::vector<std::vector<std::uint32_t>> bits;
  for (const auto& [name, x] : nn::NamedState(net)) {
    if (x.dtype() == DType::kFloat32) bits.push_back(BitsOf(x));
  }
  return bits;
}

// One device that computes the shards, one after the other, each with a clone
// of the net. It adds up their gradients, and takes the weighted mean of their
// buffers.
class OneDevice {
 public:
  OneDevice(const nn::Module& net, const nn::SGDOptions& options)
      : net_(nn::Clone(net, First())), sgd_(nn::Parameters(*net_), options) {}

  Tensor Step(const TestBatch& batch, const std::vector<std::int64_t>& sizes) {
    const auto samples = static_cast<double>(batch.x.size(0));
    std::vector<Tensor> gradients, buffers;
    Tensor mean;
    std::int64_t begin = 0;
    for (const std::int64_t size : sizes) {
      if (size == 0) continue;
      const std::unique_ptr<nn::Module> net = nn::Clone(*net_, First());
      const Tensor x = Slice(batch.x, 0, begin, begin + size);
      const Tensor labels = Slice(batch.labels, 0, begin, begin + size);
      begin += size;
      GradientTape tape(nn::Parameters(*net));
      const Tensor loss =
          nn::CrossEntropyLoss((*net)(x), labels, nn::Reduction::kSum);
      Add(tape.Backward(loss, FullLike(loss, 1.0 / samples)), &gradients);
      mean = mean.defined() ? mean + loss * (1.0 / samples)
                            : loss * (1.0 / samples);
      std::vector<Tensor> parts;
      for (const auto& [name, buffer] : nn::NamedBuffers(*net)) {
        const double weight = static_cast<double>(size) / samples;
        parts.push_back(IsFloatingPoint(buffer.dtype()) ? buffer * weight
                                                        : buffer);
      }
      Add(parts, &buffers);
    }
    sgd_.Step(gradients);
    const auto named = nn::NamedBuffers(*net_);
    for (std::size_t i = 0; i < named.size(); ++i) {
      const Tensor& buffer = named[i].second;
      if (IsFloatingPoint(buffer.dtype())) CopyTo(buffers[i], buffer);
    }
    return mean;
  }

  nn::Module& net() { return *net_; }

 private:
  static void Add(const std::vector<Tensor>& more, std::vector<Tensor>* sums) {
    if (sums->empty()) {
      *sums = more;
      return;
    }
    for (std::size_t i = 0; i < more.size(); ++i) {
      (*sums)[i] = (*sums)[i] + more[i];
    }
  }

  std::unique_ptr<nn::Module> net_;
  nn::SGD sgd_;
};

inline DataParallelOptions WithBuckets(std::int64_t bytes, bool overlap,
                                       std::vector<int> split = {}) {
  DataParallelOptions options;
  options.first_bucket_bytes = options.bucket_bytes = bytes;
  options.overlap = overlap;
  options.split = std::move(split);
  return options;
}

}  // namespace d2l

#endif  // D2L_COMMON_PARALLEL_DATA_PARALLEL_DATA_PARALLEL_TESTING_H_
