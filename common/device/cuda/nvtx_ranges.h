// Ranges (common/device/nvtx_range.h) for tools that understand NVTX, such as
// Nsight Systems, in the domain "d2l". Nsight Systems shows them beside the
// kernels that were launched in them.
//
//   MarkRangesForNvtx();
//
// NVTX is headers only; what it tells, it tells a tool that has put itself into
// the program. Run with a tool of a test's own; not yet with Nsight Systems.

#ifndef D2L_COMMON_DEVICE_CUDA_NVTX_RANGES_H_
#define D2L_COMMON_DEVICE_CUDA_NVTX_RANGES_H_

namespace d2l {

// From now on the process's ranges are marked, if there is a tool; without one
// it does nothing. To be called once. Returns whether there is one.
bool MarkRangesForNvtx();

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_CUDA_NVTX_RANGES_H_
