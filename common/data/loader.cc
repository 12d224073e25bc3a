#include "common/data/loader.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/strings/str_format.h"
#include "common/device/device_table.h"
#include "common/device/memory/memory.h"
#include "common/kernels/philox.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/primitives.h"

namespace d2l {
namespace {

constexpr std::size_t kBatchesAhead = 2;

std::array<float, 256> MakePixelValues() {
  std::array<float, 256> values;
  for (int i = 0; i < 256; ++i) values[i] = static_cast<float>(i) / 255;
  return values;
}

std::int64_t CountBatches(const Dataset& data, const LoaderOptions& options) {
  if (options.batch_size < 1) {
    throw std::invalid_argument(
        absl::StrFormat("DataLoader: a batch size of at least 1 wanted; got %d",
                        options.batch_size));
  }
  const std::int64_t whole = data.size() / options.batch_size;
  const bool rest = data.size() % options.batch_size != 0;
  return whole + (rest && !options.drop_last ? 1 : 0);
}

void Check(const Dataset& data) {
  if (data.images.size() != data.labels.size() * kImagePixels) {
    throw std::invalid_argument(
        absl::StrFormat("DataLoader: %d labels need %d pixels; %s has %d",
                        data.labels.size(), data.labels.size() * kImagePixels,
                        data.name.english, data.images.size()));
  }
  const auto wrong =
      std::find_if(data.labels.begin(), data.labels.end(),
                   [](std::uint8_t label) { return label >= kClasses; });
  if (wrong == data.labels.end()) return;
  throw std::invalid_argument(absl::StrFormat(
      "DataLoader: label %d of %s is %d; labels are from 0 to %d",
      wrong - data.labels.begin(), data.name.english, *wrong, kClasses - 1));
}

}  // namespace

// Fisher's and Yates's shuffle. A product of 128 bits selects the place; no
// place is more likely by more than 2^-64 times their number.
std::vector<std::int64_t> ShuffledOrder(std::int64_t count, std::uint64_t seed,
                                        std::int64_t epoch) {
  std::vector<std::int64_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  const auto low = [](std::uint64_t x) {
    return static_cast<std::uint32_t>(x);
  };
  const auto e = static_cast<std::uint64_t>(epoch);
  for (std::int64_t i = count - 1; i > 0; --i) {
    const auto n = static_cast<std::uint64_t>(i);
    const kernels::PhiloxBlock block =
        kernels::Philox4x32({{low(n), low(n >> 32), low(e), low(e >> 32)}},
                            low(seed), low(seed >> 32));
    const std::uint64_t random =
        std::uint64_t{block.word[0]} << 32 | block.word[1];
    std::swap(order[i],
              order[absl::Uint128High64(absl::uint128(random) * (n + 1))]);
  }
  return order;
}

// Makes all batches from a position on, on the prefetcher's thread.
class DataLoader::Stager {
 public:
  explicit Stager(const DataLoader& loader)
      : data_(loader.data_),
        options_(loader.options_),
        batches_(loader.batches_),
        memory_(PinnedMemory(loader.device_)),
        at_(loader.position_) {}

  Staged operator()() {
    if (at_.batch == batches_) {
      ++at_.epoch;
      at_.batch = 0;
      order_.clear();
    }
    if (order_.empty() && options_.shuffle) {
      order_ = ShuffledOrder(data_.size(), options_.seed, at_.epoch);
    }
    const std::int64_t first = at_.batch++ * options_.batch_size;
    const std::int64_t size =
        std::min(options_.batch_size, data_.size() - first);
    Staged staged = {
        size, memory_.AllocatePinned(size * kImagePixels * sizeof(float)),
        memory_.AllocatePinned(size * sizeof(std::int64_t))};
    auto* image = static_cast<float*>(staged.images->data());
    auto* label = static_cast<std::int64_t*>(staged.labels->data());
    static const std::array<float, 256> kValues = MakePixelValues();
    for (std::int64_t i = first; i < first + size; ++i) {
      const std::int64_t number = options_.shuffle ? order_[i] : i;
      const std::uint8_t* pixels = &data_.images[number * kImagePixels];
      image = std::transform(pixels, pixels + kImagePixels, image,
                             [](std::uint8_t byte) { return kValues[byte]; });
      *label++ = data_.labels[number];
    }
    return staged;
  }

 private:
  const Dataset& data_;
  const LoaderOptions options_;
  const std::int64_t batches_;
  DeviceMemory& memory_;
  LoaderPosition at_;
  std::vector<std::int64_t> order_;  // of this epoch
};

DataLoader::DataLoader(const Dataset& data, const LoaderOptions& options,
                       Device device)
    : data_(data),
      options_(options),
      device_(device),
      batches_(CountBatches(data, options)) {
  Check(data);
  PinnedMemory(device);  // throws if there is no such device
}

std::optional<Batch> DataLoader::Next(SourceLocation at) {
  if (position_.batch == batches_) {
    position_ = {position_.epoch + 1, 0};
    return std::nullopt;
  }
  try {
    if (prefetcher_ == nullptr) {
      prefetcher_ =
          std::make_unique<Prefetcher<Staged>>(Stager(*this), kBatchesAhead);
    }
    Staged staged = prefetcher_->Next();
    const ValueSpec images = {
        {staged.size, 1, kImageSide, kImageSide}, DType::kFloat32, device_};
    const ValueSpec labels = {{staged.size}, DType::kInt64, device_};
    Batch batch = {
        Apply(FromVectorPrimitive(images, std::move(staged.images)), {}, at),
        Apply(FromVectorPrimitive(labels, std::move(staged.labels)), {}, at)};
    ++position_.batch;
    return batch;
  } catch (...) {
    prefetcher_.reset();  // the next call tries this batch again
    throw;
  }
}

void DataLoader::SetPosition(LoaderPosition position) {
  if (position.epoch < 0 ||
      position.epoch > std::numeric_limits<std::int32_t>::max() ||
      position.batch < 0 || position.batch > batches_) {
    throw std::invalid_argument(absl::StrFormat(
        "DataLoader: there is no batch %d of epoch %d; an epoch has %d "
        "batches. "
        "Are the data and the batch size those that it was saved with?",
        position.batch, position.epoch, batches_));
  }
  prefetcher_.reset();
  position_ = position;
}

}  // namespace d2l
