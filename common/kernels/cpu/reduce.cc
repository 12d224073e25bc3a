#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "common/device/cpu/cpu_stream.h"
#include "common/device/cpu/parallel_for.h"
#include "common/kernels/cpu/vector_targets.h"
#include "common/kernels/enqueue.h"
#include "common/kernels/layout.h"
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

using ReduceFunction = void (*)(void* out, const void* in,
                                const ReduceLayout& layout);

// ---- The operations. A State is what is known of an output so far:
//   AddBlock  takes in a block of a row, whose first element has this index;
//   AddStrip  takes in a strip, which has a State for each column;
//   Merge     takes in a State of elements that come later.

template <typename Element>
struct Sum {
  using T = Element;
  using State = SumTotal<T>;
  using Out = std::conditional_t<std::is_integral_v<T>, std::int64_t, T>;

  static State Init() { return 0; }
  static HWY_NOINLINE void AddBlock(State& state, const T* x, std::int64_t n,
                                    std::int64_t) {
    state += BlockSum(x, n);
  }
  static HWY_NOINLINE void AddStrip(State* states, const T* x,
                                    const std::int64_t* offsets, int rows,
                                    std::int64_t width, std::int64_t) {
    StripSum(x, offsets, rows, width, states);
  }
  static HWY_INLINE void Merge(State& state, const State& later) {
    state += later;
  }
  static HWY_INLINE Out Finish(const State& state, std::int64_t) {
    return static_cast<Out>(state);
  }
};

template <typename T>
struct Mean : Sum<T> {
  static HWY_INLINE T Finish(double state, std::int64_t n) {
    return static_cast<T>(state / static_cast<double>(n));
  }
};

template <typename Element, class Order>
struct Extreme {
  using T = Element;
  using State = T;
  using Out = T;

  static State Init() { return Order::template Last<T>(); }
  static HWY_NOINLINE void AddBlock(State& state, const T* x, std::int64_t n,
                                    std::int64_t) {
    state = First<Order>(state, BlockFirst<Order>(x, n));
  }
  static HWY_NOINLINE void AddStrip(State* states, const T* x,
                                    const std::int64_t* offsets, int rows,
                                    std::int64_t width, std::int64_t) {
    StripFirst<Order>(x, offsets, rows, width, states);
  }
  static HWY_INLINE void Merge(State& state, const State& later) {
    state = First<Order>(state, later);
  }
  static HWY_INLINE Out Finish(const State& state, std::int64_t) {
    return state;
  }
};

template <typename T>
using Max = Extreme<T, Greater>;
template <typename T>
using Min = Extreme<T, Smaller>;

template <typename Element>
struct ArgMax {
  using T = Element;
  struct State {
    T value;
    std::int64_t index;  // -1: no element yet
  };
  using Out = std::int64_t;

  static State Init() { return {T{}, -1}; }

  // Whether a later y takes x's place.
  static HWY_INLINE bool Beats(T y, T x) {
    return y > x || (IsNan(y) && !IsNan(x));
  }

  static HWY_NOINLINE void AddBlock(State& state, const T* x, std::int64_t n,
                                    std::int64_t begin) {
    const T max = BlockFirst<Greater>(x, n);
    if (state.index < 0 || Beats(max, state.value)) {
      state = {max, begin + Find(x, n, max)};
    }
  }

