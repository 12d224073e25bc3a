#include "common/kernels/cpu/elementwise_run.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/device/cpu/parallel_for.h"
#include "common/kernels/cpu/elementwise_loops.h"
#include "common/kernels/cpu/strided_copy.h"
#include "common/kernels/layout.h"

namespace d2l::kernels::cpu {
namespace {

// The part of an operation that is worth another core, in elements.
constexpr std::int64_t kGrain = 1 << 15;

// From this size on an output is written with non-temporal stores, which do not
// read its lines before they are overwritten. Measured with (x * y) + 2 on a
// core with 2 MiB of second-level cache: no difference at 4 MiB, a fifth less
// time at 8 MiB, a quarter at 32 MiB. In place it takes a quarter more.
constexpr std::int64_t kStreamBytes = 6 << 20;
// The buffer for results before they are stored so. It is short, so that the
// processor begins with the next results while these are stored: products of 40
// MB take a sixth less time than with 4 KiB.
constexpr std::int64_t kBufferBytes = 1 << 11;
constexpr std::int64_t kLineBytes = 64;

// Computes elements [begin, end) of contiguous operands.
void ComputePart(const ContiguousLoop& loop, void* out, std::int64_t begin,
                 std::int64_t end) {
  const void* in[kMaxInputs];
  for (int k = 0; k < kMaxInputs; ++k) {
    in[k] = static_cast<const char*>(loop.in[k]) + begin * loop.in_size[k];
  }
  loop.loop(out, in[0], in[1], in[2], end - begin);
}

// Computes elements [begin, end) with non-temporal stores.
void StreamPart(const ContiguousLoop& loop, std::int64_t begin,
                std::int64_t end) {
  alignas(kLineBytes) char buffer[kBufferBytes];
  char* const out = static_cast<char*>(loop.out);
  const std::int64_t size = loop.out_size;
  const std::int64_t chunk = kBufferBytes / size;
  // The first chunk ends where a line does, and so do those after it.
  const auto address = reinterpret_cast<std::uintptr_t>(out + begin * size);
  std::int64_t n =
      chunk - static_cast<std::int64_t>(address % kLineBytes) / size;
  for (std::int64_t i = begin; i < end; i += n, n = chunk) {
    n = std::min(n, end - i);
    ComputePart(loop, buffer, i, i + n);
    StreamBytes(out + i * size, buffer, static_cast<std::size_t>(n * size));
  }
  FinishStream();
}

// A part of the last two dimensions: rows [r0, r1), columns [c0, c1).
struct Piece {
  std::int64_t r0, r1, c0, c1;
};

// An operand's last two dimensions, at some index of the others.
struct Plane {
  char* data;
  int size;
  bool is_scalar;
  std::int64_t row_stride;
  std::int64_t col_stride;

