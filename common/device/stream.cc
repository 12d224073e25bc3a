#include "common/device/stream.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
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
