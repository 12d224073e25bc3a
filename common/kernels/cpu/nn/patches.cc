#include "common/kernels/cpu/nn/patches.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace d2l::kernels::cpu {
namespace {

// The positions [begin, end) along one direction at which element k of the
// window is inside of the image, the first of them at `first` there.
struct Inside {
  Inside(std::int64_t k, std::int64_t size, std::int64_t out_size,
         std::int64_t stride, std::int64_t padding) {
    const std::int64_t outside = std::max<std::int64_t>(0, padding - k);
    begin = std::min(out_size, (outside + stride - 1) / stride);
    const std::int64_t room = size + padding - k;
    end = room <= 0
              ? begin
              : std::max(begin, std::min(out_size, (room - 1) / stride + 1));
    first = begin * stride - padding + k;
  }

  std::int64_t begin, end, first;
};

// Rows are short, often of less than ten elements: a call of memcpy would take
// longer than the copy.
template <typename T>
inline void CopyRow(const T* from, std::int64_t step, T* to, std::int64_t n) {
  std::int64_t i = 0;
  if (step == 1) {
    constexpr std::int64_t kPiece = 16 / sizeof(T);
    for (; i + kPiece <= n; i += kPiece) {
      std::memcpy(to + i, from + i, kPiece * sizeof(T));
    }
  }
  for (; i < n; ++i) to[i] = from[i * step];
}

// Calls f(c, kh, kw, row) for the rows of the matrix, each of which is `width`
// further.
template <typename F>
void ForEachRow(const Conv2dArgs& args, const PatchRange& range, const F& f) {
  for (std::int64_t c = range.first_channel; c < range.last_channel; ++c) {
    for (std::int64_t kh = 0; kh < args.window.kernel_height; ++kh) {
      for (std::int64_t kw = 0; kw < args.window.kernel_width; ++kw) {
        f(c, kh, kw);
      }
    }
  }
}

}  // namespace

template <typename T>
void CopyPatches(const Conv2dArgs& args, const PatchRange& range, const T* x,
                 T* patches) {
  const Window2d& w = args.window;
  ForEachRow(
      args, range, [&](std::int64_t c, std::int64_t kh, std::int64_t kw) {
        const Inside columns(kw, w.width, w.out_width, w.stride_width,
                             w.padding_width);
        for (std::int64_t row = range.first_row; row < range.last_row; ++row) {
          const std::int64_t image = row / w.out_height;
          const std::int64_t h =
              (row - image * w.out_height) * w.stride_height -
              w.padding_height + kh;
          if (h < 0 || h >= w.height || columns.begin == columns.end) {
            std::fill_n(patches, w.out_width, T{0});
          } else {
            std::fill_n(patches, columns.begin, T{0});
            CopyRow(
                x + ((image * args.in_channels + c) * w.height + h) * w.width +
                    columns.first,
                w.stride_width, patches + columns.begin,
                columns.end - columns.begin);
            std::fill(patches + columns.end, patches + w.out_width, T{0});
          }
          patches += w.out_width;
        }
      });
}

template <typename T>
void AddPatches(const Conv2dArgs& args, const PatchRange& range,
                const T* patches, T* x) {
  const Window2d& w = args.window;
  const std::int64_t first = range.first_row / w.out_height;
  const std::int64_t last = range.last_row / w.out_height;
  const std::int64_t image_size = w.height * w.width;
  for (std::int64_t n = first; n < last; ++n) {
    std::fill(x + (n * args.in_channels + range.first_channel) * image_size,
              x + (n * args.in_channels + range.last_channel) * image_size,
              T{0});
  }
  ForEachRow(
      args, range, [&](std::int64_t c, std::int64_t kh, std::int64_t kw) {
        const Inside rows(kh, w.height, w.out_height, w.stride_height,
                          w.padding_height);
        const Inside columns(kw, w.width, w.out_width, w.stride_width,
                             w.padding_width);
        const std::int64_t count = columns.end - columns.begin;
        for (std::int64_t n = first; n < last; ++n) {
          T* to = x + (n * args.in_channels + c) * image_size +
                  rows.first * w.width + columns.first;
          const T* from = patches + rows.begin * w.out_width + columns.begin;
          for (std::int64_t row = rows.begin; row < rows.end; ++row) {
            if (w.stride_width == 1) {
              for (std::int64_t i = 0; i < count; ++i) to[i] += from[i];
            } else {
              for (std::int64_t i = 0; i < count; ++i) {
                to[i * w.stride_width] += from[i];
              }
            }
            to += w.stride_height * w.width;
            from += w.out_width;
          }
          patches += w.out_height * w.out_width;
        }
      });
}

template void CopyPatches(const Conv2dArgs&, const PatchRange&, const float*,
                          float*);
template void CopyPatches(const Conv2dArgs&, const PatchRange&, const double*,
                          double*);
template void AddPatches(const Conv2dArgs&, const PatchRange&, const float*,
                         float*);
template void AddPatches(const Conv2dArgs&, const PatchRange&, const double*,
                         double*);

}  // namespace d2l::kernels::cpu
