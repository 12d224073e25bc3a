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

// Elements of the window that are neighbours in a row of an image: `count` of
// them, from element (kh, kw) of a channel on, `offset` after the window's
// first. They go to column `to` of the panel.
struct Piece {
  std::int64_t kh, kw, count, offset, to;
};

// Copies the pieces of each window, with vectors that reach over the end of
// their piece: in the panel, to elements that are written after it.
template <typename T, int kMostLanes>
HWY_INLINE void CopyPieces(const Conv2dArgs& args, std::int64_t first_row,
                           std::int64_t last_row, const Piece* pieces,
                           std::int64_t count, const T* x, T* panel) {
  const hn::CappedTag<T, kMostLanes> d;
  const Window2d& w = args.window;
  const std::int64_t image = args.in_channels * w.height * w.width;
  const std::int64_t last = args.batch * image - pieces[count - 1].offset -
                            static_cast<std::int64_t>(hn::MaxLanes(d));
  for (std::int64_t row = first_row; row < last_row; ++row) {
    const std::int64_t top =
        row % w.out_height * w.stride_height - w.padding_height;
    for (std::int64_t i = 0; i < w.out_width; ++i, panel += kPatchPanel) {
      const std::int64_t left = i * w.stride_width - w.padding_width;
      const std::int64_t from =
          row / w.out_height * image + top * w.width + left;
      if (top >= 0 && top + w.kernel_height <= w.height && left >= 0 &&
          left + w.kernel_width <= w.width && from <= last) {
        for (std::int64_t q = 0; q < count; ++q) {
          hn::StoreU(hn::LoadU(d, x + from + pieces[q].offset), d,
                     panel + pieces[q].to);
        }
        continue;
      }
      for (std::int64_t q = 0; q < count; ++q) {
        const Piece& piece = pieces[q];
        const std::int64_t h = top + piece.kh;
        for (std::int64_t k = 0; k < piece.count; ++k) {
          const std::int64_t v = left + piece.kw + k;
          const bool inside = h >= 0 && h < w.height && v >= 0 && v < w.width;
          panel[piece.to + k] = inside ? x[from + piece.offset + k] : T{0};
        }
      }
    }
  }
}

template <typename T>
HWY_INLINE void CopyPanel(const Conv2dArgs& args, std::int64_t first_row,
                          std::int64_t last_row, std::int64_t first_tap,
                          std::int64_t count, const T* x, T* panel) {
  constexpr int kWide = 32 / sizeof(T), kNarrow = 16 / sizeof(T);
  constexpr std::int64_t kLongest = hn::MaxLanes(hn::CappedTag<T, kWide>());
  constexpr std::int64_t kShort = hn::MaxLanes(hn::CappedTag<T, kNarrow>());
  const Window2d& w = args.window;
  Piece pieces[kPatchPanel];
  std::int64_t size = 0;
  for (std::int64_t to = 0; to < count; to += pieces[size++].count) {
    const std::int64_t kw = (first_tap + to) % w.kernel_width;
    const std::int64_t row = (first_tap + to) / w.kernel_width;
    const std::int64_t kh = row % w.kernel_height;
    const std::int64_t c = row / w.kernel_height;
    pieces[size] = {kh, kw,
                    std::min({w.kernel_width - kw, count - to, kLongest}),
                    (c * w.height + kh) * w.width + kw, to};
  }
  if (w.kernel_width == 1) {
    // The processor prefetches a few channels at a time.
    constexpr std::int64_t kChannels = 8;
    for (std::int64_t q = 0; q < size; q += kChannels) {
      CopyPieces<T, 1>(args, first_row, last_row, pieces + q,
                       std::min(kChannels, size - q), x, panel);
    }
    return;
  }
  const auto copy =
      w.kernel_width <= kShort ? CopyPieces<T, kNarrow> : CopyPieces<T, kWide>;
  copy(args, first_row, last_row, pieces, size, x, panel);
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

void RunIm2row(const Conv2dArgs& args, std::int64_t first_row,
               std::int64_t last_row, std::int64_t first_tap,
               std::int64_t count, const void* x, void* panel) {
  if (args.dtype == DType::kFloat64) {
    CopyPanel(args, first_row, last_row, first_tap, count,
              static_cast<const double*>(x), static_cast<double*>(panel));
  } else {
    CopyPanel(args, first_row, last_row, first_tap, count,
              static_cast<const float*>(x), static_cast<float*>(panel));
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
HWY_EXPORT(RunIm2row);
HWY_EXPORT(RunCol2im);

void Im2col(const Conv2dArgs& args, const Im2colRange& range, const void* x,
            void* patches) {
  HWY_DYNAMIC_DISPATCH(RunIm2col)(args, range, x, patches);
}
void Im2row(const Conv2dArgs& args, std::int64_t first_row,
            std::int64_t last_row, std::int64_t first_tap, std::int64_t count,
            const void* x, void* panel) {
  HWY_DYNAMIC_DISPATCH(RunIm2row)
  (args, first_row, last_row, first_tap, count, x, panel);
}
void Col2im(const Conv2dArgs& args, const Im2colRange& range,
            const void* patches, void* x) {
  HWY_DYNAMIC_DISPATCH(RunCol2im)(args, range, patches, x);
}

}  // namespace d2l::kernels::cpu

#endif  // HWY_ONCE
