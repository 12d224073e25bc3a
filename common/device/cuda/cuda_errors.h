// The meaning of CUDA's error codes for a stream, and their messages; and why a
// program finds no GPU, as a sentence for the user.
//
//   if (KindOf(error) == CudaErrorKind::kSticky) …
//   throw std::runtime_error(LaunchFailureText(error, text, "sm_75", {800}));
//
//   CudaProbe probe;
//   probe.error = cudaGetDeviceCount(&count);
//   …
//   std::cerr << WhyNoCuda(probe) << "\n";
//
// CUDA gives the same code for causes with different remedies, so WhyNoCuda
// uses more than the code.
//
// Pure functions, without CUDA's headers; thread-safe.

#ifndef D2L_COMMON_DEVICE_CUDA_CUDA_ERRORS_H_
#define D2L_COMMON_DEVICE_CUDA_CUDA_ERRORS_H_

#include <optional>
#include <string>

#include "absl/types/span.h"

namespace d2l {

// The codes that are distinguished, named as in the CUDA runtime. They are part
// of its binary interface; cuda_backend_test.cc checks their values.
inline constexpr int kCudaSuccess = 0;
inline constexpr int kCudaInvalidValue = 1;
inline constexpr int kCudaMemoryAllocation = 2;
inline constexpr int kCudaCudartUnloading = 4;
inline constexpr int kCudaInsufficientDriver = 35;
inline constexpr int kCudaNoDevice = 100;
inline constexpr int kCudaNoKernelImageForDevice = 209;
inline constexpr int kCudaEccUncorrectable = 214;
inline constexpr int kCudaNvlinkUncorrectable = 220;
inline constexpr int kCudaUnsupportedPtxVersion = 222;
inline constexpr int kCudaContained = 226;
inline constexpr int kCudaInvalidResourceHandle = 400;
inline constexpr int kCudaIllegalState = 401;
inline constexpr int kCudaNotReady = 600;
inline constexpr int kCudaIllegalAddress = 700;
inline constexpr int kCudaLaunchOutOfResources = 701;
inline constexpr int kCudaLaunchTimeout = 702;
inline constexpr int kCudaContextIsDestroyed = 709;
inline constexpr int kCudaAssert = 710;
inline constexpr int kCudaHardwareStackError = 714;
inline constexpr int kCudaIllegalInstruction = 715;
inline constexpr int kCudaMisalignedAddress = 716;
inline constexpr int kCudaInvalidAddressSpace = 717;
inline constexpr int kCudaInvalidPc = 718;
inline constexpr int kCudaLaunchFailure = 719;
inline constexpr int kCudaTensorMemoryLeak = 721;
inline constexpr int kCudaNotPermitted = 800;
inline constexpr int kCudaMpsClientTerminated = 810;
inline constexpr int kCudaStreamCaptureUnsupported = 900;
inline constexpr int kCudaStreamCaptureInvalidated = 901;
inline constexpr int kCudaStreamCaptureIsolation = 905;
inline constexpr int kCudaCapturedEvent = 907;
inline constexpr int kCudaExternalDevice = 911;
inline constexpr int kCudaUnknown = 999;

enum class CudaErrorKind {
  kNone,
  // Only this call failed.
  kCall,
  // The GPU's context is lost: every later call of this process fails.
  kSticky,
  // The process is ending and the runtime is gone.
  kUnloading,
};

CudaErrorKind KindOf(int error);

// Why a kernel could not be launched. capability: the GPU's, "sm_75". archs:
// the architectures that this binary has code for, as 750 for sm_75, in rising
// order; empty if unknown. PTX is of the last (third_party/cuda.bzl).
std::string LaunchFailureText(int error, const std::string& error_text,
                              const std::string& capability,
                              absl::Span<const int> archs);

// The message on the operations that were pending when the context was lost.
// first, last: as "relu (operation 41, requested at net.cc:88)"; empty if there
// were none, equal if there was one.
std::string StickyErrorText(const std::string& error_text,
                            const std::string& first, const std::string& last);

// The state of the machine before the first device is used.
struct CudaProbe {
  int error = 0;           // of cudaGetDeviceCount; 0 is success
  std::string error_text;  // "cudaErrorUnknown: unknown error"
  int device_count = 0;
  // As 13000 for 13.0; 0 if there is no driver.
  int driver_version = 0;
  int runtime_version = 0;
  std::optional<std::string> visible_devices;  // $CUDA_VISIBLE_DEVICES
  // How many GPUs the kernel driver knows (/proc/driver/nvidia/gpus);
  // negative if that cannot be seen.
  int gpus_in_proc = -1;
  bool wsl = false;             // within Windows
  bool wsl_has_driver = false;  // /usr/lib/wsl/lib/libcuda.so.1 is there
};

// Why there is no device to use, and what to do about it; empty if there is
// one.
std::string WhyNoCuda(const CudaProbe& probe);

// "CUDA_VISIBLE_DEVICES=4,5" if that leaves out devices or changes their
// numbers; empty if it is not set, or lists 0, 1, 2, … as they are.
std::string RenumberedBy(const std::optional<std::string>& visible_devices);

// "12.2" for 12020.
std::string CudaVersion(int version);

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_CUDA_CUDA_ERRORS_H_
