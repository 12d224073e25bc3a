// MarkedRange: a range of a thread's time with a name, for a tool that watches
// the program from outside (Nsight Systems, through NVTX).
//
//   {
//     MarkedRange range(label.name());
//     … kernels are launched …
//   }
//
// A back end sets the marker if there is such a tool. Without one a range costs
// a load.
//
// Thread-safe.

#ifndef D2L_COMMON_DEVICE_MARKED_RANGE_H_
#define D2L_COMMON_DEVICE_MARKED_RANGE_H_

#include <atomic>
#include <string>

namespace d2l {

class RangeMarker {
 public:
  virtual ~RangeMarker() = default;

  // A range begins on this thread. Where it is a literal, a name's address
  // stands for it.
  virtual void Push(const char* literal) = 0;
  virtual void Push(const std::string& name) = 0;
  // The range ends that this thread began last.
  virtual void Pop() = 0;
};

namespace internal {
inline std::atomic<RangeMarker*> range_marker{nullptr};
}  // namespace internal

// The process's; null for none. It lives as long as the process.
inline void SetRangeMarker(RangeMarker* marker) {
  internal::range_marker.store(marker, std::memory_order_release);
}

// From here to the end of the block. Ranges nest.
class MarkedRange {
 public:
  // literal, or string: see RangeMarker.
  explicit MarkedRange(const char* literal) : MarkedRange() {
    if (marker_ != nullptr) marker_->Push(literal);
  }
  explicit MarkedRange(const std::string& name) : MarkedRange() {
    if (marker_ != nullptr) marker_->Push(name);
  }
  ~MarkedRange() {
    if (marker_ != nullptr) marker_->Pop();
  }
  MarkedRange(const MarkedRange&) = delete;
  MarkedRange& operator=(const MarkedRange&) = delete;

 private:
  MarkedRange()
      : marker_(internal::range_marker.load(std::memory_order_acquire)) {}

  RangeMarker* const marker_;
};

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_MARKED_RANGE_H_
