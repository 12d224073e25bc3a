#include <algorithm>
#include <cstdint>

#include "common/kernels/cpu/nn/convolution.h"
#include "common/kernels/cpu/vector_targets.h"
#include "common/kernels/kernels.h"
#include "common/tensor/dtype.h"

// Compiles what follows once for each kind of vector.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/kernels/cpu/nn/im2col.cc"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace d2l::kernels::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The positions [begin, end) along one direction at which element k of the
// window is inside of the image. At `begin` it is the image's element `first`.
struct Inside {
  Inside(std::int64_t k, std::int64_t size, std::int64_t out_size,
         std::int64_t stride, std::int64_t padding) {
    // A division takes as long as copying a row or two.
    const auto steps = [stride](std::int64_t distance) {
      if (distance <= 0) return std::int64_t{0};
      return stride == 1 ? distance : (distance - 1) / stride + 1;
    };
    begin = std::min(out_size, steps(padding - k));
    end = std::max(begin, std::min(out_size, steps(size + padding - k)));
    first = begin * stride - padding + k;
  }

  std::int64_t begin, end, first;
};

// A rectangle of rows, `from_step` and `to_step` apart.
template <typename T>
struct Rectangle {
  const T* from;
  std::int64_t from_step;
  T* to;
  std::int64_t to_step;
  std::int64_t rows, columns;
};

// Sets, or adds to, the elements at `to`. A row has at least a vector; its last
// vector overlaps the one before, and is computed before that is written.
template <bool kAdd, typename D, typename T>
HWY_INLINE void MoveVectors(D d, const Rectangle<T>& all) {
  const std::int64_t lanes = hn::MaxLanes(d);
  const auto result = [d](const T* from, const T* to) HWY_ATTR {
    const auto value = hn::LoadU(d, from);
    return kAdd ? hn::Add(hn::LoadU(d, to), value) : value;
  };
  const T* from = all.from;
  T* to = all.to;
  const std::int64_t last = all.columns - lanes;
  for (std::int64_t row = 0; row < all.rows; ++row) {
    const auto end = result(from + last, to + last);
    for (std::int64_t i = 0; i < last; i += lanes) {
      hn::StoreU(result(from + i, to + i), d, to + i);
    }
    hn::StoreU(end, d, to + last);
    from += all.from_step;
    to += all.to_step;
  }
}

template <bool kAdd, typename T>
HWY_INLINE void Move(const Rectangle<T>& all, std::int64_t from_column,
                     std::int64_t to_column) {
  const hn::CappedTag<T, 32 / sizeof(T)> wide;
  const hn::CappedTag<T, 16 / sizeof(T)> narrow;
  if (from_column == 1 && to_column == 1) {
    if (all.columns >= static_cast<std::int64_t>(hn::MaxLanes(wide))) {
      return MoveVectors<kAdd>(wide, all);
    }
    if (all.columns >= static_cast<std::int64_t>(hn::MaxLanes(narrow))) {
      return MoveVectors<kAdd>(narrow, all);
    }
  }
  for (std::int64_t row = 0; row < all.rows; ++row) {
    const T* from = all.from + row * all.from_step;
    T* to = all.to + row * all.to_step;
    for (std::int64_t i = 0; i < all.columns; ++i) {
      T& element = to[i * to_column];
      const T value = from[i * from_column];
      element = kAdd ? element + value : value;
    }
  }
}

