#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <vector>

#include "common/device/cpu/cpu_stream.h"
#include "common/device/cpu/parallel_for.h"
#include "common/device/device.h"
#include "common/device/op_label.h"
#include "common/kernels/enqueue.h"
#include "common/kernels/kernels.h"
#include "common/kernels/op_tables.h"
#include "common/kernels/philox.h"
#include "common/tensor/dtype.h"
#include "gtest/gtest.h"

namespace d2l::kernels {

static void PrintTo(RandomOp op, std::ostream* out) { *out << OpName(op); }

namespace cpu {
namespace {

const Device kDevice(DeviceType::kCpu, 0);

// Element i according to philox.h, in the slowest way.
template <typename T>
T ElementAt(const RandomArgs& args, std::int64_t i) {
  if (args.op == RandomOp::kInteger) {
    // Small ranges; random_test.cc has the large ones.
    const PhiloxBlock block =
        Philox(args.state.seed, args.state.offset + i / 4);
    return static_cast<T>(args.low + static_cast<std::int64_t>(
                                         block.word[i % 4] * args.range >> 32));
  }
  if constexpr (std::is_floating_point_v<T>) {
    constexpr std::int64_t kPerBlock = kElementsPerBlock<T>;
    const PhiloxBlock block =
        Philox(args.state.seed, args.state.offset + i / kPerBlock);
    T all[kPerBlock];
    if (args.op == RandomOp::kUniform) {
      Uniforms(block, all);
    } else {
      Normals(block, all);
    }
    return all[i % kPerBlock];
  }
  ADD_FAILURE() << "no such draw";
  return T{};
}

// The bytes of the draw, between guards, on a device with `cores` cores.
std::vector<unsigned char> Draw(RandomArgs args, int cores) {
  constexpr std::size_t kGuards = 64;
  constexpr unsigned char kGuard = 0xA5;
  const std::size_t bytes =
      static_cast<std::size_t>(args.numel) * DTypeSize(args.dtype);
  std::vector<unsigned char> memory(bytes + 2 * kGuards, kGuard);
  args.out = memory.data() + kGuards;
  CpuStream stream(kDevice, 0, StreamOptions(),
                   std::make_shared<ThreadPool>(cores));
  Enqueue(stream, OpLabel("draw"), args);
  stream.Synchronize();
  for (std::size_t i = 0; i < kGuards; ++i) {
    EXPECT_EQ(memory[i], kGuard);
    EXPECT_EQ(memory[kGuards + bytes + i], kGuard);
  }
  return {memory.begin() + kGuards, memory.begin() + kGuards + bytes};
}

class DrawTest
    : public testing::TestWithParam<std::tuple<RandomOp, DType, std::int64_t>> {
};

TEST_P(DrawTest, IsWhatPhiloxSays) {
  const auto [op, dtype, n] = GetParam();
  if (op != RandomOp::kInteger && !IsFloatingPoint(dtype)) return;
  RandomArgs args{};
  args.op = op;
  args.dtype = dtype;
  args.numel = n;
  args.state = {42, 0xFFFFFFFF};
  args.low = 3;
  args.range = 200;
  const std::vector<unsigned char> drawn = Draw(args, 1);
  VisitDType(dtype, [&, n = n](auto zero) {
    using T = decltype(zero);
    // Normals are the same bits only with fma(): random.h gives the tolerance.
    const double tolerance =
        args.op == RandomOp::kNormal ? (sizeof(T) == 4 ? 4e-6 : 1e-14) : 0;
    // All of the first and the last, some of the others.
    for (std::int64_t i = 0; i < n;
         i += i < 100 || i >= n - 100 ? 1 : std::min<std::int64_t>(97, n - i)) {
      T value;
      std::memcpy(&value, &drawn[i * sizeof(T)], sizeof(T));
      ASSERT_NEAR(static_cast<double>(value),
                  static_cast<double>(ElementAt<T>(args, i)), tolerance)
          << i;
    }
  });
}

TEST_P(DrawTest, IsTheSameBitsOnAnyNumberOfCores) {
  const auto [op, dtype, n] = GetParam();
  if (op != RandomOp::kInteger && !IsFloatingPoint(dtype)) return;
  RandomArgs args{};
  args.op = op;
  args.dtype = dtype;
  args.numel = n;
  args.state = {7, 11};
  args.low = -3;
  const std::uint64_t ranges[] = {1000, std::uint64_t{1} << 40};
  for (const std::uint64_t range : ranges) {
    args.range = range;
    const std::vector<unsigned char> alone = Draw(args, 1);
    for (const int cores : {2, 3, 7}) EXPECT_EQ(Draw(args, cores), alone);
  }
}

TEST(DrawDTypeTest, UniformAndNormalNumbersAreNotIntegers) {
  CpuStream stream(kDevice, 0, StreamOptions(),
                   std::make_shared<ThreadPool>(1));
  std::int64_t out = 0;
  for (const RandomOp op : {RandomOp::kUniform, RandomOp::kNormal}) {
    EXPECT_THROW(Enqueue(stream, OpLabel("draw"),
                         RandomArgs{op, DType::kInt64, 1, &out, {}, 0, 1}),
                 std::invalid_argument);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, DrawTest,
    testing::Combine(testing::Values(RandomOp::kUniform, RandomOp::kNormal,
                                     RandomOp::kInteger),
                     testing::Values(DType::kFloat32, DType::kFloat64,
                                     DType::kInt64, DType::kUInt8),
                     testing::Values(0, 1, 5, 1003, 100'001)));

}  // namespace
}  // namespace cpu
}  // namespace d2l::kernels
