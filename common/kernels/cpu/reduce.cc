#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "common/device/cpu/cpu_stream.h"
#include "common/device/cpu/parallel_for.h"
#include "common/kernels/cpu/vector_targets.h"
#include "common/kernels/enqueue.h"
#include "common/kernels/functors.h"
#include "common/kernels/layout.h"
#include "common/kernels/op_tables.h"
#include "common/kernels/reductions.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"

// Compiles what follows once for each kind of vector.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/kernels/cpu/reduce.cc"
#include "hwy/foreach_target.h"
//
#include "common/kernels/cpu/reduce-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace d2l::kernels::cpu {
namespace HWY_NAMESPACE {

// With is_mean, the sum is divided by the number of elements.
using ReduceFunction = void (*)(void* out, const void* in,
                                const ReduceLayout& layout, bool is_mean);

// ---- The operations of reductions.h, and their loops:
//   AddBlock  adds a block of a row, whose first element has this index;
//   AddStrip  adds a strip, which has a State for each column.

template <typename Element>
struct SumLoops : Sum<Element> {
  using T = Element;
  using State = typename Sum<T>::State;

  static HWY_NOINLINE void AddBlock(State& state, const T* x, std::int64_t n,
                                    std::int64_t) {
    state += BlockSum(x, n);
  }
  static HWY_NOINLINE void AddStrip(State* states, const T* x,
                                    const std::int64_t* offsets, int rows,
                                    std::int64_t width, std::int64_t) {
    StripSum(x, offsets, rows, width, states);
  }
};

template <typename T, class Order>
struct ExtremeLoops : Extreme<T, Order> {
  static HWY_NOINLINE void AddBlock(T& state, const T* x, std::int64_t n,
                                    std::int64_t) {
    state = First<Order>(state, BlockFirst<Order>(x, n));
  }
  static HWY_NOINLINE void AddStrip(T* states, const T* x,
                                    const std::int64_t* offsets, int rows,
                                    std::int64_t width, std::int64_t) {
    StripFirst<Order>(x, offsets, rows, width, states);
  }
};

template <typename Element>
struct ArgMaxLoops : ArgMax<Element> {
  using T = Element;
  using State = typename ArgMax<T>::State;

  static HWY_NOINLINE void AddBlock(State& state, const T* x, std::int64_t n,
                                    std::int64_t begin) {
    const T max = BlockFirst<Larger>(x, n);
    if (state.index < 0 || ArgMax<T>::Beats(max, state.value)) {
      state = {max, begin + Find(x, n, max)};
    }
  }

  static HWY_NOINLINE void AddStrip(State* states, const T* x,
                                    const std::int64_t* offsets, int rows,
                                    std::int64_t width, std::int64_t begin) {
    // The index is as wide as the elements, so that both fit the same vectors.
    using Index = BitsOf<T>;
    T value[kTile];
    Index index[kTile];
    const T* const top = x + offsets[0];
    for (std::int64_t j = 0; j < width; ++j) {
      value[j] = top[j];
      index[j] = 0;
    }
    for (int r = 1; r < rows; ++r) {
      const T* const row = x + offsets[r];
      for (std::int64_t j = 0; j < width; ++j) {
        // Beats, written in a form that the compiler vectorises.
        const bool beats = !(row[j] <= value[j]) & !IsNan(value[j]);
        value[j] = beats ? row[j] : value[j];
        index[j] = beats ? static_cast<Index>(r) : index[j];
      }
    }
    for (std::int64_t j = 0; j < width; ++j) {
      ArgMax<T>::Merge(states[j],
                       {value[j], begin + static_cast<std::int64_t>(index[j])});
    }
  }

 private:
  // The index of the first element that is `value`, or, if that is NaN, NaN.
  static std::int64_t Find(const T* x, std::int64_t n, T value) {
    std::int64_t i = 0;
    constexpr int kWide = kLanes<T>;
    for (; i + kWide <= n; i += kWide) {
      BitsOf<T> found = 0;
      for (int j = 0; j < kWide; ++j) found |= Is(x[i + j], value) ? 1 : 0;
      if (found != 0) break;
    }
    while (i < n - 1 && !Is(x[i], value)) ++i;
    return i;
  }
  static HWY_INLINE bool Is(T x, T value) {
    return (x == value) | (IsNan(x) & IsNan(value));
  }
};

// ---- Walking through the elements.

// The offsets of elements `index`, `index` + 1, … of a strided shape.
class Walk {
 public:
  HWY_NOINLINE Walk(const Shape& sizes, const Shape& strides,
                    std::int64_t index)
      : sizes_(sizes), strides_(strides) {
    for (int d = sizes.rank() - 1; d >= 0; --d) {
      index_[d] = index % sizes[d];
      offset_ += index_[d] * strides[d];
      index /= sizes[d];
    }
  }