// Calls f(x, patches, rectangle) for each row of the matrix and each image: the
// rectangle of the positions inside of the image begins at `x` and at
// `patches`, and `row` is the image's part of the matrix's row.
template <typename F>
HWY_INLINE void ForEachRectangle(const Conv2dArgs& args,
                                 const Im2colRange& range, const F& f) {
  const Window2d& w = args.window;
  const std::int64_t first_image = range.first_row / w.out_height;
  const std::int64_t first_top = range.first_row % w.out_height;
  std::int64_t row = 0;
  for (std::int64_t c = range.first_channel; c < range.last_channel; ++c) {
    for (std::int64_t kh = 0; kh < w.kernel_height; ++kh) {
      const Inside rows(kh, w.height, w.out_height, w.stride_height,
                        w.padding_height);
      for (std::int64_t kw = 0; kw < w.kernel_width; ++kw) {
        const Inside columns(kw, w.width, w.out_width, w.stride_width,
                             w.padding_width);
        std::int64_t n = first_image;
        std::int64_t top = first_top;
        for (std::int64_t left = range.last_row - range.first_row; left > 0;) {
          const std::int64_t bottom = std::min(w.out_height, top + left);
          const std::int64_t begin = std::clamp(rows.begin, top, bottom);
          const std::int64_t end = std::clamp(rows.end, begin, bottom);
          const std::int64_t h =
              rows.first + (begin - rows.begin) * w.stride_height;
          const std::int64_t image =
              (n * args.in_channels + c) * w.height * w.width;
          f(row, (bottom - top) * w.out_width,
            image + h * w.width + columns.first,
            row + (begin - top) * w.out_width + columns.begin, end - begin,
            columns.end - columns.begin);
          row += (bottom - top) * w.out_width;
          left -= bottom - top;
          ++n;
          top = 0;
        }
      }
    }
  }
}

template <typename T>
HWY_INLINE void Copy(const Conv2dArgs& args, const Im2colRange& range,
                     const T* x, T* patches) {
  const Window2d& w = args.window;
  ForEachRectangle(
      args, range,
      [&](std::int64_t first, std::int64_t size, std::int64_t from,
          std::int64_t to, std::int64_t rows, std::int64_t columns) HWY_ATTR {
        if (rows * columns < size) std::fill_n(patches + first, size, T{0});
        if (rows == 0 || columns == 0) return;
        Move<false>(Rectangle<T>{x + from, w.stride_height * w.width,
                                 patches + to, w.out_width, rows, columns},
                    w.stride_width, 1);
      });
}

template <typename T>
HWY_INLINE void Add(const Conv2dArgs& args, const Im2colRange& range,
                    const T* patches, T* x) {
  const Window2d& w = args.window;
  const std::int64_t size = w.height * w.width;
  for (std::int64_t n = range.first_row / w.out_height;
       n < range.last_row / w.out_height; ++n) {
    std::fill(x + (n * args.in_channels + range.first_channel) * size,
              x + (n * args.in_channels + range.last_channel) * size, T{0});
  }
  ForEachRectangle(
      args, range,
      [&](std::int64_t, std::int64_t, std::int64_t to, std::int64_t from,
          std::int64_t rows, std::int64_t columns) HWY_ATTR {
        if (rows == 0 || columns == 0) return;
        Move<true>(Rectangle<T>{patches + from, w.out_width, x + to,
                                w.stride_height * w.width, rows, columns},
                   1, w.stride_width);
      });
}

void RunIm2col(const Conv2dArgs& args, const Im2colRange& range, const void* x,
               void* patches) {
  if (args.dtype == DType::kFloat64) {
    Copy(args, range, static_cast<const double*>(x),
         static_cast<double*>(patches));
  } else {
    Copy(args, range, static_cast<const float*>(x),
         static_cast<float*>(patches));
  }
}

void RunCol2im(const Conv2dArgs& args, const Im2colRange& range,
               const void* patches, void* x) {
  if (args.dtype == DType::kFloat64) {
    Add(args, range, static_cast<const double*>(patches),
        static_cast<double*>(x));
  } else {
    Add(args, range, static_cast<const float*>(patches),
        static_cast<float*>(x));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace d2l::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace d2l::kernels::cpu {

HWY_EXPORT(RunIm2col);
HWY_EXPORT(RunCol2im);

void Im2col(const Conv2dArgs& args, const Im2colRange& range, const void* x,
            void* patches) {
  HWY_DYNAMIC_DISPATCH(RunIm2col)(args, range, x, patches);
}
void Col2im(const Conv2dArgs& args, const Im2colRange& range,
            const void* patches, void* x) {
  HWY_DYNAMIC_DISPATCH(RunCol2im)(args, range, patches, x);
}

}  // namespace d2l::kernels::cpu

#endif  // HWY_ONCE
