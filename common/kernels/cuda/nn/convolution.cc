// The patches of a group of images are columns (launch.h), and y's channels are
// rows over the same columns:
//   y = weight patches,  patches' = weight^T y',  weight' = sum y' patches^T
// where the sum is over the groups, one after the other. A group's columns are
// one product, so that it is wide even where images are small. In y itself the
// images are outermost, so there is a copy between y and its rows.
//
// The window of a pointwise convolution is one element at stride 1, so an image
// of x is its patches, and an image of y its rows: the first two products read
// and write the tensors themselves, image by image. The weight's gradient, one
// sum over all images, uses patches here, too.
//
// The patches of a 3×3 window are nine times the elements of x, written and
// read. Where that counts for more than a library's faster product,
// implicit_conv.cu computes the addresses of the patches' elements instead.
// cuDNN has such products, too; it is not loaded, as cuBLAS is: its wheel is
// half a gigabyte; its version and the GPU determine which algorithm it takes,
// and so the bits of the result; and it computes nothing without a GPU, so no
// test here would run a line of it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "common/kernels/cuda/index/gemm_call.h"
#include "common/kernels/cuda/index/implicit_conv.h"
#include "common/kernels/cuda/launch.h"
#include "common/kernels/kernels.h"
#include "common/kernels/layout.h"
#include "common/kernels/op_tables.h"
#include "common/kernels/tf32.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"

namespace d2l::kernels::cuda {
namespace {

constexpr std::int64_t kMostWorkspaceBytes = std::int64_t{64} << 20;

// The groups of a convolution, and the content of a group's workspace.
struct Plan {
  explicit Plan(const Conv2dArgs& args)
      : element(static_cast<std::int64_t>(DTypeSize(args.dtype))),
        taps(args.in_channels * args.window.kernel_height *
             args.window.kernel_width),
        pixels(args.window.out_height * args.window.out_width),
        x_image(args.in_channels * args.window.height * args.window.width),
        y_image(args.out_channels * pixels) {
    const std::int64_t of_image = (taps + args.out_channels) * pixels * element;
    const std::int64_t fit = std::clamp<std::int64_t>(
        kMostWorkspaceBytes / std::max<std::int64_t>(of_image, 1), 1,
        std::max<std::int64_t>(args.batch, 1));
    // The groups have about the same size.
    const std::int64_t groups = (args.batch + fit - 1) / fit;
    group = groups == 0 ? 0 : (args.batch + groups - 1) / groups;
    patch_bytes = taps * group * pixels * element;
    bytes = of_image * group;
  }

  std::int64_t element;           // bytes
  std::int64_t taps;              // rows of the patches
  std::int64_t pixels;            // of an image of y
  std::int64_t x_image, y_image;  // elements
  std::int64_t group;             // images
  std::int64_t patch_bytes, bytes;
};

bool IsPointwise(const Window2d& w) {
  return w.kernel_height == 1 && w.kernel_width == 1 && w.stride_height == 1 &&
         w.stride_width == 1 && w.padding_height == 0 && w.padding_width == 0;
}

// Whether the tensors themselves are the operands of the products.
bool IsDirect(const Conv2dArgs& args) {
  return args.pass != Conv2dPass::kWeightGradient && IsPointwise(args.window);
}

void LaunchDirect(const CudaLaunch& launch, const Conv2dArgs& args,
                  const Plan& plan) {
  const bool forward = args.pass == Conv2dPass::kForward;
  MatMulArgs product = {args.dtype,   /*transpose_a=*/!forward,
                        false,        args.out_channels,
                        plan.pixels,  args.in_channels,
                        args.second,  args.in_channels,
                        args.first,   plan.pixels,
                        args.out,     plan.pixels,
                        args.batch,   /*a_stride=*/0,
                        plan.x_image, plan.y_image};
  if (!forward) {
    std::swap(product.m, product.k);
    std::swap(product.b_stride, product.c_stride);
  }
  Launch(launch, product);
  if (args.bias == nullptr) return;
  const Shape y = {plan.y_image, plan.pixels, 1};
  const StridedLayout layout = {
      {args.batch, args.out_channels, plan.pixels}, y, {y, {0, 1, 0}}};
  Launch(launch, BinaryArgs{BinaryOp::kAdd,
                            args.dtype,
                            args.batch * plan.y_image,
                            args.out,
                            {args.out, {}},
                            {args.bias, {}},
                            &layout});
}

struct Group {
  const CudaLaunch& launch;
  const Conv2dArgs& args;
  const Plan& plan;
  std::int64_t images;
  void* rows;  // of y

