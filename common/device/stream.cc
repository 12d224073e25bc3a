#include "common/device/stream.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace d2l {
namespace {

// Set once the end has begun; and on the thread on which it has.
std::atomic<bool> program_ending{false};
thread_local bool ends_program = false;
// Far longer than the end of a program takes.
constexpr std::chrono::seconds kLongestEnd{10};

constexpr char kForked[] =
    "called in a forked child, which has none of the threads that work for "
    "the parent's streams; fork before the first use of a device, or call exec "
    "in the child";

}  // namespace

namespace internal {
namespace {

bool LaunchBlockingFromEnvironment() {
  const char* value = std::getenv("CUDA_LAUNCH_BLOCKING");
  return value != nullptr && std::string(value) == "1";
}

}  // namespace

std::atomic<bool> launch_blocking{LaunchBlockingFromEnvironment()};

void WatchForks() {
  static const int watching = pthread_atfork(nullptr, nullptr, [] {
    enqueue_mode = kForkedChild;
    forked_child.store(true, std::memory_order_relaxed);
  });
  static_cast<void>(watching);
}

void RefuseCall(const Stream& stream, const char* what) {
  const char* why = kForked;
  if (enqueue_mode == kOnWorker) {
    why =
        "called from work that runs on a stream; a task or a host callback "
        "must not call into streams, or the queue could wait for itself";
  } else if (enqueue_mode == kCapturing) {
    why =
        "called while a TaskSink captures this thread's tasks; it can be a "
        "part of no captured program, so call it before or behind";
  }
  throw std::logic_error(
      absl::StrCat("[", what, "] ", why, " (here ", stream.name(), ")"));
}

void ThrowIfForked(const char* what) {
  if (!forked_child.load(std::memory_order_relaxed)) return;
  throw std::logic_error(absl::StrCat("[", what, "] ", kForked));
}

void ThrowToReader(FailurePtr failure, const char* noticed_in,
                   SourceLocation noticed_at) {
  if (failure->end_of_program && !ends_program &&
      program_ending.load(std::memory_order_relaxed)) {
    std::this_thread::sleep_for(kLongestEnd);
  }
  throw AsyncError(std::move(failure), noticed_in, noticed_at, -1);
}

void PrintUnnoticed(const FailurePtr& failure) {
  if (failure == nullptr) return;
  std::fprintf(stderr,
               "Unreported asynchronous error: %s. Call Synchronize before the "
               "end of the program to catch it.\n",
               failure->ToString().c_str());
}

}  // namespace internal

std::string Stream::name() const {
  if (index_ == 0) return device_.ToString();
  return absl::StrCat(device_.ToString(), "/", index_);
}

void ThrowIfFailed(Stream& stream, std::uint64_t number, const char* noticed_in,
                   SourceLocation noticed_at) {
  if (!stream.ever_failed()) return;
  FailurePtr failure = stream.FailureOf(number);
  if (failure == nullptr || failure->end_of_program) return;
  throw AsyncError(std::move(failure), noticed_in, noticed_at, -1);
}

void BeginEndOfProgram() {
  ends_program = true;
  program_ending.store(true, std::memory_order_relaxed);
}

void SetLaunchBlocking(bool on) {
  internal::launch_blocking.store(on, std::memory_order_relaxed);
}

}  // namespace d2l
