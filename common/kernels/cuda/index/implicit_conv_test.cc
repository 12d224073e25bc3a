#include "common/kernels/cuda/index/implicit_conv.h"

#include <cstdint>

#include "common/kernels/kernels.h"
#include "common/tensor/dtype.h"
#include "gtest/gtest.h"

namespace d2l::kernels::cuda {
namespace {

struct Layer {
  std::int64_t in, out, size, kernel, stride, padding;
};

Conv2dArgs ArgsOf(std::int64_t batch, const Layer& layer,
                  Conv2dPass pass = Conv2dPass::kForward) {
  const std::int64_t out =
      (layer.size + 2 * layer.padding - layer.kernel) / layer.stride + 1;
  Conv2dArgs args = {};
  args.pass = pass;
  args.dtype = DType::kFloat32;
  args.batch = batch;
  args.in_channels = layer.in;
  args.out_channels = layer.out;
  args.window = {layer.size,    layer.size,   out,          out,
                 layer.kernel,  layer.kernel, layer.stride, layer.stride,
                 layer.padding, layer.padding};
  return args;
}

bool IsTaken(std::int64_t batch, const Layer& layer,
             Conv2dPass pass = Conv2dPass::kForward) {
  return IsImplicit(ArgsOf(batch, layer, pass), /*tf32=*/false);
}

// What the counts say of layers that patches make slow, and of others.
TEST(ImplicitConvTest, IsTakenWherePatchesCostMore) {
  const Layer lenet = {6, 16, 14, 5, 1, 0};
  EXPECT_TRUE(IsTaken(256, {1, 6, 28, 5, 1, 2}));
  EXPECT_TRUE(IsTaken(256, {1, 20, 28, 3, 1, 0}));
  EXPECT_TRUE(IsTaken(256, {20, 50, 13, 5, 1, 0}));
  EXPECT_TRUE(IsTaken(256, lenet));
  EXPECT_TRUE(IsTaken(8, lenet));
  // Ten of the tile's rows are empty.
  EXPECT_FALSE(IsTaken(256, lenet, Conv2dPass::kInputGradient));
  // ResNet-18's layers, with more and more arithmetic for a patch.
  const Layer first = {64, 64, 28, 3, 1, 1};
  EXPECT_TRUE(IsTaken(128, {1, 64, 28, 3, 1, 1}));
  EXPECT_TRUE(IsTaken(128, first));
  EXPECT_TRUE(IsTaken(128, first, Conv2dPass::kInputGradient));
  EXPECT_TRUE(IsTaken(128, {64, 128, 28, 3, 2, 1}));
  EXPECT_TRUE(IsTaken(128, {64, 128, 28, 1, 2, 0}));
  const Layer second = {128, 128, 14, 3, 1, 1};
  EXPECT_TRUE(IsTaken(128, second));
  EXPECT_FALSE(IsImplicit(ArgsOf(128, second), /*tf32=*/true));
  EXPECT_FALSE(IsTaken(128, {512, 512, 4, 3, 1, 1}));
  // Few blocks, each with a long sum.
  EXPECT_FALSE(IsTaken(1, first));
}

TEST(ImplicitConvTest, IsNotTakenForWhatTheKernelCannot) {
  const Layer layer = {64, 64, 28, 3, 1, 1}, strided = {64, 64, 28, 3, 2, 1};
  EXPECT_FALSE(IsTaken(128, layer, Conv2dPass::kWeightGradient));
  EXPECT_FALSE(IsTaken(128, strided, Conv2dPass::kInputGradient));
  Conv2dArgs args = ArgsOf(128, layer);
  args.dtype = DType::kFloat64;
  EXPECT_FALSE(IsImplicit(args, /*tf32=*/false));
  EXPECT_FALSE(IsTaken(128, {3, 64, 224, 7, 2, 3}));  // 49 taps
  // Indices beyond 32 bits: of y, of x, and of the weight.
  EXPECT_TRUE(IsTaken(31, {1, 64, 1024, 3, 1, 1}));
  EXPECT_FALSE(IsTaken(32, {1, 64, 1024, 3, 1, 1}));
  EXPECT_FALSE(FitsImplicit(ArgsOf(2048, {1, 1, 1024, 2, 1024, 0})));
  EXPECT_FALSE(FitsImplicit(ArgsOf(1, {40000, 60000, 1, 1, 1, 0})));
}

}  // namespace
}  // namespace d2l::kernels::cuda
