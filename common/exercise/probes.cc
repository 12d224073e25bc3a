#include "common/exercise/probes.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/listener.h"
#include "common/device/stream.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/primitive.h"
#include "common/tensor/shape.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

constexpr std::chrono::seconds kPatience(3);

thread_local int allocations = 0;

std::mt19937& Generator() {
  static auto& generator = *new std::mt19937(std::random_device{}());
  return generator;
}

}  // namespace

std::vector<float> RandomNumbers(std::size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> size(0, 1.5);
  std::bernoulli_distribution negative(0.4);
  std::vector<float> numbers(count);
  for (float& number : numbers) {
    const double magnitude = std::exp(size(generator));
    number = static_cast<float>(negative(generator) ? -magnitude : magnitude);
  }
  return numbers;
}

std::vector<float> RandomNumbers(std::size_t count, unsigned seed,
                                 NumberKind kind) {
  std::vector<float> numbers = RandomNumbers(count, seed);
  if (count == 0) return numbers;
  using Limits = std::numeric_limits<float>;
  const std::size_t place = std::mt19937(seed)() % count;
  switch (kind) {
    case NumberKind::kMixed:
      break;
    case NumberKind::kHuge:
      for (float& number : numbers) number *= 1e30f;
      break;
    case NumberKind::kTiny:
      for (float& number : numbers) number *= 1e-30f;
      break;
    case NumberKind::kNegative:
      for (float& number : numbers) number = -std::abs(number);
      break;
    case NumberKind::kFirstFarBelow:
      numbers[0] = -1000;
      break;
    case NumberKind::kWithNan:
      numbers[place] = Limits::quiet_NaN();
      [[fallthrough]];
    case NumberKind::kWithInfinity:
      numbers[count - 1 - place] =
          numbers[place] < 0 ? -Limits::infinity() : Limits::infinity();
      break;
  }
  return numbers;
}

double Drawn(double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(Generator());
}

std::vector<float> DrawnNumbers() {
  const auto drawn = [](double low, double high) {
    return static_cast<float>(Drawn(low, high));
  };
  return {drawn(-9, -1), drawn(0.1, 0.9), 0, drawn(1e3, 1e4)};
}

Allocations::Allocations() : before_(allocations) {}

int Allocations::count() const { return allocations - before_; }

bool Fenced::Whole() const {
  const auto end = all_.begin() + static_cast<std::ptrdiff_t>(kFence);
  const auto as_before = [this](float number) { return number == before_; };
  return std::all_of(all_.begin(), end, as_before) &&
         std::all_of(end + static_cast<std::ptrdiff_t>(size_), all_.end(),
                     as_before);
}

Requests::Requests(const Stream* recorded)
    : recorded_(recorded),
      op_listener_(this),
      device_listener_(this, kWaits | kStreams) {}

void Requests::OnOp(const OpRecord& record) {
  ++operations;
  ++on_stream[record.stream];
  if (std::string_view(record.primitive->name()) == "from_vector") {
    ++of_the_host;
  }
}

void Requests::OnStream(const StreamRecord& record) {
  if (record.kind == StreamRecord::Kind::kWait) {
    ++stream_waits;
    before_wait = operations;
  }
  if (record.kind == StreamRecord::Kind::kRecord &&
      (recorded_ == nullptr || recorded_ == record.stream)) {
    before_record = operations;
  }
  if (record.kind != StreamRecord::Kind::kCopy) return;
  ++copies;
  copied_bytes += record.bytes;
}

struct Gate::State {
  Mutex mutex;
  CondVar opened;
  bool open ABSL_GUARDED_BY(mutex) = false;
  bool timed_out ABSL_GUARDED_BY(mutex) = false;
};

Gate::Gate(Stream& stream) : state_(std::make_shared<State>()) {
  stream.HostCallback([state = state_] {
    MutexLock lock(state->mutex);
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!state->open) {
      const auto left = deadline - std::chrono::steady_clock::now();
      if (left.count() <= 0) {
        state->open = state->timed_out = true;
        break;
      }
      state->opened.WaitFor(state->mutex, left);
    }
  });
}

void Gate::Open() {
  MutexLock lock(state_->mutex);
  state_->open = true;
  state_->opened.NotifyAll();
}

bool Gate::TimedOut() const {
  MutexLock lock(state_->mutex);
  return state_->timed_out;
}

LateTensors::LateTensors(const std::vector<std::vector<float>>& numbers,
                         const Shape& shape, Device device) {
  std::vector<Tensor> values;
  for (const std::vector<float>& some : numbers) {
    values.push_back(FromVector(some, shape, device));
    tensors_.push_back(Zeros(shape, device));
  }
  Synchronize(device);
  gate_.emplace(CurrentStream(device));
  for (std::size_t i = 0; i < values.size(); ++i) {
    CopyTo(values[i], tensors_[i]);
  }
}

bool LateTensors::Arrive() {
  gate_->Open();
  return gate_->TimedOut();
}

}  // namespace d2l

// In every program that has judges, in place of the C library's, which operator
// new calls. A sanitizer has its own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier): glibc's names
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
// NOLINTEND(bugprone-reserved-identifier)
void* malloc(std::size_t bytes) noexcept {
  ++d2l::allocations;
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) noexcept {
  ++d2l::allocations;
  return __libc_calloc(count, bytes);
}
}
#endif
