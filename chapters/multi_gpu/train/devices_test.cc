#include <string>

#include "chapters/multi_gpu/train/options.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

TEST(TrainDevicesTest, ProcessesOfAMachineShareItsGpus) {
  const auto four = [](int count, int process) {
    return DevicesOfProcess("auto", count, process, /*gpus=*/4);
  };
  // The table of the first begins with its own.
  EXPECT_EQ(four(1, 0), "auto");
  EXPECT_EQ(four(1, 3), "cuda:3");
  EXPECT_EQ(four(2, 1), "cuda:2,cuda:3");
}

TEST(TrainDevicesTest, WhatIsNamedOrNotThereIsLeft) {
  EXPECT_EQ(DevicesOfProcess("cuda:1", 1, 1, 4), "cuda:1");
  EXPECT_EQ(DevicesOfProcess("auto", 1, 1, 0), "auto");
  // Two processes, with CUDA_VISIBLE_DEVICES of their own.
  EXPECT_EQ(DevicesOfProcess("auto", 1, 1, 1), "auto");
  EXPECT_EQ(DevicesOfProcess("auto", 3, 1, 4), "auto");
}

}  // namespace
}  // namespace d2l
