#include "common/device/cpu/stream_capture.h"

#include <stdexcept>

#include "absl/strings/str_cat.h"

namespace d2l {
namespace {

thread_local StreamCapture* current = nullptr;

}  // namespace

ScopedStreamCapture::ScopedStreamCapture(StreamCapture& capture)
    : previous_(current), mode_(internal::enqueue_mode) {
  if (internal::enqueue_mode != internal::kMayEnqueue &&
      internal::enqueue_mode != internal::kCapturing) {
    throw std::logic_error(
        "[stream_capture] on a thread that may not enqueue: one that runs a "
        "stream's work, or one of a forked child");
  }
  current = &capture;
  internal::enqueue_mode = internal::kCapturing;
}

ScopedStreamCapture::~ScopedStreamCapture() {
  current = previous_;
  // Keeps the mode of a child that was forked meanwhile.
  if (internal::enqueue_mode == internal::kCapturing) {
    internal::enqueue_mode = mode_;
  }
}

namespace internal {

StreamCapture* CurrentStreamCapture() {
  // The mode may also be that of a CudaGraph, which takes no tasks.
  return enqueue_mode == kCapturing ? current : nullptr;
}

void ThrowNotCapturable(const OpLabel& label) {
  throw std::logic_error(absl::StrCat(
      "[", label.name(),
      "] cannot be captured: its task cannot be copied; requested at ",
      label.requested_at().ToString()));
}

}  // namespace internal
}  // namespace d2l
