// OpLabel: describes an operation when it is enqueued, for error messages and
// the profiler.
//
//   OpLabel label("relu", requested_at);
//   label.AddInput({256, 128});
//   stream.Enqueue(label, [=] { … });
//
// A label is copied into the queue with every operation, so it is small,
// trivially copyable, and turned into text only when an operation fails. Names
// live as long as the process: they are string literals or interned
// (common/base/source_location.h).

#ifndef D2L_COMMON_DEVICE_OP_LABEL_H_
#define D2L_COMMON_DEVICE_OP_LABEL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/types/span.h"
#include "common/base/source_location.h"

namespace d2l {

// When a device began and ended an operation, on NowNanos' clock; 0 until then.
// The requester keeps stamps alive until the operation is done.
struct OpStamps {
  std::atomic<std::int64_t> begin{0};
  std::atomic<std::int64_t> end{0};
  OpStamps* next = nullptr;  // of another listener; gets the same times
};

// For back ends: write to all of the list.
inline void StampBegin(OpStamps* stamps, std::int64_t nanos) {
  for (; stamps != nullptr; stamps = stamps->next) {
    stamps->begin.store(nanos, std::memory_order_relaxed);
  }
}
inline void StampEnd(OpStamps* stamps, std::int64_t nanos) {
  while (stamps != nullptr) {
    // They may be freed as soon as the end is set.
    OpStamps* const next = stamps->next;
    stamps->end.store(nanos, std::memory_order_release);
    stamps = next;
  }
}

class OpLabel {
 public:
  OpLabel() = default;
  explicit OpLabel(const char* name, SourceLocation requested_at = {},
                   SourceLocation requested_by = {})
      : name_(name), requested_at_(requested_at), requested_by_(requested_by) {}

  // Copies only what is set: a label is copied for every operation.
  OpLabel(const OpLabel& other) { *this = other; }
  OpLabel& operator=(const OpLabel& other) {
    if (this == &other) return *this;
    std::memcpy(static_cast<void*>(this), static_cast<const void*>(&other),
                offsetof(OpLabel, dims_));
    for (int i = 0; i < other.dims_used_; ++i) dims_[i] = other.dims_[i];
    return *this;
  }

  // Notes the shape of an input, for messages; beyond four inputs or nine
  // dimensions in all, "…" stands for the rest.
  void AddInput(absl::Span<const std::int64_t> shape) {
    if (inputs_ == kMaxInputs || dims_used_ + shape.size() > kMaxDims) {
      incomplete_ = true;
      return;
    }
    ranks_[inputs_++] = static_cast<std::uint8_t>(shape.size());
    for (const std::int64_t dim : shape) dims_[dims_used_++] = dim;
  }

  // To be written when the operation is run; null for none.
  void set_stamps(OpStamps* stamps) { stamps_ = stamps; }
  OpStamps* stamps() const { return stamps_; }

  const char* name() const { return name_; }
  SourceLocation requested_at() const { return requested_at_; }
  SourceLocation requested_by() const { return requested_by_; }

  // "(256, 128), (128)"; empty without inputs.
  std::string InputsToString() const;

 private:
  static constexpr int kMaxInputs = 4;
  static constexpr int kMaxDims = 9;

  const char* name_ = "task";
  SourceLocation requested_at_;
  SourceLocation requested_by_;
  OpStamps* stamps_ = nullptr;
  std::uint8_t inputs_ = 0;
  std::uint8_t dims_used_ = 0;
  bool incomplete_ = false;
  std::uint8_t ranks_[kMaxInputs] = {};
  // Only the first dims_used_ are set.
  std::int64_t dims_[kMaxDims];
};

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_OP_LABEL_H_
