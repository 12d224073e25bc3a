#include "common/device/cuda/cuda_errors.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"

namespace d2l {
namespace {

// "sm_80, sm_86 and sm_90".
std::string ListArchs(absl::Span<const int> archs) {
  std::vector<std::string> names;
  for (const int arch : archs) names.push_back(absl::StrCat("sm_", arch / 10));
  if (names.size() == 1) return names[0];
  const std::string last = names.back();
  names.pop_back();
  return absl::StrCat(absl::StrJoin(names, ", "), " and ", last);
}

constexpr char kOnCpu[] = " Until then use --devices=cpu:0,cpu:1.";

std::string NoDriver(const CudaProbe& probe) {
  if (probe.wsl && probe.wsl_has_driver) {
    return absl::StrCat(
        "Windows's NVIDIA driver is in /usr/lib/wsl/lib, but this program "
        "could not load it. Run `sudo ldconfig /usr/lib/wsl/lib`, or put that "
        "folder into LD_LIBRARY_PATH.",
        kOnCpu);
  }
  if (probe.wsl) {
    return absl::StrCat(
        "There is no NVIDIA driver: /usr/lib/wsl/lib has no libcuda.so.1. "
        "Under WSL the driver is Windows's: install it there, never within "
        "WSL, and run `wsl --shutdown`.",
        kOnCpu);
  }
  if (probe.gpus_in_proc > 0) {
    return absl::StrFormat(
        "The kernel has an NVIDIA driver, and %d GPU%s, but this program "
        "cannot load its library, libcuda.so.1. In a container, start it with "
        "--gpus=all; elsewhere install the driver's CUDA library (Debian: "
        "libcuda1).%s",
        probe.gpus_in_proc, probe.gpus_in_proc == 1 ? "" : "s", kOnCpu);
  }
  return absl::StrCat(
      "This machine has no NVIDIA driver, or no NVIDIA GPU. If it has a GPU, "
      "install the driver; in a container, start it with --gpus=all.",
      kOnCpu);
}

std::string DriverTooOld(const CudaProbe& probe) {
  return absl::StrFormat(
      "The driver supports CUDA %s, this binary needs %s. nvidia-smi's \"CUDA "
      "Version\" is the driver's maximum, not your toolkit's version. Update "
      "the driver%s, or build with a toolkit of CUDA %s or older.%s",
      CudaVersion(probe.driver_version), CudaVersion(probe.runtime_version),
      probe.wsl ? " in Windows" : "", CudaVersion(probe.driver_version),
      kOnCpu);
}

std::string NoDevice(const CudaProbe& probe) {
  // With the variable set, "no device" nearly always means that it hides them:
  // it is empty, or its first entry is -1 or names no GPU.
  if (probe.visible_devices.has_value() && probe.gpus_in_proc != 0) {
    return absl::StrFormat(
        "CUDA_VISIBLE_DEVICES=%s hides %s. Unset it, or list GPUs that are "
        "there, as in CUDA_VISIBLE_DEVICES=0.",
        probe.visible_devices->empty() ? "\"\"" : *probe.visible_devices,
        probe.gpus_in_proc > 0
            ? absl::StrFormat("the %d GPU%s of this machine",
                              probe.gpus_in_proc,
                              probe.gpus_in_proc == 1 ? "" : "s")
            : "every GPU");
  }
  return absl::StrFormat(
      "The NVIDIA driver (CUDA %s) finds no GPU. %s%s",
      CudaVersion(probe.driver_version),
      probe.wsl ? "Look whether Windows sees one: run nvidia-smi there."
                : "In a container, start it with --gpus=all; elsewhere look at "
                  "what nvidia-smi and dmesg say.",
      kOnCpu);
}

}  // namespace

CudaErrorKind KindOf(int error) {
  switch (error) {
    case kCudaSuccess:
      return CudaErrorKind::kNone;
    case kCudaCudartUnloading:
      return CudaErrorKind::kUnloading;
    case kCudaEccUncorrectable:
    case kCudaNvlinkUncorrectable:
    case kCudaContained:
    case kCudaIllegalAddress:
    case kCudaLaunchTimeout:
    case kCudaContextIsDestroyed:
    case kCudaAssert:
    case kCudaHardwareStackError:
    case kCudaIllegalInstruction:
    case kCudaMisalignedAddress:
    case kCudaInvalidAddressSpace:
    case kCudaInvalidPc:
    case kCudaLaunchFailure:
    case kCudaTensorMemoryLeak:
    case kCudaMpsClientTerminated:
    case kCudaExternalDevice:
    case kCudaUnknown:
      return CudaErrorKind::kSticky;
    default:
      return CudaErrorKind::kCall;
  }
}

std::string LaunchFailureText(int error, const std::string& error_text,
                              const std::string& capability,
                              absl::Span<const int> archs) {
  switch (error) {
    case kCudaNoKernelImageForDevice: {
      std::string text =
          absl::StrFormat("The GPU is %s; this binary has ", capability);
      if (archs.empty()) {
        text += "no code for it";
      } else {
        absl::StrAppend(&text, ListArchs(archs), ", and PTX for sm_",
                        archs.back() / 10, " and newer");
      }
      return absl::StrCat(text, ". Rebuild with --//:cuda_archs=", capability,
                          ".");
    }
    case kCudaUnsupportedPtxVersion:
      return absl::StrFormat(
          "The GPU is %s; this binary has only PTX for it, which is newer than "
          "the driver can compile. Update the driver, or rebuild with "
          "--//:cuda_archs=%s.",
          capability, capability);
    case kCudaLaunchOutOfResources:
      return absl::StrFormat(
          "The kernel asks for more registers or shared memory for a block "
          "than the GPU, an %s, has (%s).",
          capability, error_text);
    default:
      return absl::StrCat("The GPU rejected the launch: ", error_text, ".");
  }
}

std::string StickyErrorText(const std::string& error_text,
                            const std::string& first, const std::string& last) {
  std::string in_flight = "Nothing of this stream was in flight.";
  if (!first.empty() && first == last) {
    in_flight = absl::StrCat("In flight was ", first, ".");
  } else if (!first.empty()) {
    in_flight = absl::StrCat("In flight were the operations from ", first,
                             " to ", last, ".");
  }
  return absl::StrCat(
      error_text,
      ". This program cannot use the GPU any more, and nothing computed since "
      "is valid. ",
      in_flight,
      " Work on another stream may be the cause. To find the operation, run "
      "again with --launch_blocking, or under compute-sanitizer.");
}

std::string WhyNoCuda(const CudaProbe& probe) {
  if (probe.error == 0 && probe.device_count > 0) return "";
  if (probe.error == 0) return NoDevice(probe);
  // CUDA uses the code for an old driver also if there is none.
  if (probe.error == kCudaInsufficientDriver) {
    return probe.driver_version == 0 ? NoDriver(probe) : DriverTooOld(probe);
  }
  if (probe.error == kCudaNoDevice) {
    return probe.driver_version == 0 ? NoDriver(probe) : NoDevice(probe);
  }
  return absl::StrFormat(
      "CUDA cannot be used: %s (error %d; the driver supports CUDA %s, this "
      "binary was built with %s). nvidia-smi may say more.%s",
      probe.error_text, probe.error, CudaVersion(probe.driver_version),
      CudaVersion(probe.runtime_version), kOnCpu);
}

std::string RenumberedBy(const std::optional<std::string>& visible_devices) {
  if (!visible_devices.has_value()) return "";
  // "0,1,2" may leave out later devices, but changes no number.
  std::string in_order;
  for (int i = 0; in_order.size() < visible_devices->size(); ++i) {
    absl::StrAppend(&in_order, i > 0 ? "," : "", i);
    if (in_order == *visible_devices) return "";
  }
  return absl::StrCat("CUDA_VISIBLE_DEVICES=", *visible_devices);
}

std::string CudaVersion(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

}  // namespace d2l
