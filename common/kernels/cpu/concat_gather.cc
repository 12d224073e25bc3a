#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "common/device/cpu/cpu_stream.h"
#include "common/device/cpu/parallel_for.h"
#include "common/kernels/cpu/strided_copy.h"
#include "common/kernels/enqueue.h"
#include "common/tensor/dtype.h"

namespace d2l::kernels::cpu {
namespace {

// Throws std::out_of_range if one of index[begin, end) is not in [0, size).
void CheckIndices(const std::int64_t* index, std::int64_t size,
                  std::int64_t begin, std::int64_t end) {
  // The sign bit of the index, if that is negative, or of last - index, if the
  // index is too large. Without a comparison the compiler vectorises this for
  // every processor.
  const std::uint64_t last = static_cast<std::uint64_t>(size) - 1;
  std::uint64_t signs = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    const std::uint64_t at = static_cast<std::uint64_t>(index[i]);
    signs |= at | (last - at);
  }
  if (signs >> 63 == 0) return;
  for (std::int64_t i = begin; i < end; ++i) {
    if (index[i] >= 0 && index[i] < size) continue;
    const std::string valid =
        size == 0 ? "there is nothing to index"
                  : absl::StrFormat("valid are 0..%d", size - 1);
    throw std::out_of_range(absl::StrFormat(
        "index %d at position %d is out of range; %s", index[i], i, valid));
  }
}

// The work that is worth a thread of its own.
constexpr std::int64_t kGrainBytes = 128 << 10;
constexpr std::int64_t kGrainElements = 32 << 10;

// The number of rows in a grain.
std::int64_t GrainRows(std::int64_t row_bytes) {
  return kGrainBytes / std::max<std::int64_t>(row_bytes, 1) + 1;
}

// ---- Cat.

struct Cat {
  std::int64_t outer;
  char* out;
  std::int64_t row_bytes;  // of out
  // This many fit into a slot of the queue beside the other fields.
  absl::InlinedVector<CatPiece, 3> pieces;
};

// Copies `rows` rows of kBytes bytes, or of `bytes` if kBytes is 0.
template <std::int64_t kBytes>
void CopyRows(char* out, std::int64_t out_stride, const char* in,
              std::int64_t in_stride, std::int64_t bytes, std::int64_t rows) {
  if constexpr (kBytes != 0) bytes = in_stride = kBytes;
  for (std::int64_t i = 0; i < rows; ++i) {
    std::memcpy(out + i * out_stride, in + i * in_stride,
                static_cast<std::size_t>(bytes));
  }
}

// Copies `rows` rows of pieces of one element, from the first piece on, as many
// as are alike and end before `last`. Returns how many that were: none if the
// elements do not lie at multiples of their size.
std::int64_t CopyElements(char* out, std::int64_t out_stride,
                          absl::Span<const CatPiece> pieces, std::int64_t last,
                          std::int64_t row, std::int64_t rows) {
  constexpr std::int64_t kMostPieces = 32;
  constexpr std::int64_t kMostRows = 64;
  const std::int64_t size = pieces[0].bytes;
  if (rows > kMostRows || (size != 1 && size != 4 && size != 8)) return 0;
  const auto place = reinterpret_cast<std::uintptr_t>(out);
  if ((place | static_cast<std::uintptr_t>(out_stride)) % size != 0) return 0;
  // Brought side by side, and then transposed.
  alignas(64) char columns[kMostPieces * kMostRows * 8];
  std::int64_t count = 0;
  for (const CatPiece& piece : pieces) {
    if (count == kMostPieces || piece.bytes != size || last < size) break;
    std::memcpy(columns + count * rows * size,
                static_cast<const char*>(piece.data) + row * size,
                static_cast<std::size_t>(rows * size));
    last -= size;
    ++count;
  }
  CopyTile(static_cast<int>(size), rows, count, {out, out_stride / size, 1},
           {columns, 1, rows}, /*stream=*/false);
  return count;
}

// Writes bytes [first, last) of each of the output rows [begin, end). From each
// piece it copies as many rows at once as keep that part of out in the cache.
// With pieces of one element this is a transposition in tiles.
void CatBlock(const Cat& cat, std::int64_t begin, std::int64_t end,
              std::int64_t first, std::int64_t last) {
  constexpr std::int64_t kTileBytes = 16 << 10;
  // A cache line of a piece of floats.
  constexpr std::int64_t kLeastRows = 16;
  const std::int64_t stride = cat.row_bytes;
  const std::int64_t tile = std::max(
      kTileBytes / std::max<std::int64_t>(last - first, 1), kLeastRows);
  for (std::int64_t row = begin; row < end; row += tile) {
    const std::int64_t rows = std::min(tile, end - row);
    char* const out = cat.out + row * stride;
    std::int64_t at = 0;  // where the piece goes
    for (std::size_t k = 0; k < cat.pieces.size(); ++k) {
      const CatPiece& piece = cat.pieces[k];
      if (at >= first && piece.bytes > 0) {
        const std::int64_t count = CopyElements(
            out + at, stride, absl::MakeConstSpan(cat.pieces).subspan(k),
            last - at, row, rows);
        at += count * piece.bytes;
        if (count > 0) {
          k += static_cast<std::size_t>(count) - 1;
          continue;
        }
      }
      const std::int64_t from = std::max(first, at);
      const std::int64_t bytes = std::min(last, at + piece.bytes) - from;
      const char* const in = static_cast<const char*>(piece.data) +
                             row * piece.bytes + (from - at);
      at += piece.bytes;
      if (bytes <= 0) continue;
      // A constant size makes it two instructions instead of a call.
      const auto copy = bytes != piece.bytes ? CopyRows<0>
                        : bytes == 1         ? CopyRows<1>
                        : bytes == 4         ? CopyRows<4>
                        : bytes == 8         ? CopyRows<8>
                        : bytes == 16        ? CopyRows<16>
                                             : CopyRows<0>;
      copy(out + from, stride, in, piece.bytes, bytes, rows);
    }
  }
}

// Threads share the rows or, if there are few, the bytes of each row.
void RunCat(const Cat& cat) {
  constexpr std::int64_t kFewRows = 16;
  if (cat.outer < kFewRows) {
    ParallelFor(cat.row_bytes, GrainRows(cat.outer),
                [&](std::int64_t begin, std::int64_t end) {
                  CatBlock(cat, 0, cat.outer, begin, end);
                });
  } else {
    ParallelFor(cat.outer, GrainRows(cat.row_bytes),
                [&](std::int64_t begin, std::int64_t end) {
                  CatBlock(cat, begin, end, 0, cat.row_bytes);
                });
  }
}

// ---- Index.

// The loops below keep all they need in local variables: for all the compiler
// knows, the memory that they write could be that of an IndexArgs.

// Row r = o * count + i of out is row index[i] of in's block o. kBytes is the
// size of a row, or 0 for any size.
template <std::int64_t kBytes>
void SelectRows(const IndexArgs& args, std::int64_t begin, std::int64_t end) {
  const std::int64_t bytes =
      kBytes != 0 ? kBytes : args.inner * args.element_size;
  const std::int64_t* const index = args.index;
  const std::int64_t count = args.count;
  const std::int64_t block = args.size * bytes;
  const char* in = static_cast<const char*>(args.in) + begin / count * block;
  char* out = static_cast<char*>(args.out) + begin * bytes;
  std::int64_t i = begin % count;
  for (std::int64_t left = end - begin; left > 0;) {
    const std::int64_t stop = std::min(count, i + left);
    left -= stop - i;
    for (; i < stop; ++i, out += bytes) {
      std::memcpy(out, in + index[i] * bytes, static_cast<std::size_t>(bytes));
    }
    i = 0;
    in += block;
  }
}

template <std::int64_t kBytes>
void Select(const IndexArgs& args) {
  // The check comes before any copy: an index is used `outer` times.
  ParallelFor(args.count, kGrainElements,
              [&](std::int64_t begin, std::int64_t end) {
                CheckIndices(args.index, args.size, begin, end);
              });
  const std::int64_t bytes = args.inner * args.element_size;
  if (bytes == 0) return;
  ParallelFor(args.outer * args.count, GrainRows(bytes),
              [&](std::int64_t begin, std::int64_t end) {
                SelectRows<kBytes>(args, begin, end);
              });
}

// Writes elements [begin, end) of out; their indices have been checked.
template <std::int64_t kBytes>
void GatherElements(const IndexArgs& args, std::int64_t begin,
                    std::int64_t end) {
  // The elements of one run come from neighbouring columns, or all from the
  // only column.
  const bool one_column = args.inner == 1;
  const std::int64_t run = one_column ? args.count : args.inner;
  const std::int64_t runs = one_column ? 1 : args.count;  // of a block
  const std::int64_t step = one_column ? 0 : kBytes;
  const std::int64_t row = args.inner * kBytes;
  const std::int64_t block = args.size * row;
  const std::int64_t* const index = args.index;
  char* const out = static_cast<char*>(args.out);

  std::int64_t number = begin / run;  // of the run in its block
  const char* blocks =
      static_cast<const char*>(args.in) + number / runs * block;
  number %= runs;
  std::int64_t column = begin % run;
  for (std::int64_t i = begin; i < end;) {
    const char* in = blocks + column * step;
    const std::int64_t stop = std::min(end, i + run - column);
    for (; i < stop; ++i, in += step) {
      std::memcpy(out + i * kBytes, in + index[i] * row, kBytes);
    }
    column = 0;
    if (++number == runs) {
      number = 0;
      blocks += block;
    }
  }
}

template <std::int64_t kBytes>
void Gather(const IndexArgs& args) {
  // So few that they are still in the cache after the check.
  constexpr std::int64_t kBatch = 1 << 10;
  ParallelFor(args.outer * args.count * args.inner, kGrainElements,
              [&](std::int64_t begin, std::int64_t end) {
                for (std::int64_t i = begin; i < end; i += kBatch) {
                  const std::int64_t stop = std::min(end, i + kBatch);
                  CheckIndices(args.index, args.size, i, stop);
                  GatherElements<kBytes>(args, i, stop);
                }
              });
}

// ---- IndexAdd.

// Adds to columns [begin, end) of blocks [o_begin, o_end). Threads never share
// an element of out, so the order of the additions is that of the indices.
template <typename T>
void Add(const IndexAddArgs& args, std::int64_t o_begin, std::int64_t o_end,
         std::int64_t begin, std::int64_t end) {
  const std::int64_t inner = args.inner;
  for (std::int64_t o = o_begin; o < o_end; ++o) {
    T* const out = static_cast<T*>(args.out) + o * args.size * inner;
    for (std::int64_t i = 0; i < args.count; ++i) {
      const std::int64_t row = (o * args.count + i) * inner;
      const T* const source = static_cast<const T*>(args.source) + row;
      if (args.op == IndexOp::kGather) {
        for (std::int64_t j = begin; j < end; ++j) {
          out[args.index[row + j] * inner + j] += source[j];
        }
      } else {
        T* const to = out + args.index[i] * inner;
        for (std::int64_t j = begin; j < end; ++j) to[j] += source[j];
      }
    }
  }
}

template <typename T>
void RunIndexAdd(const IndexAddArgs& args) {
  constexpr std::int64_t kGrain = 16384;
  const std::int64_t work = args.outer * args.count * args.inner;
  const std::int64_t indices = args.op == IndexOp::kGather ? work : args.count;
  ParallelFor(indices, kGrain, [&](std::int64_t begin, std::int64_t end) {
    CheckIndices(args.index, args.size, begin, end);
  });
  if (work == 0) return;
  if (args.outer > 1) {
    ParallelFor(args.outer, kGrain / (args.count * args.inner) + 1,
                [&](std::int64_t begin, std::int64_t end) {
                  Add<T>(args, begin, end, 0, args.inner);
                });
  } else {
    ParallelFor(args.inner, kGrain / args.count + 16,
                [&](std::int64_t begin, std::int64_t end) {
                  Add<T>(args, 0, 1, begin, end);
                });
  }
}

}  // namespace

