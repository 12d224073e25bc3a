#include "common/device/device.h"

#include <set>
#include <stdexcept>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using testing::HasSubstr;

TEST(DeviceTest, ParsesWhatItPrints) {
  for (const DeviceType type : {DeviceType::kCpu, DeviceType::kCuda}) {
    for (const int index : {0, 1, 12, 2147483647}) {
      const Device device(type, index);
      EXPECT_EQ(Device::Parse(device.ToString()), device);
    }
  }
  EXPECT_EQ(Device(DeviceType::kCuda, 1).ToString(), "cuda:1");
  EXPECT_EQ(testing::PrintToString(Device()), "cpu:0");
}

TEST(DeviceTest, ATypeAloneIsItsFirstDevice) {
  EXPECT_EQ(Device::Parse("cpu"), Device(DeviceType::kCpu, 0));
  EXPECT_EQ(Device::Parse("cuda"), Device(DeviceType::kCuda, 0));
  EXPECT_EQ(Device(), Device(DeviceType::kCpu, 0));
}

TEST(DeviceTest, ComparesByTypeAndIndex) {
  const Device cpu0(DeviceType::kCpu, 0);
  const Device cpu1(DeviceType::kCpu, 1);
  const Device cuda0(DeviceType::kCuda, 0);
  EXPECT_NE(cpu0, cpu1);
  EXPECT_NE(cpu0, cuda0);
  EXPECT_LT(cpu0, cpu1);
  EXPECT_LT(cpu1, cuda0);
  EXPECT_EQ(std::set<Device>({cuda0, cpu1, cpu0, cpu1}).size(), 3u);
}

class MalformedTest : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Names, MalformedTest,
                         testing::Values("", " ", ":", ":0", "gpu:0", "CPU:0",
                                         "cpu ", " cpu:0", "cpu:", "cpu:-1",
                                         "cpu:+1", "cpu: 1", "cpu:1 ", "cpu:1x",
                                         "cpu:x1", "cpu:1.0", "cpu:1:2",
                                         "cpu:0x1", "cpu:1 1", "cpu::1", "cpu1",
                                         "cpu,0", "cuda:99999999999",
                                         "cuda:2147483648", "cuda:1,cuda:2"));

TEST_P(MalformedTest, IsRefusedAndQuoted) {
  try {
    Device::Parse(GetParam());
    FAIL() << "it was taken";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"" + std::string(GetParam()) +
                                        "\" is not a device"));
    EXPECT_THAT(error.what(), HasSubstr(":0"));
  }
}

}  // namespace
}  // namespace d2l
