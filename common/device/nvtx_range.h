// NvtxRange: a named range of a thread's time, for Nsight Systems through NVTX.
//
//   {
//     NvtxRange range(label.name());
//     … kernels are launched …
//   }
//
// The CUDA back end sets the marker if there is such a tool, in the domain
// "d2l"; Nsight Systems shows the ranges beside the kernels that were launched
// in them. Without a tool a range costs a load.
//
// Thread-safe. Tested with the tests' own tool, not yet with Nsight Systems.

#ifndef D2L_COMMON_DEVICE_NVTX_RANGE_H_
#define D2L_COMMON_DEVICE_NVTX_RANGE_H_

#include <atomic>

namespace d2l {

class RangeMarker {
 public:
  virtual ~RangeMarker() = default;

  // Begins a range on this thread.
  virtual void Push(const char* name) = 0;
  // Ends the range that this thread began last.
  virtual void Pop() = 0;
};

namespace internal {
inline std::atomic<RangeMarker*> range_marker{nullptr};
}  // namespace internal

// Sets the process's marker, or null. It must live as long as the process.
inline void SetRangeMarker(RangeMarker* marker) {
  internal::range_marker.store(marker, std::memory_order_release);
}

// Marks the process's ranges from now on, if there is a tool. Call it once.
// Returns whether there is one. Defined in device/cuda/cuda_backend.cc, which
// only --config=cuda builds.
bool MarkRangesForNvtx();

// A range from here to the end of the block. Ranges nest.
class NvtxRange {
 public:
  explicit NvtxRange(const char* name)
      : marker_(internal::range_marker.load(std::memory_order_acquire)) {
    if (marker_ != nullptr) marker_->Push(name);
  }
  ~NvtxRange() {
    if (marker_ != nullptr) marker_->Pop();
  }
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;

 private:
  RangeMarker* const marker_;
};

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_NVTX_RANGE_H_