std::uint64_t Enqueue(CpuStream& stream, const OpLabel& label,
                      const CatArgs& args) {
  Cat cat = {args.outer,
             static_cast<char*>(args.out),
             0,
             {args.pieces.begin(), args.pieces.end()}};
  for (const CatPiece& piece : args.pieces) cat.row_bytes += piece.bytes;
  return stream.Enqueue(label, [cat = std::move(cat)] { RunCat(cat); });
}

std::uint64_t Enqueue(CpuStream& stream, const OpLabel& label,
                      const IndexArgs& args) {
  // For a vector, selecting is the same as gathering.
  if (args.op == IndexOp::kGather || (args.outer == 1 && args.inner == 1)) {
    switch (args.element_size) {
      case 1:
        return stream.Enqueue(label, [args] { Gather<1>(args); });
      case 4:
        return stream.Enqueue(label, [args] { Gather<4>(args); });
      default:
        return stream.Enqueue(label, [args] { Gather<8>(args); });
    }
  }
  switch (args.inner * args.element_size) {
    case 1:
      return stream.Enqueue(label, [args] { Select<1>(args); });
    case 4:
      return stream.Enqueue(label, [args] { Select<4>(args); });
    case 8:
      return stream.Enqueue(label, [args] { Select<8>(args); });
    default:
      return stream.Enqueue(label, [args] { Select<0>(args); });
  }
}

std::uint64_t Enqueue(CpuStream& stream, const OpLabel& label,
                      const IndexAddArgs& args) {
  return stream.Enqueue(label, [args] {
    args.dtype == DType::kFloat64 ? RunIndexAdd<double>(args)
                                  : RunIndexAdd<float>(args);
  });
}

}  // namespace d2l::kernels::cpu
