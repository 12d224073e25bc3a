#include "common/exercise/probes.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <memory>
#include <random>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"
#include "common/device/listener.h"
#include "common/device/stream.h"

namespace d2l {
namespace {

constexpr std::chrono::seconds kPatience(3);

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

}  // namespace d2l
