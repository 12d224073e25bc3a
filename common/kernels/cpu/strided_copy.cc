#include "common/kernels/cpu/strided_copy.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/kernels/cpu/vector_targets.h"

// Compiles what follows once for each kind of vector.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/kernels/cpu/strided_copy.cc"
#include "hwy/foreach_target.h"
//
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace d2l::kernels::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

void Stream(void* to, const void* from, std::size_t bytes) {
  std::uint8_t* out = static_cast<std::uint8_t*>(to);
  const std::uint8_t* in = static_cast<const std::uint8_t*>(from);
#if HWY_TARGET != HWY_SCALAR
  constexpr std::size_t kLine = 64;
  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(to) % kLine;
  const std::size_t head =
      std::min(bytes, misaligned == 0 ? 0 : kLine - misaligned);
  std::memcpy(out, in, head);
  out += head;
  in += head;
  bytes -= head;
  const hn::ScalableTag<std::uint8_t> d;
  const std::size_t lanes = hn::Lanes(d);
  // Stores whole lines, so that none is written to memory in parts.
  for (; bytes >= kLine; bytes -= kLine) {
    for (std::size_t i = 0; i < kLine; i += lanes) {
      hn::Stream(hn::LoadU(d, in + i), d, out + i);
    }
    out += kLine;
    in += kLine;
  }
#endif
  std::memcpy(out, in, bytes);
}

// out[r * to_stride + c] = in[c * from_stride + r]
template <typename T>
HWY_INLINE void TransposeElements(std::int64_t rows, std::int64_t cols, T* out,
                                  std::int64_t to_stride, const T* in,
                                  std::int64_t from_stride) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < cols; ++c) {
      out[r * to_stride + c] = in[c * from_stride + r];
    }
  }
}

#if HWY_TARGET != HWY_SCALAR

// Eight 32-bit elements, or four, by the size of the machine's vectors.
using Tag = hn::CappedTag<std::uint32_t, 8>;
using V = hn::Vec<Tag>;
constexpr std::int64_t kSide = HWY_MIN(8, hn::MaxLanes(Tag()));

// Four elements of row r of `in` and, if there is room, four of row r + 4.
HWY_INLINE V LoadRows(const std::uint32_t* in, std::int64_t stride, int r) {
  const Tag d;
#if HWY_MAX_BYTES >= 32
  const hn::Half<Tag> half;
  return hn::Combine(d, hn::LoadU(half, in + (r + 4) * stride),
                     hn::LoadU(half, in + r * stride));
#else
  return hn::LoadU(d, in + r * stride);
#endif
}

// kSide by kSide elements.
HWY_INLINE void TransposeSquare(std::uint32_t* out, std::int64_t to_stride,
                                const std::uint32_t* in,
                                std::int64_t from_stride) {
  const Tag d;
  const hn::RepartitionToWide<Tag> wide;
  for (int part = 0; part < kSide; part += 4) {
    const V a = LoadRows(in + part, from_stride, 0);
    const V b = LoadRows(in + part, from_stride, 1);
    const V c = LoadRows(in + part, from_stride, 2);
    const V e = LoadRows(in + part, from_stride, 3);
    const auto ab_low = hn::BitCast(wide, hn::InterleaveLower(d, a, b));
    const auto ab_high = hn::BitCast(wide, hn::InterleaveUpper(d, a, b));
    const auto ce_low = hn::BitCast(wide, hn::InterleaveLower(d, c, e));
    const auto ce_high = hn::BitCast(wide, hn::InterleaveUpper(d, c, e));
    std::uint32_t* const to = out + part * to_stride;
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, ab_low, ce_low)), d,
               to);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, ab_low, ce_low)), d,
               to + to_stride);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, ab_high, ce_high)), d,
               to + 2 * to_stride);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, ab_high, ce_high)), d,
               to + 3 * to_stride);
  }
}

void TransposeTile(std::int64_t rows, std::int64_t cols, std::uint32_t* out,
                   std::int64_t to_stride, const std::uint32_t* in,
                   std::int64_t from_stride) {
  const std::int64_t whole_rows = rows / kSide * kSide;
  const std::int64_t whole_cols = cols / kSide * kSide;
  for (std::int64_t c = 0; c < whole_cols; c += kSide) {
    for (std::int64_t r = 0; r < whole_rows; r += kSide) {
      TransposeSquare(out + r * to_stride + c, to_stride,
                      in + c * from_stride + r, from_stride);
    }
  }
  TransposeElements(rows - whole_rows, cols, out + whole_rows * to_stride,
                    to_stride, in + whole_rows, from_stride);
  TransposeElements(whole_rows, cols - whole_cols, out + whole_cols, to_stride,
                    in + whole_cols * from_stride, from_stride);
}

#else  // HWY_TARGET != HWY_SCALAR

