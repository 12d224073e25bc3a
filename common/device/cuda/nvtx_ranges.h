// Ranges (common/device/nvtx_range.h) for tools that understand NVTX, such as
// Nsight Systems, in the domain "d2l". Nsight Systems shows them beside the
// kernels that were launched in them.
//
//   MarkRangesForNvtx();
//
// NVTX is headers only; it calls a tool that has injected itself into the
// program. Tested with a tool of the tests' own; not yet with Nsight Systems.

#ifndef D2L_COMMON_DEVICE_CUDA_NVTX_RANGES_H_
#define D2L_COMMON_DEVICE_CUDA_NVTX_RANGES_H_

namespace d2l {

// Marks the process's ranges from now on, if there is a tool. Call it once.
// Returns whether there is one.
bool MarkRangesForNvtx();

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_CUDA_NVTX_RANGES_H_
