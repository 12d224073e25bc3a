#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "common/device/cpu/cpu_stream.h"
#include "common/device/cpu/parallel_for.h"
#include "common/kernels/cpu/vector_targets.h"
#include "common/kernels/enqueue.h"
#include "common/tensor/dtype.h"

// Compiles what follows once for each kind of vector.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/kernels/cpu/nn/pooling.cc"
#include "hwy/foreach_target.h"
//
#include "common/kernels/cpu/reduce-inl.h"
#include "hwy/highway.h"

#ifndef D2L_COMMON_KERNELS_CPU_NN_POOLING_CC_
#define D2L_COMMON_KERNELS_CPU_NN_POOLING_CC_
namespace d2l::kernels::cpu {

// Of 32 bits, so that it fits into a slot of the queue beside the rest.
struct PoolWindow {
  explicit PoolWindow(const Window2d& window)
      : height(static_cast<int>(window.height)),
        width(static_cast<int>(window.width)),
        out_height(static_cast<int>(window.out_height)),
        out_width(static_cast<int>(window.out_width)),
        kernel_height(static_cast<int>(window.kernel_height)),
        kernel_width(static_cast<int>(window.kernel_width)),
        stride_height(static_cast<int>(window.stride_height)),
        stride_width(static_cast<int>(window.stride_width)),
        padding_height(static_cast<int>(window.padding_height)),
        padding_width(static_cast<int>(window.padding_width)) {}

  // Whether the windows lie side by side and cover each row exactly.
  bool tiles_rows() const {
    return kernel_width == stride_width && padding_width == 0 &&
           width == out_width * stride_width;
  }
  bool is_2x2() const {
    return tiles_rows() && kernel_width == 2 && kernel_height == 2 &&
           stride_height == 2 && padding_height == 0 &&
           height == 2 * out_height;
  }

  int height, width, out_height, out_width, kernel_height, kernel_width,
      stride_height, stride_width, padding_height, padding_width;
};

// As Pool2dArgs.
struct PoolTask {
  std::int64_t images;
  PoolWindow window;
  void* out;
  const void* in;
  const void* forward_input;
};
using PoolFunction = void (*)(const PoolTask& task);

}  // namespace d2l::kernels::cpu
#endif  // D2L_COMMON_KERNELS_CPU_NN_POOLING_CC_

HWY_BEFORE_NAMESPACE();
namespace d2l::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// How many images are worth a thread.
inline std::int64_t PoolGrain(const PoolWindow& w) {
  constexpr std::int64_t kElements = 16384;
  return kElements / (std::int64_t{w.height} * w.width) + 1;
}

struct PoolSum {
  template <typename T>
  static constexpr T Padding() {
    return 0;
  }
  template <typename T>
  static HWY_INLINE T Join(T a, T b) {
    return a + b;
  }
};
struct PoolMax {
  template <typename T>
  static constexpr T Padding() {
    return -std::numeric_limits<T>::infinity();
  }
  template <typename T>
  static HWY_INLINE T Join(T a, T b) {
    return First<Larger>(a, b);
  }
};

// First down the columns of each window, then along the rows: neighbours are
// computed at the same time. kKernel and kStride are the width's, or 0 for any.
template <class Op, typename T, int kKernel, int kStride>
struct Pool {
  PoolWindow w;
  T* out;
  const T* in;

  HWY_FLATTEN void operator()(std::int64_t begin, std::int64_t end) const {
    const std::int64_t padded = w.width + 2 * w.padding_width;
    std::vector<T> columns(static_cast<std::size_t>(padded * w.out_height),
                           Op::template Padding<T>());
    const std::int64_t in_size = std::int64_t{w.height} * w.width;
    const std::int64_t out_size = std::int64_t{w.out_height} * w.out_width;
    for (std::int64_t image = begin; image < end; ++image) {
      for (int i = 0; i < w.out_height; ++i) {
        JoinRows(columns.data() + i * padded + w.padding_width,
                 in + image * in_size, i);
      }
      T* const y = out + image * out_size;
      if (padded == std::int64_t{w.out_width} * w.stride_width) {
        JoinColumns(y, columns.data(), out_size);
        continue;
      }
      for (int i = 0; i < w.out_height; ++i) {
        JoinColumns(y + std::int64_t{i} * w.out_width,
                    columns.data() + i * padded, w.out_width);
      }
    }
  }

  // The rows that output row i sees.
  HWY_INLINE void JoinRows(T* HWY_RESTRICT to, const T* image, int i) const {
    const int first = i * w.stride_height - w.padding_height;
    const int top = std::max(first, 0);
    const int bottom = std::min(first + w.kernel_height, w.height);
    const T* HWY_RESTRICT x = image + std::int64_t{top} * w.width;
    if (bottom - top == 1) {
      std::copy(x, x + w.width, to);
      return;
    }
    const T* HWY_RESTRICT next = x + w.width;
    for (int j = 0; j < w.width; ++j) to[j] = Op::Join(x[j], next[j]);
    for (int row = top + 2; row < bottom; ++row) {
      next += w.width;
      for (int j = 0; j < w.width; ++j) to[j] = Op::Join(to[j], next[j]);
    }
  }

