// The main function of tests that use devices. GoogleTest asks for the values
// of parameters in InitGoogleTest, so the device table is made before.

#include <iostream>

#include "absl/status/status.h"
#include "common/device/device_table.h"
#include "common/device/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

int main(int argc, char** argv) {
  const absl::Status status = d2l::InitializeDevices(d2l::TestDeviceSpec());
  if (!status.ok()) {
    std::cerr << status.message() << "\n";
    return 2;
  }
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
