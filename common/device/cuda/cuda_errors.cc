#include "common/device/cuda/cuda_errors.h"

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
      return absl::StrCat("The GPU did not take it: ", error_text, ".");
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

}  // namespace d2l
