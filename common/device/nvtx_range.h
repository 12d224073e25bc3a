// NvtxRange: a named range of a thread's time, for Nsight Systems through NVTX.
//
//   {
//     NvtxRange range(label.name());
//     … kernels are launched …
//   }
//
// A back end sets the marker if there is such a tool. Without one a range costs
// a load.
//
// Thread-safe.

#ifndef D2L_COMMON_DEVICE_NVTX_RANGE_H_
#define D2L_COMMON_DEVICE_NVTX_RANGE_H_

#include <atomic>
#include <string>

namespace d2l {

class RangeMarker {
 public:
  virtual ~RangeMarker() = default;

  // Begins a range on this thread. A literal is identified by its address.
  virtual void Push(const char* literal) = 0;
  virtual void Push(const std::string& name) = 0;
  // Ends the range that this thread began last.
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
class NvtxRange {
 public:
  // literal, or string: see RangeMarker.
  explicit NvtxRange(const char* literal) : NvtxRange() {
    if (marker_ != nullptr) marker_->Push(literal);
  }
  explicit NvtxRange(const std::string& name) : NvtxRange() {
    if (marker_ != nullptr) marker_->Push(name);
  }
  ~NvtxRange() {
    if (marker_ != nullptr) marker_->Pop();
  }
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;

 private:
  NvtxRange()
      : marker_(internal::range_marker.load(std::memory_order_acquire)) {}

  RangeMarker* const marker_;
};

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_NVTX_RANGE_H_