  std::int64_t offset() const { return offset_; }

  // `count` is at most the rest of the last dimension.
  HWY_INLINE void Advance(std::int64_t count) {
    const int last = sizes_.rank() - 1;
    if (last < 0) return;
    index_[last] += count;
    offset_ += count * strides_[last];
    if (index_[last] == sizes_[last]) Carry(last);
  }

  // Copies n elements.
  template <typename T>
  HWY_NOINLINE void Gather(const T* in, std::int64_t n, T* HWY_RESTRICT out) {
    const int last = sizes_.rank() - 1;
    const std::int64_t stride = strides_[last];
    while (n > 0) {
      const std::int64_t count = std::min(n, sizes_[last] - index_[last]);
      const T* const from = in + offset_;
      if (stride == 1) {
        std::memcpy(out, from, static_cast<std::size_t>(count) * sizeof(T));
      } else {
        for (std::int64_t i = 0; i < count; ++i) out[i] = from[i * stride];
      }
      Advance(count);
      out += count;
      n -= count;
    }
  }

 private:
  // Steps from the end of dimension d to the outer dimensions' next index.
  HWY_NOINLINE void Carry(int d) {
    for (; index_[d] == sizes_[d]; --d) {
      offset_ -= index_[d] * strides_[d];
      index_[d] = 0;
      if (d == 0) return;
      ++index_[d - 1];
      offset_ += strides_[d - 1];
    }
  }

