#include <optional>
#include <string>

#include "common/device/cuda/cuda_errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

CudaProbe Probe(int error, int driver_version) {
  CudaProbe probe;
  probe.error = error;
  probe.driver_version = driver_version;
  probe.runtime_version = 13000;
  return probe;
}

TEST(WhyNoCudaTest, SaysNothingWhenThereIsADevice) {
  CudaProbe probe = Probe(0, 13010);
  probe.device_count = 1;
  EXPECT_EQ(WhyNoCuda(probe), "");
}

TEST(WhyNoCudaTest, NoDriver) {
  // The runtime's answer where there is no libcuda.so.1.
  const std::string why = WhyNoCuda(Probe(kCudaInsufficientDriver, 0));
  EXPECT_THAT(why, StartsWith("This machine has no NVIDIA driver"));
  EXPECT_THAT(why, HasSubstr("--devices=cpu:0,cpu:1"));
  EXPECT_THAT(why, Not(HasSubstr("0.0"))) << "not a driver of version 0";
  EXPECT_EQ(WhyNoCuda(Probe(kCudaNoDevice, 0)), why);
}

TEST(WhyNoCudaTest, DriverWithoutItsLibrary) {
  CudaProbe probe = Probe(kCudaInsufficientDriver, 0);
  probe.gpus_in_proc = 2;
  EXPECT_THAT(WhyNoCuda(probe),
              AllOf(HasSubstr("2 GPUs"), HasSubstr("libcuda.so.1"),
                    HasSubstr("--gpus=all")));
  probe.gpus_in_proc = 1;
  EXPECT_THAT(WhyNoCuda(probe), HasSubstr("1 GPU,"));
}

TEST(WhyNoCudaTest, DriverTooOld) {
  CudaProbe probe = Probe(kCudaInsufficientDriver, 12020);
  EXPECT_THAT(
      WhyNoCuda(probe),
      StartsWith("The driver supports CUDA 12.2, this binary needs 13.0. "
                 "nvidia-smi's \"CUDA Version\" is the driver's maximum, not "
                 "your toolkit's version. Update the driver, or build with a "
                 "toolkit of CUDA 12.2 or older."));
  probe.wsl = true;
  EXPECT_THAT(WhyNoCuda(probe), HasSubstr("Update the driver in Windows,"));
  // Hiding devices does not matter before the driver is new enough.
  probe.visible_devices = "-1";
  EXPECT_THAT(WhyNoCuda(probe), StartsWith("The driver supports CUDA 12.2"));
}

TEST(WhyNoCudaTest, HiddenByTheEnvironment) {
  CudaProbe probe = Probe(kCudaNoDevice, 13000);
  probe.visible_devices = "-1";
  probe.gpus_in_proc = 4;
  EXPECT_THAT(WhyNoCuda(probe),
              StartsWith("CUDA_VISIBLE_DEVICES=-1 hides the 4 GPUs of this "
                         "machine. Unset it"));
  probe.visible_devices = "";
  probe.gpus_in_proc = 1;
  EXPECT_THAT(WhyNoCuda(probe),
              StartsWith("CUDA_VISIBLE_DEVICES=\"\" hides the 1 GPU of"));
  probe.gpus_in_proc = -1;  // cannot be seen, as under WSL
  EXPECT_THAT(WhyNoCuda(probe),
              StartsWith("CUDA_VISIBLE_DEVICES=\"\" hides every GPU."));
  probe.gpus_in_proc = 0;
  EXPECT_THAT(WhyNoCuda(probe), HasSubstr("finds no GPU"))
      << "there is nothing to hide";
}

TEST(WhyNoCudaTest, DriverWithoutAGpu) {
  CudaProbe probe = Probe(kCudaNoDevice, 13000);
  EXPECT_THAT(WhyNoCuda(probe),
              StartsWith("The NVIDIA driver (CUDA 13.0) finds no GPU."));
  probe.wsl = true;
  EXPECT_THAT(WhyNoCuda(probe), HasSubstr("Windows"));
  EXPECT_THAT(WhyNoCuda(Probe(0, 13000)), HasSubstr("finds no GPU"))
      << "success, and a count of zero";
}

TEST(WhyNoCudaTest, WithinWindows) {
  CudaProbe probe = Probe(kCudaInsufficientDriver, 0);
  probe.wsl = true;
  EXPECT_THAT(WhyNoCuda(probe), AllOf(HasSubstr("/usr/lib/wsl/lib"),
                                      HasSubstr("never within WSL")));
  probe.wsl_has_driver = true;
  EXPECT_THAT(WhyNoCuda(probe), AllOf(HasSubstr("ldconfig /usr/lib/wsl/lib"),
                                      HasSubstr("LD_LIBRARY_PATH")));
}

TEST(WhyNoCudaTest, AnythingElseIsSaidAsCudaSaysIt) {
  CudaProbe probe = Probe(803, 12080);
  probe.error_text = "cudaErrorSystemDriverMismatch: the driver differs";
  EXPECT_THAT(WhyNoCuda(probe),
              AllOf(HasSubstr("cudaErrorSystemDriverMismatch: the driver "
                              "differs (error 803;"),
                    HasSubstr("supports CUDA 12.8"), HasSubstr("13.0")));
}

TEST(RenumberedByTest, OnlyIfNumbersChange) {
  EXPECT_EQ(RenumberedBy(std::nullopt), "");
  EXPECT_EQ(RenumberedBy("0"), "");
  EXPECT_EQ(RenumberedBy("0,1,2"), "");
  EXPECT_EQ(RenumberedBy("0,1,2,3,4,5,6,7,8,9,10"), "");
  EXPECT_EQ(RenumberedBy("4,5"), "CUDA_VISIBLE_DEVICES=4,5");
  EXPECT_EQ(RenumberedBy("1,0"), "CUDA_VISIBLE_DEVICES=1,0");
  EXPECT_EQ(RenumberedBy("0,2"), "CUDA_VISIBLE_DEVICES=0,2");
  EXPECT_EQ(RenumberedBy("00"), "CUDA_VISIBLE_DEVICES=00");
  EXPECT_EQ(RenumberedBy("GPU-8932f937"), "CUDA_VISIBLE_DEVICES=GPU-8932f937");
  EXPECT_EQ(RenumberedBy(""), "CUDA_VISIBLE_DEVICES=");
}

TEST(CudaVersionTest, IsMajorAndMinor) {
  EXPECT_EQ(CudaVersion(12020), "12.2");
  EXPECT_EQ(CudaVersion(13000), "13.0");
  EXPECT_EQ(CudaVersion(11080), "11.8");
}

}  // namespace
}  // namespace d2l
