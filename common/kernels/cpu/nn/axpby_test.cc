// Axpby on several cores; on one, with all values: ops/nn/updates_test.cc.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "common/device/cpu/cpu_stream.h"
#include "common/device/cpu/parallel_for.h"
#include "common/device/device.h"
#include "common/device/op_label.h"
#include "common/kernels/enqueue.h"
#include "common/kernels/kernels.h"
#include "common/tensor/dtype.h"
#include "gtest/gtest.h"

namespace d2l::kernels::cpu {
namespace {

template <typename Args>
void RunOn(int cores, const Args& args) {
  CpuStream stream(Device(DeviceType::kCpu, 0), 0, StreamOptions(),
                   std::make_shared<ThreadPool>(cores));
  Enqueue(stream, OpLabel("axpby"), args);
  stream.Synchronize();
}

std::vector<float> Random(std::int64_t n, std::mt19937& random) {
  std::exponential_distribution<float> values(3);
  std::vector<float> all(static_cast<std::size_t>(n));
  for (float& value : all) value = values(random);
  return all;
}

// The parts that cores compute end before, at and after the arrays' ends.
TEST(AxpbyTest, HasTheBitsOfALoopOnAnyNumberOfCores) {
  constexpr std::int64_t kPart = 1 << 18;
  std::mt19937 random(5);
  for (const std::vector<std::int64_t>& sizes :
       {std::vector<std::int64_t>{kPart, 5, kPart},
        {0, kPart + 9, 7, 0, 2 * kPart + 11},
        {kPart - 1, 1, 1},
        {3 * kPart + 1}}) {
    std::vector<std::vector<float>> x, before, expected;
    for (const std::int64_t n : sizes) {
      x.push_back(Random(n, random));
      before.push_back(Random(n, random));
      expected.push_back(before.back());
      for (std::size_t i = 0; i < x.back().size(); ++i) {
        expected.back()[i] = -0.3f * x.back()[i] + 0.7f * before.back()[i];
      }
    }
    for (const int cores : {1, 2, 3}) {
      std::vector<std::vector<float>> of_list = before, one_by_one = before;
      std::vector<AxpbyPart> parts;
      for (std::size_t a = 0; a < sizes.size(); ++a) {
        parts.push_back({sizes[a], of_list[a].data(), x[a].data()});
        RunOn(cores, AxpbyArgs{DType::kFloat32, sizes[a], -0.3, 0.7,
                               one_by_one[a].data(), x[a].data()});
      }
      RunOn(cores, AxpbyListArgs{DType::kFloat32, -0.3, 0.7, parts});
      EXPECT_TRUE(of_list == expected) << cores << " cores";
      EXPECT_TRUE(one_by_one == expected) << cores << " cores";
    }
  }
}

}  // namespace
}  // namespace d2l::kernels::cpu
