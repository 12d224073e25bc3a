// Helpers for tests that use devices.
//
//   class CopyTest : public testing::TestWithParam<Device> {};
//   TEST_P(CopyTest, Works) { Stream& stream = DefaultStream(GetParam()); … }
//   INSTANTIATE_TEST_SUITE_P(All, CopyTest, testing::ValuesIn(AllDevices()),
//                            DeviceTestName);
//
// The program's main is that of //common/device:test_main, which makes the
// device table first: from the list in the environment variable
// D2L_TEST_DEVICES, or else from three virtual CPU devices and, where this
// program can run on a GPU, of every GPU, with at least two devices on them.
// The table always has three CPU devices, for tests of CPU devices: if the list
// has none, they are appended, and AllDevices leaves them out.

#ifndef D2L_COMMON_DEVICE_TESTING_TESTING_H_
#define D2L_COMMON_DEVICE_TESTING_TESTING_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/device/device.h"
#include "common/device/stream.h"
#include "common/device/stream_stall.h"
#include "gtest/gtest.h"

namespace d2l {

// What --devices would be for the table described above.
std::string TestDeviceSpec();

// The devices to test.
std::vector<Device> AllDevices();

// "cpu_0": a device's part of a test's name.
std::string DeviceName(Device device);
// DeviceName of a test's parameter.
std::string DeviceTestName(const testing::TestParamInfo<Device>& info);

// A stream of `device` that belongs to the test and not to the table. A CPU
// device need not be in the table.
std::unique_ptr<Stream> MakeStream(Device device, int index = 1);

// The message of the std::invalid_argument that f throws, or "nothing thrown".
std::string ThrownText(const std::function<void()>& f);

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_TESTING_TESTING_H_