  char* At(std::int64_t r, std::int64_t c) const {
    return data + (r * row_stride + c * col_stride) * size;
  }
};

struct Planes {
  Plane out;
  Plane in[kMaxInputs];
};

void RunRows(const StridedLoop& loop, const Planes& planes,
             const Piece& piece) {
  const void* in[kMaxInputs] = {};
  for (std::int64_t r = piece.r0; r < piece.r1; ++r) {
    for (int k = 0; k < loop.inputs; ++k) {
      in[k] = planes.in[k].At(r, piece.c0);
    }
    loop.loop(planes.out.At(r, piece.c0), in[0], in[1], in[2],
              piece.c1 - piece.c0);
  }
}

constexpr std::int64_t kTileElements = 1024;

// A tile of every operand together fits the first cache: operands that are not
// contiguous are copied into buffers that stay tplanes.
void RunTiles(const StridedLoop& loop, const Planes& planes,
              const Piece& piece) {
  alignas(kLineBytes) char buffers[1 + kMaxInputs][kTileElements * 8];
  // If an operand is contiguous along the columns, an about square tile uses
  // all of each cache line.
  bool transposed = planes.out.col_stride != 1;
  for (int k = 0; k < loop.inputs; ++k) {
    transposed = transposed ||
                 (planes.in[k].row_stride == 1 && planes.in[k].col_stride != 1);
  }
  const std::int64_t all_cols = piece.c1 - piece.c0;
  const std::int64_t cols =
      std::min(all_cols, transposed ? std::int64_t{32} : kTileElements);
  const std::int64_t rows = std::min(piece.r1 - piece.r0, kTileElements / cols);
  const void* in[kMaxInputs] = {};
  for (std::int64_t r = piece.r0; r < piece.r1; r += rows) {
    const std::int64_t height = std::min(rows, piece.r1 - r);
    for (std::int64_t c = piece.c0; c < piece.c1; c += cols) {
      const std::int64_t width = std::min(cols, piece.c1 - c);
      const auto dense = [&](const Plane& plane) {
        return plane.col_stride == 1 &&
               (height == 1 || plane.row_stride == width);
      };
      for (int k = 0; k < loop.inputs; ++k) {
        const Plane& plane = planes.in[k];
        in[k] = plane.At(r, c);
        if (plane.is_scalar || dense(plane)) continue;
        in[k] = buffers[k];
        // All rows are the same: the copy for the tile above can be used again.
        if (plane.row_stride == 0 && width == all_cols && r != piece.r0) {
          continue;
        }
        CopyTile(plane.size, height, width, {buffers[k], width, 1},
                 {plane.At(r, c), plane.row_stride, plane.col_stride},
                 /*stream=*/false);
      }
      if (dense(planes.out)) {
        loop.loop(planes.out.At(r, c), in[0], in[1], in[2], height * width);
      } else {
        char* const result = buffers[kMaxInputs];
        loop.loop(result, in[0], in[1], in[2], height * width);
        CopyTile(
            planes.out.size, height, width,
            {planes.out.At(r, c), planes.out.row_stride, planes.out.col_stride},
            {result, width, 1}, /*stream=*/false);
      }
    }
  }
}

void RunPiece(const StridedLoop& loop, const Planes& planes, const Piece& piece,
              bool stream) {
  switch (loop.walk) {
    case Walk::kRows:
      return RunRows(loop, planes, piece);
    case Walk::kTiles:
      return RunTiles(loop, planes, piece);
    case Walk::kCopy:
      break;
  }
  const Plane& in = planes.in[0];
  CopyTile(in.size, piece.r1 - piece.r0, piece.c1 - piece.c0,
           {planes.out.At(piece.r0, piece.c0), planes.out.row_stride,
            planes.out.col_stride},
           {in.At(piece.r0, piece.c0), in.row_stride, in.col_stride}, stream);
}

}  // namespace

void RunContiguous(const ContiguousLoop& loop) {
  bool stream = loop.numel * loop.out_size >= kStreamBytes;
  // The output's lines are in a cache already if they have just been read.
  for (const void* in : loop.in) stream = stream && in != loop.out;
  ParallelFor(loop.numel, kGrain, [&](std::int64_t begin, std::int64_t end) {
    if (stream) {
      StreamPart(loop, begin, end);
    } else {
      ComputePart(loop, static_cast<char*>(loop.out) + begin * loop.out_size,
                  begin, end);
    }
  });
}

void CopyContiguous(void* out, const void* in, std::int64_t bytes) {
  ParallelFor(bytes, kGrain * 4, [&](std::int64_t begin, std::int64_t end) {
    char* const to = static_cast<char*>(out) + begin;
    const char* const from = static_cast<const char*>(in) + begin;
    const std::size_t size = static_cast<std::size_t>(end - begin);
    if (bytes < kStreamBytes) {
      std::memcpy(to, from, size);
    } else {
      StreamBytes(to, from, size);
      FinishStream();
    }
  });
}

void RunStrided(const StridedLoop& loop) {
  const int last = loop.rank - 1;
  const std::int64_t cols = loop.shape[last];
  const std::int64_t rows = last > 0 ? loop.shape[last - 1] : 1;
  std::int64_t planes = 1;
  for (int d = 0; d < last - 1; ++d) planes *= loop.shape[d];

  const bool stream = planes * rows * cols * loop.size[0] >= kStreamBytes;
  // Runs columns [c0, c1) of rows [r0, r1), counted over all planes.
  const auto run = [&](std::int64_t r0, std::int64_t r1, std::int64_t c0,
                       std::int64_t c1) {
    while (r0 < r1) {
      std::int64_t plane = r0 / rows;
      const std::int64_t first = r0 - plane * rows;
      const std::int64_t count = std::min(rows - first, r1 - r0);
      std::int64_t index[kMaxRank];
      for (int d = last - 2; d >= 0; --d) {
        index[d] = plane % loop.shape[d];
        plane /= loop.shape[d];
      }
      const auto at = [&](int k) {
        const std::int64_t* const strides = loop.strides[k];
        std::int64_t offset = 0;
        for (int d = 0; d < last - 1; ++d) offset += index[d] * strides[d];
        const void* const base =
            loop.is_number[k] ? loop.source[k].number : loop.source[k].data;
        return Plane{
            static_cast<char*>(const_cast<void*>(base)) + offset * loop.size[k],
            loop.size[k], loop.is_scalar[k], last > 0 ? strides[last - 1] : 0,
            strides[last]};
      };
      Planes planes;
      planes.out = at(0);
      for (int k = 0; k < loop.inputs; ++k) planes.in[k] = at(k + 1);
      RunPiece(loop, planes, {first, first + count, c0, c1}, stream);
      r0 += count;
    }
  };

  const std::int64_t all_rows = planes * rows;
  if (all_rows * cols <= kGrain) {
    run(0, all_rows, 0, cols);
    return;
  }
  // Parts are whole cache lines in both directions, if possible.
  constexpr std::int64_t kUnit = 64;
  const auto grain = [&](std::int64_t other) {
    return (kGrain / other / kUnit + 1) * kUnit;
  };
  if (all_rows >= cols) {
    ParallelFor(all_rows, grain(cols),
                [&](std::int64_t begin, std::int64_t end) {
                  run(begin, end, 0, cols);
                });
  } else {
    ParallelFor(cols, grain(all_rows),
                [&](std::int64_t begin, std::int64_t end) {
                  run(0, all_rows, begin, end);
                });
  }
}

}  // namespace d2l::kernels::cpu
