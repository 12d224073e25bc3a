#include "common/device/stream.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace d2l {
namespace internal {
namespace {

bool LaunchBlockingFromEnvironment() {
  const char* value = std::getenv("CUDA_LAUNCH_BLOCKING");
  return value != nullptr && std::string(value) == "1";
}

}  // namespace

std::atomic<bool> launch_blocking{LaunchBlockingFromEnvironment()};

}  // namespace internal

std::string Stream::name() const {
  if (index_ == 0) return device_.ToString();
  return absl::StrCat(device_.ToString(), "/", index_);
}

std::function<void()> Stream::Hold() {
  struct Gate {
    std::mutex mutex;
    std::condition_variable changed;
    bool reached = false;
    bool open = false;
  };
  auto gate = std::make_shared<Gate>();
  HostCallback([gate] {
    std::unique_lock<std::mutex> lock(gate->mutex);
    gate->reached = true;
    gate->changed.notify_all();
    gate->changed.wait(lock, [&gate] { return gate->open; });
  });
  std::unique_lock<std::mutex> lock(gate->mutex);
  gate->changed.wait(lock, [&gate] { return gate->reached; });
  return [gate] {
    std::lock_guard<std::mutex> opening(gate->mutex);
    gate->open = true;
    gate->changed.notify_all();
  };
}

void ThrowIfFailed(Stream& stream, std::uint64_t number, const char* noticed_in,
                   SourceLocation noticed_at) {
  if (!stream.ever_failed()) return;
  if (FailurePtr failure = stream.FailureOf(number)) {
    throw AsyncError(std::move(failure), noticed_in, noticed_at, -1);
  }
}

void SetLaunchBlocking(bool on) {
  internal::launch_blocking.store(on, std::memory_order_relaxed);
}

}  // namespace d2l
