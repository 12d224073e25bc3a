#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
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

HWY_BEFORE_NAMESPACE();
namespace d2l::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Whether the windows lie side by side and cover each row exactly.
inline bool TilesRows(const Window2d& w) {
  return w.kernel_width == w.stride_width && w.padding_width == 0 &&
         w.width == w.out_width * w.stride_width;
}
inline bool Is2x2(const Window2d& w) {
  return TilesRows(w) && w.kernel_width == 2 && w.kernel_height == 2 &&
         w.stride_height == 2 && w.padding_height == 0 &&
         w.height == 2 * w.out_height;
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

// Reduces each window's columns first, then its rows: neighbours are computed
// at the same time. kKernel and kStride are the width's, or 0 for any.
template <class Op, typename T, int kKernel, int kStride>
struct Pool {
  Window2d w;
  T* out;
  const T* in;

  HWY_FLATTEN void operator()(std::int64_t begin, std::int64_t end) const {
    const std::int64_t padded = w.width + 2 * w.padding_width;
    std::vector<T> columns(static_cast<std::size_t>(padded * w.out_height),
                           Op::template Padding<T>());
    const std::int64_t in_size = w.height * w.width;
    const std::int64_t out_size = w.out_height * w.out_width;
    for (std::int64_t image = begin; image < end; ++image) {
      for (std::int64_t i = 0; i < w.out_height; ++i) {
        JoinRows(columns.data() + i * padded + w.padding_width,
                 in + image * in_size, i);
      }
      T* const y = out + image * out_size;
      if (padded == w.out_width * w.stride_width) {
        JoinColumns(y, columns.data(), out_size);
        continue;
      }
      for (std::int64_t i = 0; i < w.out_height; ++i) {
        JoinColumns(y + i * w.out_width, columns.data() + i * padded,
                    w.out_width);
      }
    }
  }

  // Merges the rows that output row i sees.
  HWY_INLINE void JoinRows(T* HWY_RESTRICT to, const T* image,
                           std::int64_t i) const {
    const std::int64_t first = i * w.stride_height - w.padding_height;
    const std::int64_t top = std::max<std::int64_t>(first, 0);
    const std::int64_t bottom = std::min(first + w.kernel_height, w.height);
    const T* HWY_RESTRICT x = image + top * w.width;
    if (bottom - top == 1) {
      std::copy(x, x + w.width, to);
      return;
    }
    const T* HWY_RESTRICT next = x + w.width;
    for (std::int64_t j = 0; j < w.width; ++j) to[j] = Op::Join(x[j], next[j]);
    for (std::int64_t row = top + 2; row < bottom; ++row) {
      next += w.width;
      for (std::int64_t j = 0; j < w.width; ++j)
        to[j] = Op::Join(to[j], next[j]);
    }
  }

  HWY_INLINE void JoinColumns(T* HWY_RESTRICT y, const T* HWY_RESTRICT x,
                              std::int64_t n) const {
    const std::int64_t kernel = kKernel != 0 ? kKernel : w.kernel_width;
    const std::int64_t stride = kStride != 0 ? kStride : w.stride_width;
    const T count = static_cast<T>(w.kernel_height * kernel);
    for (std::int64_t j = 0; j < n; ++j) {
      T joined = x[j * stride];
      for (std::int64_t k = 1; k < kernel; ++k) {
        joined = Op::Join(joined, x[j * stride + k]);
      }
      y[j] = std::is_same_v<Op, PoolSum> ? joined / count : joined;
    }
  }
};

template <typename T>
struct AvgGradient {
  Window2d w;
  T* out;
  const T* in;  // of y

  HWY_FLATTEN void operator()(std::int64_t begin, std::int64_t end) const {
    const std::int64_t padded = w.width + 2 * w.padding_width;
    const std::int64_t spread = padded * w.out_height;
    std::vector<T> columns(static_cast<std::size_t>(spread));
    const std::int64_t out_size = w.height * w.width;
    const std::int64_t dy_size = w.out_height * w.out_width;
    for (std::int64_t image = begin; image < end; ++image) {
      const T* const g = in + image * dy_size;
      if (w.kernel_width == 2 && TilesRows(w)) {
        SpreadPairs(columns.data(), g, dy_size);
      } else {
        std::fill(columns.begin(), columns.end(), T{0});
        for (std::int64_t i = 0; i < w.out_height; ++i) {
          Spread(columns.data() + i * padded, g + i * w.out_width);
        }
      }
      for (std::int64_t row = 0; row < w.height; ++row) {
        AddRows(out + image * out_size + row * w.width,
                columns.data() + w.padding_width, padded, row);
      }
    }
  }

  T count() const { return static_cast<T>(w.kernel_height * w.kernel_width); }

  // Spreads a row of the output along a row of the input.
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
    for (std::int64_t j = 0; j < w.out_width; ++j) {
      const T share = g[j] / divisor;
      T* const window = to + j * w.stride_width;
      for (std::int64_t k = 0; k < w.kernel_width; ++k) window[k] += share;
    }
  }

  // Adds the rows of the output that have seen this row of the input.
  HWY_INLINE void AddRows(T* HWY_RESTRICT to, const T* HWY_RESTRICT columns,
                          std::int64_t padded, std::int64_t row) const {
    const std::int64_t at = row + w.padding_height;
    const std::int64_t above =
        at - w.kernel_height;  // the last window that ended
    const std::int64_t first = above < 0 ? 0 : above / w.stride_height + 1;
    const std::int64_t last = std::min(at / w.stride_height, w.out_height - 1);
    if (first > last) {
      std::fill(to, to + w.width, T{0});
      return;
    }
    const T* from = columns + first * padded;
    std::copy(from, from + w.width, to);
    for (std::int64_t i = first + 1; i <= last; ++i) {
      from += padded;
      for (std::int64_t j = 0; j < w.width; ++j) to[j] += from[j];
    }
  }
};