  HWY_INLINE void JoinColumns(T* HWY_RESTRICT y, const T* HWY_RESTRICT x,
                              std::int64_t n) const {
    const int kernel = kKernel != 0 ? kKernel : w.kernel_width;
    const int stride = kStride != 0 ? kStride : w.stride_width;
    const T count = static_cast<T>(std::int64_t{w.kernel_height} * kernel);
    for (std::int64_t j = 0; j < n; ++j) {
      T joined = x[j * stride];
      for (int k = 1; k < kernel; ++k) {
        joined = Op::Join(joined, x[j * stride + k]);
      }
      y[j] = std::is_same_v<Op, PoolSum> ? joined / count : joined;
    }
  }
};

template <typename T>
struct AvgGradient {
  PoolWindow w;
  T* out;
  const T* dy;

  HWY_FLATTEN void operator()(std::int64_t begin, std::int64_t end) const {
    const std::int64_t padded = w.width + 2 * w.padding_width;
    const std::int64_t spread = padded * w.out_height;
    std::vector<T> columns(static_cast<std::size_t>(spread));
    const std::int64_t out_size = std::int64_t{w.height} * w.width;
    const std::int64_t dy_size = std::int64_t{w.out_height} * w.out_width;
    for (std::int64_t image = begin; image < end; ++image) {
      const T* const g = dy + image * dy_size;
      if (w.kernel_width == 2 && w.tiles_rows()) {
        SpreadPairs(columns.data(), g, dy_size);
      } else {
        std::fill(columns.begin(), columns.end(), T{0});
        for (int i = 0; i < w.out_height; ++i) {
          Spread(columns.data() + i * padded,
                 g + std::int64_t{i} * w.out_width);
        }
      }
      for (int row = 0; row < w.height; ++row) {
        AddRows(out + image * out_size + std::int64_t{row} * w.width,
                columns.data() + w.padding_width, padded, row);
      }
    }
  }

  T count() const {
    return static_cast<T>(std::int64_t{w.kernel_height} * w.kernel_width);
  }

  // Along the rows of the input that a row of the output has seen.
  HWY_INLINE void SpreadPairs(T* HWY_RESTRICT to, const T* HWY_RESTRICT g,
                              std::int64_t n) const {
    const T divisor = count();
    for (std::int64_t j = 0; j < n; ++j) {
      const T share = g[j] / divisor;
      to[2 * j] = share;
      to[2 * j + 1] = share;
    }
  }
  HWY_INLINE void Spread(T* HWY_RESTRICT to, const T* HWY_RESTRICT g) const {
    const T divisor = count();
    for (int j = 0; j < w.out_width; ++j) {
      const T share = g[j] / divisor;
      T* const window = to + std::int64_t{j} * w.stride_width;
      for (int k = 0; k < w.kernel_width; ++k) window[k] += share;
    }
  }

  // The rows of the output that have seen this row of the input.
  HWY_INLINE void AddRows(T* HWY_RESTRICT to, const T* HWY_RESTRICT columns,
                          std::int64_t padded, int row) const {
    const int at = row + w.padding_height;
    const int above = at - w.kernel_height;  // the last window that ended
    const int first = above < 0 ? 0 : above / w.stride_height + 1;
    const int last = std::min(at / w.stride_height, w.out_height - 1);
    if (first > last) {
      std::fill(to, to + w.width, T{0});
      return;
    }
    const T* from = columns + first * padded;
    std::copy(from, from + w.width, to);
    for (int i = first + 1; i <= last; ++i) {
      from += padded;
      for (int j = 0; j < w.width; ++j) to[j] += from[j];
    }
  }
};

// Whether a later element takes the place of the largest so far: of several
// NaN, the last. Without branches.
template <typename T>
HWY_INLINE bool Beats(T later, T largest) {
  return (later > largest) | IsNan(later);
}

template <typename T>
struct MaxGradient {
  PoolWindow w;
  T* out;
  const T* dy;
  const T* in;

  HWY_FLATTEN void operator()(std::int64_t begin, std::int64_t end) const {
    const std::int64_t size = std::int64_t{w.height} * w.width;
    const T* g = dy + begin * w.out_height * w.out_width;
    const bool is_2x2 = w.is_2x2();
    for (std::int64_t image = begin; image < end; ++image) {
      const T* const x = in + image * size;
      T* const dx = out + image * size;
      std::fill(dx, dx + size, T{0});
      for (int i = 0; i < w.out_height; ++i, g += w.out_width) {
        if (is_2x2) {
          const std::int64_t rows = 2 * std::int64_t{i} * w.width;
          Row2x2(dx + rows, x + rows, g);
        } else {
          Row(dx, x, g, i);
        }
      }
    }
  }

