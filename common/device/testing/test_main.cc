// The main function of tests that use devices. InitGoogleTest evaluates the
// parameters' values, so the device table is made before.

#include <iostream>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "common/device/backend.h"
#include "common/device/device_table.h"
#include "common/device/testing/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

// Stands for the cases on GPUs, which do not exist on a machine without GPUs,
// so that they are counted as skipped.
class CasesOnGpus : public testing::Test {
 public:
  explicit CasesOnGpus(std::string why) : why_(std::move(why)) {}
  void TestBody() override { GTEST_SKIP() << why_; }

 private:
  const std::string why_;
};

void CountCasesOnGpus() {
  const DeviceInventory& gpus = CudaBackend().Inventory();
  const bool built_in = !absl::StrContains(gpus.why_none, "built without CUDA");
  if (!gpus.devices.empty() || !built_in) return;
  testing::RegisterTest("Cuda", "CasesOnGpus", nullptr, nullptr, __FILE__,
                        __LINE__, [why = gpus.why_none]() -> testing::Test* {
                          return new CasesOnGpus(why);
                        });
}

}  // namespace
}  // namespace d2l

int main(int argc, char** argv) {
  const absl::Status status = d2l::InitializeDevices(d2l::TestDeviceSpec());
  if (!status.ok()) {
    std::cerr << status.message() << "\n";
    return 2;
  }
  testing::InitGoogleMock(&argc, argv);
  d2l::CountCasesOnGpus();
  return RUN_ALL_TESTS();
}