// Whether a later element replaces the largest so far: of several NaN, the last
// one counts. Without branches.
template <typename T>
HWY_INLINE bool Beats(T later, T largest) {
  return (later > largest) | IsNan(later);
}

template <typename T>
struct MaxGradient {
  const T* forward_input;
  Window2d w = {};
  T* out = nullptr;
  const T* in = nullptr;  // of y

  HWY_FLATTEN void operator()(std::int64_t begin, std::int64_t end) const {
    const std::int64_t size = w.height * w.width;
    const T* g = in + begin * w.out_height * w.out_width;
    const bool is_2x2 = Is2x2(w);
    for (std::int64_t image = begin; image < end; ++image) {
      const T* const x = forward_input + image * size;
      T* const dx = out + image * size;
      std::fill(dx, dx + size, T{0});
      for (std::int64_t i = 0; i < w.out_height; ++i, g += w.out_width) {
        if (is_2x2) {
          const std::int64_t rows = 2 * i * w.width;
          Row2x2(dx + rows, x + rows, g);
        } else {
          Row(dx, x, g, i);
        }
      }
    }
  }

  HWY_INLINE void Row(T* dx, const T* x, const T* g, std::int64_t i) const {
    const std::int64_t first_row = i * w.stride_height - w.padding_height;
    const std::int64_t top = std::max<std::int64_t>(first_row, 0);
    const std::int64_t bottom = std::min(first_row + w.kernel_height, w.height);
    for (std::int64_t j = 0; j < w.out_width; ++j) {
      const std::int64_t first_column = j * w.stride_width - w.padding_width;
      const std::int64_t left = std::max<std::int64_t>(first_column, 0);
      const std::int64_t right =
          std::min(first_column + w.kernel_width, w.width);
      std::int64_t largest = top * w.width + left;
      for (std::int64_t row = top; row < bottom; ++row) {
        for (std::int64_t column = left; column < right; ++column) {
          const std::int64_t at = row * w.width + column;
          if (Beats(x[at], x[largest])) largest = at;
        }
      }
      dx[largest] += g[j];
    }
  }

  // Computes four windows at a time, without branches: the place of the largest
  // element cannot be predicted.
  HWY_INLINE void Row2x2(T* HWY_RESTRICT dx, const T* HWY_RESTRICT x,
                         const T* HWY_RESTRICT g) const {
    const std::int64_t width = w.width;
    std::int64_t j = 0;
#if HWY_TARGET != HWY_SCALAR
    const hn::CappedTag<T, 4> d;
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
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

template <typename T, class F>
void Run(const Pool2dArgs& args, F f) {
  constexpr std::int64_t kElements = 16384;  // are worth a thread
  f.w = args.window;
  f.out = static_cast<T*>(args.out);
  f.in = static_cast<const T*>(args.in);
  ParallelFor(args.images, kElements / (f.w.height * f.w.width) + 1, f);
}

template <class Op, typename T>
void RunPool(const Pool2dArgs& args) {
  if (args.window.kernel_width == 2 && args.window.stride_width == 2) {
    Run<T>(args, Pool<Op, T, 2, 2>());
  } else {
    Run<T>(args, Pool<Op, T, 0, 0>());
  }
}

template <typename T>
void RunOp(const Pool2dArgs& args) {
  switch (args.op) {
    case Pool2dOp::kAvg:
      return RunPool<PoolSum, T>(args);
    case Pool2dOp::kMax:
      return RunPool<PoolMax, T>(args);
    case Pool2dOp::kAvgGradient:
      return Run<T>(args, AvgGradient<T>());
    case Pool2dOp::kMaxGradient:
      return Run<T>(args,
                    MaxGradient<T>{static_cast<const T*>(args.forward_input)});
  }
}

void RunPool2d(const Pool2dArgs& args) {
  args.dtype == DType::kFloat64 ? RunOp<double>(args) : RunOp<float>(args);
}

}  // namespace HWY_NAMESPACE
}  // namespace d2l::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace d2l::kernels::cpu {

HWY_EXPORT(RunPool2d);

std::uint64_t Enqueue(CpuStream& stream, const OpLabel& label,
                      const Pool2dArgs& args) {
  // The arguments are too large for a task.
  return stream.Enqueue(label, [all = std::make_shared<Pool2dArgs>(args)] {
    HWY_DYNAMIC_DISPATCH(RunPool2d)(*all);
  });
}

}  // namespace d2l::kernels::cpu

#endif  // HWY_ONCE
