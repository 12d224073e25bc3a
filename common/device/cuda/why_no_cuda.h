// Why this program finds no GPU: CUDA's error as a sentence for the user.
//
//   CudaProbe probe;
//   probe.error = cudaGetDeviceCount(&count);
//   …
//   std::cerr << WhyNoCuda(probe) << "\n";
//
// CUDA gives the same code for causes with different remedies, so this looks at
// more than the code. Pure functions of the probe, thread-safe.

#ifndef D2L_COMMON_DEVICE_CUDA_WHY_NO_CUDA_H_
#define D2L_COMMON_DEVICE_CUDA_WHY_NO_CUDA_H_

#include <optional>
#include <string>

namespace d2l {

// The codes that are distinguished, by their names in the CUDA runtime. They
// are part of its binary interface; cuda_backend.cc checks that they are these.
inline constexpr int kCudaErrorInsufficientDriver = 35;
inline constexpr int kCudaErrorNoDevice = 100;

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

#endif  // D2L_COMMON_DEVICE_CUDA_WHY_NO_CUDA_H_