  HWY_INLINE void Row(T* dx, const T* x, const T* g, int i) const {
    const int first_row = i * w.stride_height - w.padding_height;
    const int top = std::max(first_row, 0);
    const int bottom = std::min(first_row + w.kernel_height, w.height);
    for (int j = 0; j < w.out_width; ++j) {
      const int first_column = j * w.stride_width - w.padding_width;
      const int left = std::max(first_column, 0);
      const int right = std::min(first_column + w.kernel_width, w.width);
      std::int64_t largest = std::int64_t{top} * w.width + left;
      for (int row = top; row < bottom; ++row) {
        for (int column = left; column < right; ++column) {
          const std::int64_t at = std::int64_t{row} * w.width + column;
          if (Beats(x[at], x[largest])) largest = at;
        }
      }
      dx[largest] += g[j];
    }
  }

  // Four windows at a time, without branches: which element is the largest
  // cannot be predicted.
  HWY_INLINE void Row2x2(T* HWY_RESTRICT dx, const T* HWY_RESTRICT x,
                         const T* HWY_RESTRICT g) const {
    const std::int64_t width = w.width;
    int j = 0;
#if HWY_TARGET != HWY_SCALAR
    const hn::CappedTag<T, 4> d;
    const int lanes = static_cast<int>(hn::Lanes(d));
    const auto beats = [](auto later, auto largest) HWY_ATTR {
      return hn::Or(hn::Gt(later, largest), hn::IsNaN(later));
    };
    for (; j + lanes <= w.out_width; j += lanes) {
      hn::Vec<decltype(d)> top_left, top_right, bottom_left, bottom_right;
      hn::LoadInterleaved2(d, x + 2 * j, top_left, top_right);
      hn::LoadInterleaved2(d, x + width + 2 * j, bottom_left, bottom_right);
      const auto right_above = beats(top_right, top_left);
      const auto right_below = beats(bottom_right, bottom_left);
      const auto is_below =
          beats(hn::IfThenElse(right_below, bottom_right, bottom_left),
                hn::IfThenElse(right_above, top_right, top_left));
      const auto gradient = hn::LoadU(d, g + j);
      const auto above = hn::IfThenZeroElse(is_below, gradient);
      const auto below = hn::IfThenElseZero(is_below, gradient);
      hn::StoreInterleaved2(hn::IfThenZeroElse(right_above, above),
                            hn::IfThenElseZero(right_above, above), d,
                            dx + 2 * j);
      hn::StoreInterleaved2(hn::IfThenZeroElse(right_below, below),
                            hn::IfThenElseZero(right_below, below), d,
                            dx + width + 2 * j);
    }
#endif
    for (; j < w.out_width; ++j) {
      const T* const at = x + 2 * j;
      const std::int64_t above = Beats(at[1], at[0]);
      const std::int64_t below = width + Beats(at[width + 1], at[width]);
      dx[2 * j + (Beats(at[below], at[above]) ? below : above)] = g[j];
    }
  }
};

template <class Op, typename T>
void RunPool(const PoolTask& task) {
  const PoolWindow& w = task.window;
  T* const out = static_cast<T*>(task.out);
  const T* const in = static_cast<const T*>(task.in);
  if (w.kernel_width == 2 && w.stride_width == 2) {
    ParallelFor(task.images, PoolGrain(w), Pool<Op, T, 2, 2>{w, out, in});
  } else {
    ParallelFor(task.images, PoolGrain(w), Pool<Op, T, 0, 0>{w, out, in});
  }
}

template <typename T>
void RunAvgGradient(const PoolTask& task) {
  ParallelFor(task.images, PoolGrain(task.window),
              AvgGradient<T>{task.window, static_cast<T*>(task.out),
                             static_cast<const T*>(task.in)});
}

template <typename T>
void RunMaxGradient(const PoolTask& task) {
  ParallelFor(task.images, PoolGrain(task.window),
              MaxGradient<T>{task.window, static_cast<T*>(task.out),
                             static_cast<const T*>(task.in),
                             static_cast<const T*>(task.forward_input)});
}

template <typename T>
PoolFunction PoolOf(Pool2dOp op) {
  switch (op) {
    case Pool2dOp::kAvg:
      return RunPool<PoolSum, T>;
    case Pool2dOp::kMax:
      return RunPool<PoolMax, T>;
    case Pool2dOp::kAvgGradient:
      return RunAvgGradient<T>;
    case Pool2dOp::kMaxGradient:
      break;
  }
  return RunMaxGradient<T>;
}

PoolFunction ChoosePool(Pool2dOp op, DType dtype) {
  return dtype == DType::kFloat64 ? PoolOf<double>(op) : PoolOf<float>(op);
}

}  // namespace HWY_NAMESPACE
}  // namespace d2l::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace d2l::kernels::cpu {

HWY_EXPORT(ChoosePool);

std::uint64_t Enqueue(CpuStream& stream, const OpLabel& label,
                      const Pool2dArgs& args) {
  const PoolFunction function =
      HWY_DYNAMIC_DISPATCH(ChoosePool)(args.op, args.dtype);
  const PoolTask task = {args.images, PoolWindow(args.window), args.out,
                         args.in, args.forward_input};
  return stream.Enqueue(label, [function, task] { function(task); });
}

}  // namespace d2l::kernels::cpu

#endif  // HWY_ONCE
