#include "common/device/cuda/cuda_errors.h"

#include <string>

#include "common/device/cuda/stream/error_record.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(CudaErrorsTest, TellsApartWhatCanBeMended) {
  EXPECT_EQ(KindOf(0), CudaErrorKind::kNone);
  EXPECT_EQ(KindOf(kCudaMemoryAllocation), CudaErrorKind::kCall);
  EXPECT_EQ(KindOf(kCudaNoKernelImageForDevice), CudaErrorKind::kCall);
  EXPECT_EQ(KindOf(kCudaLaunchOutOfResources), CudaErrorKind::kCall);
  EXPECT_EQ(KindOf(kCudaIllegalAddress), CudaErrorKind::kSticky);
  EXPECT_EQ(KindOf(kCudaMisalignedAddress), CudaErrorKind::kSticky);
  EXPECT_EQ(KindOf(kCudaLaunchFailure), CudaErrorKind::kSticky);
  EXPECT_EQ(KindOf(kCudaContained), CudaErrorKind::kSticky);
  EXPECT_EQ(KindOf(kCudaTensorMemoryLeak), CudaErrorKind::kSticky);
  EXPECT_EQ(KindOf(kCudaMpsClientTerminated), CudaErrorKind::kSticky);
  EXPECT_EQ(KindOf(kCudaExternalDevice), CudaErrorKind::kSticky);
  EXPECT_EQ(KindOf(kCudaCudartUnloading), CudaErrorKind::kUnloading);
}

TEST(CudaErrorsTest, NoKernelImageSaysWhatToBuild) {
  EXPECT_EQ(
      LaunchFailureText(kCudaNoKernelImageForDevice, "x", "sm_75", {800, 900}),
      "The GPU is sm_75; this binary has sm_80 and sm_90, and PTX for sm_90 "
      "and newer. Rebuild with --//:cuda_archs=sm_75.");
  EXPECT_EQ(LaunchFailureText(kCudaNoKernelImageForDevice, "x", "sm_75",
                              {800, 890, 1200}),
            "The GPU is sm_75; this binary has sm_80, sm_89 and sm_120, and "
            "PTX for sm_120 and newer. Rebuild with --//:cuda_archs=sm_75.");
  EXPECT_EQ(LaunchFailureText(kCudaNoKernelImageForDevice, "x", "sm_75", {900}),
            "The GPU is sm_75; this binary has sm_90, and PTX for sm_90 and "
            "newer. Rebuild with --//:cuda_archs=sm_75.");
  EXPECT_EQ(LaunchFailureText(kCudaNoKernelImageForDevice, "x", "sm_75", {}),
            "The GPU is sm_75; this binary has no code for it. Rebuild with "
            "--//:cuda_archs=sm_75.");
}

TEST(CudaErrorsTest, OtherLaunchFailures) {
  EXPECT_THAT(LaunchFailureText(kCudaUnsupportedPtxVersion, "x", "sm_120", {}),
              AllOf(HasSubstr("Update the driver"),
                    HasSubstr("--//:cuda_archs=sm_120")));
  EXPECT_THAT(
      LaunchFailureText(kCudaLaunchOutOfResources, "too many", "sm_90", {900}),
      AllOf(HasSubstr("registers or shared memory"), HasSubstr("too many"),
            HasSubstr("sm_90")));
  EXPECT_EQ(LaunchFailureText(9, "cudaErrorInvalidConfiguration", "sm_90", {}),
            "The GPU rejected the launch: cudaErrorInvalidConfiguration.");
}

TEST(CudaErrorsTest, StickyErrorNamesWhatWasInFlight) {
  const std::string several = StickyErrorText("bad", "relu (3)", "matmul (7)");
  EXPECT_THAT(several, HasSubstr("from relu (3) to matmul (7)."));
  EXPECT_THAT(several, AllOf(HasSubstr("--launch_blocking"),
                             HasSubstr("compute-sanitizer"),
                             HasSubstr("cannot use the GPU any more")));
  EXPECT_THAT(
      StickyErrorText("bad", "relu (3)", "relu (3)"),
      AllOf(HasSubstr("In flight was relu (3)."), Not(HasSubstr(" to relu"))));
  EXPECT_THAT(StickyErrorText("bad", "", ""),
              HasSubstr("Nothing of this stream was in flight."));
}

TEST(ErrorRecordTest, SaysWhatTheCpuSays) {
  ErrorRecord record = {};
  record.claimed_by = 5;
  record.code = DeviceError::kIndexOutOfRange;
  record.position = 3;
  record.a = 7;
  record.b = 6;
  EXPECT_EQ(DeviceErrorText(record),
            "index 7 at position 3 is out of range; valid are 0..5");
  record.a = -1;
  record.b = 0;
  EXPECT_EQ(DeviceErrorText(record),
            "index -1 at position 3 is out of range; there is nothing to "
            "index");
  record.code = DeviceError::kDivisionByZero;
  EXPECT_EQ(DeviceErrorText(record), "division by zero at element 3");
  record.code = DeviceError::kNegativeExponent;
  record.a = -2;
  EXPECT_EQ(DeviceErrorText(record),
            "negative integer exponent -2 at element 3");
  record.code = static_cast<DeviceError>(99);
  EXPECT_EQ(DeviceErrorText(record), "error 99 of a kernel, at element 3");
}

}  // namespace
}  // namespace d2l