void TransposeTile(std::int64_t rows, std::int64_t cols, std::uint32_t* out,
                   std::int64_t to_stride, const std::uint32_t* in,
                   std::int64_t from_stride) {
  TransposeElements(rows, cols, out, to_stride, in, from_stride);
}

#endif  // HWY_TARGET != HWY_SCALAR

template <typename T>
void TransposeTile(std::int64_t rows, std::int64_t cols, T* out,
                   std::int64_t to_stride, const T* in,
                   std::int64_t from_stride) {
  TransposeElements(rows, cols, out, to_stride, in, from_stride);
}

// Copies tile by tile: a tile's lines stay in the first cache, its pages in the
// translation buffer. Rows are collected first if they are streamed.
template <typename T>
void Transpose(std::int64_t rows, std::int64_t cols, T* out,
               std::int64_t to_stride, const T* in, std::int64_t from_stride,
               bool stream) {
  constexpr std::int64_t kTile = sizeof(T) == 8 ? 32 : 64;
  alignas(64) T buffer[kTile * kTile];
  for (std::int64_t r = 0; r < rows; r += kTile) {
    const std::int64_t height = std::min(kTile, rows - r);
    for (std::int64_t c = 0; c < cols; c += kTile) {
      const std::int64_t width = std::min(kTile, cols - c);
      T* const to = out + r * to_stride + c;
      const T* const from = in + c * from_stride + r;
      if (!stream) {
        TransposeTile(height, width, to, to_stride, from, from_stride);
        continue;
      }
      TransposeTile(height, width, buffer, kTile, from, from_stride);
      for (std::int64_t i = 0; i < height; ++i) {
        Stream(to + i * to_stride, buffer + i * kTile,
               static_cast<std::size_t>(width) * sizeof(T));
      }
    }
  }
  if (stream) hwy::FlushStream();
}

void TransposeOfSize(int element_size, std::int64_t rows, std::int64_t cols,
                     char* out, std::int64_t to_stride, const char* in,
                     std::int64_t from_stride, bool stream) {
  const auto run = [&](auto zero) {
    using T = decltype(zero);
    Transpose<T>(rows, cols, reinterpret_cast<T*>(out), to_stride,
                 reinterpret_cast<const T*>(in), from_stride, stream);
  };
  switch (element_size) {
    case 1:
      return run(std::uint8_t{});
    case 4:
      return run(std::uint32_t{});
    default:
      return run(std::uint64_t{});
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace d2l::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace d2l::kernels::cpu {

HWY_EXPORT(Stream);
HWY_EXPORT(TransposeOfSize);

namespace {

template <typename T>
void CopyElements(std::int64_t rows, std::int64_t cols, const Matrix<char>& to,
                  const Matrix<const char>& from) {
  T* const out = reinterpret_cast<T*>(to.data);
  const T* const in = reinterpret_cast<const T*>(from.data);
  const bool lines = to.col_stride == 1 && from.col_stride == 1;
  for (std::int64_t r = 0; r < rows; ++r) {
    T* const to_row = out + r * to.row_stride;
    const T* const from_row = in + r * from.row_stride;
    if (lines) {
      std::memcpy(to_row, from_row, static_cast<std::size_t>(cols) * sizeof(T));
      continue;
    }
    for (std::int64_t c = 0; c < cols; ++c) {
      to_row[c * to.col_stride] = from_row[c * from.col_stride];
    }
  }
}

}  // namespace

void CopyTile(int element_size, std::int64_t rows, std::int64_t cols,
              const Matrix<char>& to, const Matrix<const char>& from,
              bool stream) {
  // With fewer rows or columns, tiles only cost time.
  constexpr std::int64_t kLeastSide = 4;
  if (rows >= kLeastSide && cols >= kLeastSide) {
    if (to.col_stride == 1 && from.row_stride == 1 && from.col_stride > 1) {
      HWY_DYNAMIC_DISPATCH(TransposeOfSize)
      (element_size, rows, cols, to.data, to.row_stride, from.data,
       from.col_stride, stream);
      return;
    }
    if (to.row_stride == 1 && from.col_stride == 1 && to.col_stride > 1) {
      HWY_DYNAMIC_DISPATCH(TransposeOfSize)
      (element_size, cols, rows, to.data, to.col_stride, from.data,
       from.row_stride, stream);
      return;
    }
  }
  switch (element_size) {
    case 1:
      return CopyElements<std::uint8_t>(rows, cols, to, from);
    case 4:
      return CopyElements<std::uint32_t>(rows, cols, to, from);
    default:
      return CopyElements<std::uint64_t>(rows, cols, to, from);
  }
}

void StreamBytes(void* to, const void* from, std::size_t bytes) {
  HWY_DYNAMIC_DISPATCH(Stream)(to, from, bytes);
}

void FinishStream() { hwy::FlushStream(); }

}  // namespace d2l::kernels::cpu

#endif  // HWY_ONCE