  static HWY_NOINLINE void AddStrip(State* states, const T* x,
                                    const std::int64_t* offsets, int rows,
                                    std::int64_t width, std::int64_t begin) {
    // As wide as the elements, so that both fit the same vectors.
    using Index = IndexOf<T>;
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
        // Beats, in the form that becomes vectors.
        const bool beats = !(row[j] <= value[j]) & !IsNan(value[j]);
        value[j] = beats ? row[j] : value[j];
        index[j] = beats ? static_cast<Index>(r) : index[j];
      }
    }
    for (std::int64_t j = 0; j < width; ++j) {
      Merge(states[j], {value[j], begin + static_cast<std::int64_t>(index[j])});
    }
  }

  static HWY_INLINE void Merge(State& state, const State& later) {
    if (state.index < 0 || Beats(later.value, state.value)) state = later;
  }
  static HWY_INLINE Out Finish(const State& state, std::int64_t) {
    return state.index;
  }

 private:
  // The index of the first element that is `value`, or, if that is NaN, NaN.
  static std::int64_t Find(const T* x, std::int64_t n, T value) {
    std::int64_t i = 0;
    constexpr int kWide = kLanes<T>;
    for (; i + kWide <= n; i += kWide) {
      IndexOf<T> found = 0;
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

  // By at most what is left of the last dimension.
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
  // From the end of dimension d to the next of those before it.
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

// How much work, in elements, is worth a thread.
constexpr std::int64_t kGrain = 32768;

std::int64_t CeilDiv(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Merges states[i], states[i + count], …, `parts` of them, into states[i], for
// each i < count: neighbours first.
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

// ---- Each output from one row after the other.

// A row longer than this is cut into parts of so many elements, for threads to
// share; the cuts are where they are whether threads share it or not.
constexpr std::int64_t kRowPart = 65536;

// Elements [begin, end) of the row at `in`.
template <class Op>
HWY_NOINLINE typename Op::State ReduceRow(const typename Op::T* in,
                                          const ReduceLayout& layout,
                                          std::int64_t begin,
                                          std::int64_t end) {
  using T = typename Op::T;
  typename Op::State state = Op::Init();
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

template <class Op>
struct ShortRows {
  typename Op::Out* out;
  const typename Op::T* in;
  const ReduceLayout& layout;
  std::int64_t n;

  void operator()(std::int64_t begin, std::int64_t end) const {
    Walk walk(layout.kept, layout.kept_strides, begin);
    for (std::int64_t k = begin; k < end; ++k) {
      out[k] = Op::Finish(ReduceRow<Op>(in + walk.offset(), layout, 0, n), n);
      walk.Advance(1);
    }
  }
};

// States of parts, part by part and for each part of all outputs.
template <class Op>
struct LongRows {
  typename Op::State* states;
  const typename Op::T* in;
  const ReduceLayout& layout;
  std::int64_t outputs;
  std::int64_t n;

  void operator()(std::int64_t begin, std::int64_t end) const {
    for (std::int64_t i = begin; i < end; ++i) {
      const Walk walk(layout.kept, layout.kept_strides, i % outputs);
      const std::int64_t from = i / outputs * kRowPart;
      states[i] = ReduceRow<Op>(in + walk.offset(), layout, from,
                                std::min(from + kRowPart, n));
    }
  }
};

template <class Op>
void ReduceRows(void* out_memory, const void* in_memory,
                const ReduceLayout& layout) {
  auto* const out = static_cast<typename Op::Out*>(out_memory);
  const auto* const in = static_cast<const typename Op::T*>(in_memory);
  const std::int64_t outputs = layout.kept.numel();
  const std::int64_t n = layout.reduced.numel();
  if (n <= kRowPart) {
    const std::int64_t grain = kGrain / std::max<std::int64_t>(n, 1);
    ParallelFor(outputs, std::max<std::int64_t>(grain, 1),
                ShortRows<Op>{out, in, layout, n});
    return;
  }
  const std::int64_t parts = CeilDiv(n, kRowPart);
  std::vector<typename Op::State> states(
      static_cast<std::size_t>(outputs * parts));
  ParallelFor(outputs * parts, 1,
              LongRows<Op>{states.data(), in, layout, outputs, n});
  MergeParts<Op>(states.data(), outputs, parts);
  for (std::int64_t k = 0; k < outputs; ++k) out[k] = Op::Finish(states[k], n);
}

// ---- Neighbouring outputs side by side: the last kept dimension has stride 1.

// As kRowPart, for a tile and all its rows; where there are many tiles, they
// are not cut.
constexpr std::int64_t kTilePart = 262144;
constexpr std::int64_t kManyTiles = 16;

template <class Op>
struct Columns {
  const ReduceLayout& layout;
  const typename Op::T* in = nullptr;
  typename Op::Out* out = nullptr;       // if there is one part
  typename Op::State* states = nullptr;  // else: of all outputs, for each part
  std::int64_t n = 0;                    // rows
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
      std::fill_n(totals, width, Op::Init());
      Reduce(in + Walk(layout.kept, layout.kept_strides, output).offset(),
             width, part * part_rows, std::min(n, (part + 1) * part_rows),
             totals);
      if (out != nullptr) {
        for (std::int64_t j = 0; j < width; ++j) {
          out[output + j] = Op::Finish(totals[j], n);
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
void ReduceColumns(void* out_memory, const void* in_memory,
                   const ReduceLayout& layout) {
  const std::int64_t outputs = layout.kept.numel();
  if (outputs == 0) return;
  auto* const out = static_cast<typename Op::Out*>(out_memory);
  Columns<Op> columns{layout};
  columns.in = static_cast<const typename Op::T*>(in_memory);
  columns.n = layout.reduced.numel();
  columns.inner = layout.kept[layout.kept.rank() - 1];
  columns.outer = outputs / columns.inner;
  columns.tiles = CeilDiv(columns.inner, kTile);
  const std::int64_t width = std::min(columns.inner, kTile);
  const std::int64_t tiles = columns.outer * columns.tiles;
  columns.part_rows = std::max<std::int64_t>(columns.n, 1);
  if (tiles < kManyTiles) {
    columns.part_rows = CeilDiv(kTilePart / width, kStrip) * kStrip;
  }
  const std::int64_t parts =
      std::max<std::int64_t>(CeilDiv(columns.n, columns.part_rows), 1);
  if (parts == 1) {
    const std::int64_t grain =
        kGrain / (width * std::max<std::int64_t>(columns.n, 1));
    columns.out = out;
    ParallelFor(tiles, std::max<std::int64_t>(grain, 1), columns);
    return;
  }
  std::vector<typename Op::State> states(
      static_cast<std::size_t>(outputs * parts));
  columns.states = states.data();
  ParallelFor(tiles * parts, 1, columns);
  MergeParts<Op>(states.data(), outputs, parts);
  for (std::int64_t k = 0; k < outputs; ++k) {
    out[k] = Op::Finish(states[k], columns.n);
  }
}

// ---- The choice.

template <class Op>
ReduceFunction FunctionFor(bool columns) {
  return columns ? ReduceColumns<Op> : ReduceRows<Op>;
}

// Null for the mean of integers.
template <typename T>
ReduceFunction FunctionOf(ReduceOp op, bool columns) {
  switch (op) {
    case ReduceOp::kSum:
      return FunctionFor<Sum<T>>(columns);
    case ReduceOp::kMean:
      if constexpr (std::is_floating_point_v<T>) {
        return FunctionFor<Mean<T>>(columns);
      }
      break;
    case ReduceOp::kMax:
      return FunctionFor<Max<T>>(columns);
    case ReduceOp::kMin:
      return FunctionFor<Min<T>>(columns);
    case ReduceOp::kArgMax:
      return FunctionFor<ArgMax<T>>(columns);
  }
  return nullptr;
}

ReduceFunction ChooseFunction(ReduceOp op, DType dtype, bool columns) {
  return VisitDType(dtype, [op, columns](auto zero) {
    return FunctionOf<decltype(zero)>(op, columns);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace d2l::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace d2l::kernels::cpu {
namespace {

HWY_EXPORT(ChooseFunction);

// A layout of up to two kept dimensions and one reduced, which fits a slot.
struct SmallLayout {
  explicit SmallLayout(const ReduceLayout& layout)
      : kept_rank(layout.kept.rank()), reduced_rank(layout.reduced.rank()) {
    std::copy_n(layout.kept.data(), kept_rank, kept);
    std::copy_n(layout.kept_strides.data(), kept_rank, kept_strides);
    std::copy_n(layout.reduced.data(), reduced_rank, &reduced);
    std::copy_n(layout.reduced_strides.data(), reduced_rank, &reduced_stride);
  }

  static bool Fits(const ReduceLayout& layout) {
    return layout.kept.rank() <= 2 && layout.reduced.rank() <= 1;
  }

  ReduceLayout Unpacked() const {
    return {Shape(absl::MakeConstSpan(kept, kept_rank)),
            Shape(absl::MakeConstSpan(kept_strides, kept_rank)),
            Shape(absl::MakeConstSpan(&reduced, reduced_rank)),
            Shape(absl::MakeConstSpan(&reduced_stride, reduced_rank))};
  }

  std::int64_t kept[2];
  std::int64_t kept_strides[2];
  std::int64_t reduced;
  std::int64_t reduced_stride;
  int kept_rank;
  int reduced_rank;
};

// Whether it is a contiguous matrix: of rows, if not `columns`.
bool IsMatrix(const ReduceLayout& layout, bool columns) {
  if (layout.kept.rank() > 1 || layout.reduced.rank() != 1) return false;
  const std::int64_t stride = layout.reduced_strides[0];
  if (columns) return stride == layout.kept[0];
  return stride == 1 &&
         (layout.kept.empty() || layout.kept_strides[0] == layout.reduced[0]);
}

// Where the order of the elements does not matter: in the order of memory.
void SortReduced(ReduceLayout& layout) {
  Shape& sizes = layout.reduced;
  Shape& strides = layout.reduced_strides;
  for (int i = 1; i < sizes.rank(); ++i) {
    for (int j = i; j > 0 && strides[j - 1] < strides[j]; --j) {
      std::swap(sizes[j - 1], sizes[j]);
      std::swap(strides[j - 1], strides[j]);
    }
  }
  Collapse(layout);
}

bool HasColumns(const ReduceLayout& layout) {
  const int kept = layout.kept.rank();
  const int reduced = layout.reduced.rank();
  if (kept == 0 || layout.kept_strides[kept - 1] != 1) return false;
  return reduced == 0 || layout.reduced_strides[reduced - 1] != 1;
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
  const bool columns = HasColumns(*layout);
  const auto function =
      HWY_DYNAMIC_DISPATCH(ChooseFunction)(args.op, args.dtype, columns);
  if (function == nullptr) ThrowNoLoop(OpName(args.op), args.dtype);
  void* const out = args.out;
  const void* const in = args.in;
  if (IsMatrix(*layout, columns)) {
    // The commonest case fits the slot's first line.
    const std::int64_t kept = layout->kept.numel();
    const std::int64_t reduced = layout->reduced[0];
    return stream.Enqueue(label, [=] {
      function(out, in,
               columns ? ReduceLayout{{kept}, {1}, {reduced}, {kept}}
                       : ReduceLayout{{kept}, {reduced}, {reduced}, {1}});
    });
  }
  if (SmallLayout::Fits(*layout)) {
    const SmallLayout small(*layout);
    return stream.Enqueue(label, [=] { function(out, in, small.Unpacked()); });
  }
  auto copy = std::make_shared<ReduceLayout>(*layout);
  return stream.Enqueue(
      label, [=, copy = std::move(copy)] { function(out, in, *copy); });
}

}  // namespace d2l::kernels::cpu

#endif  // HWY_ONCE