  // y's rows and y itself: the same elements, (images, channels, pixels).
  StridedLayout Layout() const {
    const std::int64_t channels = args.out_channels;
    const Shape of_rows = {plan.pixels, images * plan.pixels, 1};
    return {{images, channels, plan.pixels},
            {plan.y_image, plan.pixels, 1},
            {of_rows, {0, 1, 0}}};
  }
  // Writes y from its rows, and adds the bias.
  void StoreRows(void* y) const {
    const std::int64_t numel = images * plan.y_image;
    const StridedLayout layout = Layout();
    if (args.bias != nullptr) {
      Launch(launch, BinaryArgs{BinaryOp::kAdd,
                                args.dtype,
                                numel,
                                y,
                                {rows, {}},
                                {args.bias, {}},
                                &layout});
    } else if (rows != y) {
      Launch(launch, CopyArgs{args.dtype, args.dtype, numel, y, rows, &layout});
    }
  }
  void LoadRows(const void* y) const {
    StridedLayout layout = Layout();
    std::swap(layout.out, layout.in[0]);
    Launch(launch, CopyArgs{args.dtype, args.dtype, images * plan.y_image, rows,
                            y, &layout});
  }
};

}  // namespace

std::size_t WorkspaceBytes(const Conv2dArgs& args) {
  if (IsDirect(args) || IsImplicit(args, AllowTf32())) return 0;
  return static_cast<std::size_t>(Plan(args).bytes);
}

void Launch(const CudaLaunch& launch, const Conv2dArgs& args, void* workspace) {
  const Plan plan(args);
  const bool forward = args.pass == Conv2dPass::kForward;
  const bool of_weight = args.pass == Conv2dPass::kWeightGradient;
  if (plan.group == 0 || plan.y_image == 0 || plan.x_image == 0) {
    // An empty sum is zero.
    if (!forward) {
      const std::int64_t numel =
          of_weight ? args.out_channels * plan.taps : args.batch * plan.x_image;
      Launch(launch, FillArgs{args.dtype, numel, args.out, 0.0, nullptr});
    }
    return;
  }
  if (IsDirect(args)) return LaunchDirect(launch, args, plan);
  // As WorkspaceBytes has decided: another thread may have set AllowTf32 since.
  if (workspace == nullptr) return LaunchImplicitConv(launch, args);
  char* const patches = static_cast<char*>(workspace);
  const char* const x =
      static_cast<const char*>(forward ? args.first : args.second);
  for (std::int64_t first = 0; first < args.batch; first += plan.group) {
    const std::int64_t images = std::min(plan.group, args.batch - first);
    const std::int64_t columns = images * plan.pixels;
    const std::int64_t x_offset = first * plan.x_image * plan.element;
    const std::int64_t y_offset = first * plan.y_image * plan.element;
    const Im2colArgs of_group = {args.dtype, images, args.in_channels,
                                 args.window};
    // The rows of a single image are y itself.
    const bool direct = images == 1;
    Group group = {launch, args, plan, images, patches + plan.patch_bytes};
    if (forward) {
      void* const y = static_cast<char*>(args.out) + y_offset;
      if (direct) group.rows = y;
      LaunchIm2col(launch, of_group, patches, x + x_offset);
      Launch(launch, MatMulArgs{args.dtype, false, false, args.out_channels,
                                columns, plan.taps, args.second, plan.taps,
                                patches, columns, group.rows, columns});
      group.StoreRows(y);
      continue;
    }
    const void* const dy = static_cast<const char*>(args.first) + y_offset;
    if (!direct) group.LoadRows(dy);
    const void* const rows = direct ? dy : group.rows;
    if (!of_weight) {
      Launch(launch, MatMulArgs{args.dtype, true, false, plan.taps, columns,
                                args.out_channels, args.second, plan.taps, rows,
                                columns, patches, columns});
      LaunchCol2im(launch, of_group, static_cast<char*>(args.out) + x_offset,
                   patches);
      continue;
    }
    LaunchIm2col(launch, of_group, patches, x + x_offset);
    GemmCall call = MakeGemmCall({args.dtype, false, true, args.out_channels,
                                  plan.taps, columns, rows, columns, patches,
                                  columns, args.out, plan.taps});
    call.accumulate = first > 0;
    LaunchBlasGemm(launch, args.dtype, call);
  }
}

}  // namespace d2l::kernels::cuda