  const Shape& sizes_;
  const Shape& strides_;
  std::int64_t index_[kMaxRank];
  std::int64_t offset_ = 0;
};

// The work that is worth a thread, in elements.
constexpr std::int64_t kGrain = 32768;

std::int64_t CeilDiv(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Merges the `parts` states states[i], states[i + count], … into states[i], for
// each i < count, neighbours first.
template <class Op>
void MergeParts(typename Op::State* states, std::int64_t count,
                std::int64_t parts) {
  for (std::int64_t step = 1; step < parts; step *= 2) {
    for (std::int64_t part = 0; part + step < parts; part += 2 * step) {
      typename Op::State* const to = states + part * count;
      const typename Op::State* const from = to + step * count;
      for (std::int64_t i = 0; i < count; ++i) Op::Merge(to[i], from[i]);
    }
  }
}

// ---- One row after the other for each output.

// A longer row is cut into parts of this many elements, which threads share;
// the cuts are the same whether threads share the row or not.
constexpr std::int64_t kRowPart = 65536;

// Elements [begin, end) of the row at `in`.
template <class Op>
HWY_NOINLINE typename Op::State ReduceRow(const typename Op::T* in,
                                          const ReduceLayout& layout,
                                          std::int64_t begin,
                                          std::int64_t end) {
  using T = typename Op::T;
  typename Op::State state = Op::Nothing();
  const int rank = layout.reduced.rank();
  if (rank == 0 || (rank == 1 && layout.reduced_strides[0] == 1)) {
    for (std::int64_t i = begin; i < end; i += kBlock<T>) {
      Op::AddBlock(state, in + i, std::min(kBlock<T>, end - i), i);
    }
    return state;
  }
  if (begin == end) return state;
  T buffer[kBlock<T>];
  Walk walk(layout.reduced, layout.reduced_strides, begin);
  for (std::int64_t i = begin; i < end; i += kBlock<T>) {
    const std::int64_t n = std::min(kBlock<T>, end - i);
    walk.Gather(in, n, buffer);
    Op::AddBlock(state, buffer, n, i);
  }
  return state;
}

// Reduces to `outputs` outputs with a body (Rows, Columns), which adds up
// `pieces` pieces of each of `parts` parts. One part writes to out; several
// write to states, all outputs for each part. `work` counts a piece's elements.
template <class Op, class Body>
void RunParts(Body body, void* out_memory, std::int64_t outputs,
              std::int64_t pieces, std::int64_t parts, std::int64_t work) {
  using State = typename Op::State;
  auto* const out = static_cast<typename Op::Out*>(out_memory);
  if (parts == 1) {
    body.out = out;
    ParallelFor(pieces, std::max<std::int64_t>(kGrain / work, 1), body);
    return;
  }
  std::vector<State> states(static_cast<std::size_t>(outputs * parts));
  body.states = states.data();
  ParallelFor(pieces * parts, 1, body);
  MergeParts<Op>(states.data(), outputs, parts);
  for (std::int64_t k = 0; k < outputs; ++k) {
    out[k] = Op::Finish(states[k], body.divisor);
  }
}

template <class Op>
struct Rows {
  const ReduceLayout& layout;
  const typename Op::T* in;
  std::int64_t outputs;
  std::int64_t n;
  std::int64_t divisor;
  typename Op::Out* out = nullptr;
  typename Op::State* states = nullptr;

  void operator()(std::int64_t begin, std::int64_t end) const {
    // The index returns to the first output after the last.
    Walk walk(layout.kept, layout.kept_strides, begin % outputs);
    for (std::int64_t i = begin; i < end; ++i) {
      const typename Op::T* const row = in + walk.offset();
      if (out != nullptr) {
        out[i] = Op::Finish(ReduceRow<Op>(row, layout, 0, n), divisor);
      } else {
        const std::int64_t from = i / outputs * kRowPart;
        states[i] =
            ReduceRow<Op>(row, layout, from, std::min(from + kRowPart, n));
      }
      walk.Advance(1);
    }
  }
};

template <class Op>
void ReduceRows(void* out, const void* in, const ReduceLayout& layout,
                bool is_mean) {
  const std::int64_t outputs = layout.kept.numel();
  const std::int64_t n = layout.reduced.numel();
  if (outputs == 0) return;
  const Rows<Op> rows = {layout, static_cast<const typename Op::T*>(in),
                         outputs, n, is_mean ? n : 1};
  RunParts<Op>(rows, out, outputs, outputs,
               std::max<std::int64_t>(CeilDiv(n, kRowPart), 1),
               std::max<std::int64_t>(n, 1));
}

// ---- Neighbouring outputs side by side: the last kept dimension has stride 1.

// A tile with all its rows is cut into parts of so many elements, as a row is
// by kRowPart, unless there are many tiles.
constexpr std::int64_t kTilePart = 262144;
constexpr std::int64_t kManyTiles = 16;

template <class Op>
struct Columns {
  const ReduceLayout& layout;
  const typename Op::T* in = nullptr;
  typename Op::Out* out = nullptr;
  typename Op::State* states = nullptr;
  std::int64_t n = 0;  // rows
  std::int64_t divisor = 1;
  std::int64_t part_rows = 0;
  std::int64_t outer = 0;  // the product of the other kept dimensions
  std::int64_t inner = 0;  // the last
  std::int64_t tiles = 0;  // of each

  void operator()(std::int64_t begin, std::int64_t end) const {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t tile = i % tiles;
      const std::int64_t part = i / tiles / outer;
      const std::int64_t output = i / tiles % outer * inner + tile * kTile;
      const std::int64_t width = std::min(kTile, inner - tile * kTile);
      typename Op::State totals[kTile];
      std::fill_n(totals, width, Op::Nothing());
      Reduce(in + Walk(layout.kept, layout.kept_strides, output).offset(),
             width, part * part_rows, std::min(n, (part + 1) * part_rows),
             totals);
      if (out != nullptr) {
        for (std::int64_t j = 0; j < width; ++j) {
          out[output + j] = Op::Finish(totals[j], divisor);
        }
      } else {
        std::copy_n(totals, width, states + part * outer * inner + output);
      }
    }
  }

  // Rows [begin, end) of the tile at x.
  void Reduce(const typename Op::T* x, std::int64_t width, std::int64_t begin,
              std::int64_t end, typename Op::State* totals) const {
    if (begin == end) return;
    Walk walk(layout.reduced, layout.reduced_strides, begin);
    std::int64_t offsets[kStrip];
    for (std::int64_t row = begin; row < end; row += kStrip) {
      const int rows =
          static_cast<int>(std::min<std::int64_t>(kStrip, end - row));
      for (int r = 0; r < rows; ++r) {
        offsets[r] = walk.offset();
        walk.Advance(1);
      }
      Op::AddStrip(totals, x, offsets, rows, width, row);
    }
  }
};

template <class Op>
void ReduceColumns(void* out, const void* in, const ReduceLayout& layout,
                   bool is_mean) {
  const std::int64_t outputs = layout.kept.numel();
  if (outputs == 0) return;
  Columns<Op> columns{layout};
  columns.in = static_cast<const typename Op::T*>(in);
  columns.n = layout.reduced.numel();
  columns.divisor = is_mean ? columns.n : 1;
  columns.inner = layout.kept[layout.kept.rank() - 1];
  columns.outer = outputs / columns.inner;
  columns.tiles = CeilDiv(columns.inner, kTile);
  const std::int64_t width = std::min(columns.inner, kTile);
  const std::int64_t tiles = columns.outer * columns.tiles;
  const std::int64_t rows = std::max<std::int64_t>(columns.n, 1);
  columns.part_rows =
      tiles < kManyTiles ? CeilDiv(kTilePart / width, kStrip) * kStrip : rows;
  RunParts<Op>(columns, out, outputs, tiles, CeilDiv(rows, columns.part_rows),
               width * rows);
}

// ---- The choice.

template <class Op>
ReduceFunction FunctionFor(bool columns) {
  return columns ? ReduceColumns<Op> : ReduceRows<Op>;
}

ReduceFunction ChooseFunction(ReduceOp op, DType dtype, bool columns) {
  return VisitDType(dtype, [op, columns](auto zero) -> ReduceFunction {
    using T = decltype(zero);
    switch (op) {
      case ReduceOp::kSum:
      case ReduceOp::kMean:
        return FunctionFor<SumLoops<T>>(columns);
      case ReduceOp::kMax:
        return FunctionFor<ExtremeLoops<T, Larger>>(columns);
      case ReduceOp::kMin:
        return FunctionFor<ExtremeLoops<T, Smaller>>(columns);
      case ReduceOp::kArgMax:
        break;
    }
    return FunctionFor<ArgMaxLoops<T>>(columns);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace d2l::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace d2l::kernels::cpu {
namespace {

HWY_EXPORT(ChooseFunction);

// Whether the layout is a contiguous matrix: of rows, if not `columns`.
bool IsMatrix(const ReduceLayout& layout, bool columns) {
  if (layout.kept.rank() > 1 || layout.reduced.rank() != 1) return false;
  const std::int64_t stride = layout.reduced_strides[0];
  if (columns) return stride == layout.kept[0];
  return stride == 1 &&
         (layout.kept.empty() || layout.kept_strides[0] == layout.reduced[0]);
}

}  // namespace

std::uint64_t Enqueue(CpuStream& stream, const OpLabel& label,
                      const ReduceArgs& args) {
  ReduceLayout sorted;
  const ReduceLayout* layout = args.layout;
  if (layout->reduced.rank() > 1 && args.op != ReduceOp::kArgMax) {
    sorted = *layout;
    SortReduced(sorted);
    layout = &sorted;
  }
  if (!OpTakes(args.op, args.dtype)) ThrowNoLoop(OpName(args.op), args.dtype);
  const bool columns = HasColumns(*layout);
  const auto function =
      HWY_DYNAMIC_DISPATCH(ChooseFunction)(args.op, args.dtype, columns);
  const bool is_mean = args.op == ReduceOp::kMean;
  void* const out = args.out;
  const void* const in = args.in;
  if (IsMatrix(*layout, columns)) {
    // The most common case fits the slot's first line.
    const std::int64_t kept = layout->kept.numel();
    const std::int64_t reduced = layout->reduced[0];
    return stream.Enqueue(label, [=] {
      function(out, in,
               columns ? ReduceLayout{{kept}, {1}, {reduced}, {kept}}
                       : ReduceLayout{{kept}, {reduced}, {reduced}, {1}},
               is_mean);
    });
  }
  auto copy = std::make_shared<ReduceLayout>(*layout);
  return stream.Enqueue(label, [=, copy = std::move(copy)] {
    function(out, in, *copy, is_mean);
  });
}

}  // namespace d2l::kernels::cpu

#endif  // HWY_ONCE
