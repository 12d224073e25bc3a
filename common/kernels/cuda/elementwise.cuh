// The element-wise kernels: one for contiguous operands, one for all others.
//
//   Elementwise(launch, IgnoreIndex<Add>(), numel, out, layout, Order::kAny,
//               ArrayOrNumber<float>{a}, ArrayOrNumber<float>{b});
//
// The function receives the number of the element and then its operands, so
// that a function that checks its operands can report the element. Each element
// is read before it is written, by the same thread: out may be an input.
//
// Both kernels stride over the elements with the whole grid. A thread loads
// several elements before it uses the first.
//
//   ForEach<float>(launch, out, numel, Mean<float>{in, window});
//
// computes each element independently: f is a value of less than 4 KB, and
// out[e] = f(e). f must not read out. For .cu files.

#ifndef D2L_COMMON_KERNELS_CUDA_ELEMENTWISE_CUH_
#define D2L_COMMON_KERNELS_CUDA_ELEMENTWISE_CUH_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "absl/types/span.h"
#include "common/device/cuda/cuda_launch.h"
#include "common/kernels/cuda/index/strided.h"
#include "common/kernels/cuda/index/vector_split.h"
#include "common/kernels/cuda/launch.h"
#include "common/kernels/cuda/start_kernel.cuh"
#include "common/kernels/layout.h"
#include "common/tensor/shape.h"

namespace d2l::kernels::cuda {

// An array, or, if data is null, one number.
template <typename T>
struct ArrayOrNumber {
  const T* data;
  T number;
  // Whether all elements of a vector are the one element at its index.
  bool repeated = false;
};

// A functor of functors.h, which does not use the element's index.
template <typename F>
struct IgnoreIndex {
  template <typename... T>
  __device__ auto operator()(std::int64_t, T... x) const {
    return F()(x...);
  }
};

template <typename T, int kSize>
struct alignas(sizeof(T) * kSize) Vector {
  T at[kSize];
};

// The kBatch vectors that a thread has loaded of an operand.
template <typename T, int kSize, int kBatch>
struct Loaded {
  Vector<T, kSize> vector[kBatch];
};

inline constexpr unsigned kThreads = kThreadsPerBlock;
// The blocks that have to fit on a multiprocessor. Without this number ptxas
// limits itself to 64 registers a thread, or fewer, and spills some.
inline constexpr int kLeastBlocks = 2;

__device__ inline std::int64_t ThreadInGrid() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t ThreadsOfGrid() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}

// Starts a kernel whose threads stride over `count` items, at_once at a time.
template <typename... T>
void StartGrid(const CudaLaunch& launch, std::int64_t count, int at_once,
               void (*kernel)(T...),
               const typename Converted<T>::type&... args) {
  const LaunchGeometry geometry =
      GeometryFor(count, launch.multiprocessors, at_once);
  StartKernel(kernel, geometry.blocks, geometry.threads, launch.stream,
              args...);
}

// ---- Elements computed from anything.

template <typename T, class F>
__global__ void __launch_bounds__(kThreads)
    ForEachKernel(T* __restrict__ out, std::int64_t numel, F f) {
  for (std::int64_t e = ThreadInGrid(); e < numel; e += ThreadsOfGrid()) {
    out[e] = f(e);
  }
}

template <typename T, class F>
void ForEach(const CudaLaunch& launch, void* out, std::int64_t numel, F f) {
  if (numel == 0) return;
  StartGrid(launch, numel, 1, ForEachKernel<T, F>, static_cast<T*>(out), numel,
            f);
}

// ---- Loads and stores of vectors.

// Loads the elements at the first `count` of kBatch places.
template <int kSize, int kBatch, typename T>
__device__ Loaded<T, kSize, kBatch> Load(const ArrayOrNumber<T>& operand,
                                         const std::int64_t (&place)[kBatch],
                                         int count) {
  Loaded<T, kSize, kBatch> loaded;
  if (operand.data == nullptr) {
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
#pragma unroll
      for (int j = 0; j < kSize; ++j) {
        loaded.vector[b].at[j] = operand.number;
      }
    }
    return loaded;
  }
  if (kSize > 1 && operand.repeated) {
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      const T x = b < count ? operand.data[place[b]] : T{};
#pragma unroll
      for (int j = 0; j < kSize; ++j) loaded.vector[b].at[j] = x;
    }
    return loaded;
  }
#pragma unroll
  for (int b = 0; b < kBatch; ++b) {
    if (b < count) {
      loaded.vector[b] =
          *reinterpret_cast<const Vector<T, kSize>*>(operand.data + place[b]);
    }
  }
  return loaded;
}

// `number` numbers the elements; it is not `place` if the output is strided.
template <int kSize, int kBatch, typename F, typename Out, typename... In>
__device__ void ComputeAndStore(const F& f, Out* out,
                                const std::int64_t (&place)[kBatch],
                                const std::int64_t (&number)[kBatch], int count,
                                const Loaded<In, kSize, kBatch>&... in) {
#pragma unroll
  for (int b = 0; b < kBatch; ++b) {
    if (b >= count) return;
    Vector<Out, kSize> result;
#pragma unroll
    for (int j = 0; j < kSize; ++j) {
      result.at[j] = f(number[b] + j, in.vector[b].at[j]...);
    }
    *reinterpret_cast<Vector<Out, kSize>*>(out + place[b]) = result;
  }
}

// How many of kBatch items i, i + step, … lie below end.
template <int kBatch>
__device__ int CountBelow(std::int64_t i, std::int64_t step, std::int64_t end) {
  int count = 0;
#pragma unroll
  for (int b = 0; b < kBatch; ++b) count += i + b * step < end ? 1 : 0;
  return count;
}

// ---- Contiguous operands.

// Vectors of each operand that a thread loads at a time; fewer if they unpack
// into many registers.
template <int kSize>
inline constexpr int kVectorsAtOnce = kSize > 4 ? 1 : 2;
// Elements that are loaded one by one are so many at a time.
inline constexpr int kSinglesAtOnce = 4;

// The work of one of `threads` threads.
template <int kSize, typename F, typename Out, typename... In>
__device__ void ComputeContiguous(std::int64_t thread, std::int64_t threads,
                                  const F& f, Out* out,
                                  const VectorSplit& split,
                                  const ArrayOrNumber<In>&... in) {
  constexpr int kBatch = kVectorsAtOnce<kSize>;
  for (std::int64_t v = thread; v < split.vectors; v += kBatch * threads) {
    std::int64_t place[kBatch];
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      place[b] = split.head + (v + b * threads) * kSize;
    }
    const int count = CountBelow<kBatch>(v, threads, split.vectors);
    ComputeAndStore<kSize, kBatch>(f, out, place, place, count,
                                   Load<kSize, kBatch>(in, place, count)...);
  }
  const std::int64_t singles = split.head + split.tail;
  for (std::int64_t e = thread; e < singles; e += kSinglesAtOnce * threads) {
    std::int64_t place[kSinglesAtOnce];
#pragma unroll
    for (int b = 0; b < kSinglesAtOnce; ++b) {
      place[b] = split.SingleElement(e + b * threads);
    }
    const int count = CountBelow<kSinglesAtOnce>(e, threads, singles);
    ComputeAndStore<1, kSinglesAtOnce>(
        f, out, place, place, count,
        Load<1, kSinglesAtOnce>(in, place, count)...);
  }
}

template <int kSize, typename F, typename Out, typename... In>
__global__ void __launch_bounds__(kThreads, kLeastBlocks)
    ContiguousKernel(F f, Out* out, VectorSplit split,
                     ArrayOrNumber<In>... in) {
  ComputeContiguous<kSize>(ThreadInGrid(), ThreadsOfGrid(), f, out, split,
                           in...);
}

// Elements in a vector: as many of the largest type as fit the widest load.
template <typename... T>
inline constexpr int kVectorSize = kVectorBytes /
                                   static_cast<int>(std::max({sizeof(T)...}));

template <typename F, typename Out, typename... In>
void LaunchContiguous(const CudaLaunch& launch, F f, std::int64_t numel,
                      Out* out, ArrayOrNumber<In>... in) {
  constexpr int kSize = kVectorSize<Out, In...>;
  Alignment alignment(kSize);
  alignment.Add(out, sizeof(Out));
  ((in.data != nullptr ? alignment.Add(in.data, sizeof(In)) : void()), ...);
  const VectorSplit split = SplitVectors(numel, alignment);
  const bool vectors = split.vectors > 0;
  StartGrid(launch, vectors ? split.vectors : numel,
            vectors ? kVectorsAtOnce<kSize> : 1,
            ContiguousKernel<kSize, F, Out, In...>, f, out, split, in...);
}

// ---- Operands with strides.

// `place` is that of all operands, the output's first.
template <int kSize, int kBatch, typename F, typename Out, typename... In,
          int... kOperand>
__device__ void StridedBatch(
    const F& f, Out* out,
    const std::int64_t (&place)[1 + sizeof...(In)][kBatch],
    const std::int64_t (&number)[kBatch], int count,
    std::integer_sequence<int, kOperand...>, const ArrayOrNumber<In>&... in) {
  ComputeAndStore<kSize, kBatch>(
      f, out, place[0], number, count,
      Load<kSize, kBatch>(in, place[1 + kOperand], count)...);
}

// `dims` counts vectors.
template <int kSize, typename F, typename Out, typename... In>
__global__ void __launch_bounds__(kThreads, kLeastBlocks)
    StridedKernel(F f, Out* out, std::int64_t vectors,
                  StridedDims<1 + sizeof...(In)> dims,
                  ArrayOrNumber<In>... in) {
  constexpr int kOperands = 1 + sizeof...(In);
  constexpr int kBatch = kVectorsAtOnce<kSize>;
  const std::int64_t threads = ThreadsOfGrid();
  for (std::int64_t v = ThreadInGrid(); v < vectors; v += kBatch * threads) {
    const int count = CountBelow<kBatch>(v, threads, vectors);
    std::int64_t place[kOperands][kBatch];
    std::int64_t number[kBatch];
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      number[b] = (v + b * threads) * kSize;
      std::int64_t offset[kOperands] = {};
      if (b < count) dims.Offsets(v + b * threads, offset);
#pragma unroll
      for (int k = 0; k < kOperands; ++k) place[k][b] = offset[k];
    }
    StridedBatch<kSize, kBatch>(
        f, out, place, number, count,
        std::make_integer_sequence<int, sizeof...(In)>(), in...);
  }
}

template <typename T>
ArrayOrNumber<T> WithRepeated(ArrayOrNumber<T> operand, bool repeated) {
  operand.repeated = repeated;
  return operand;
}

// `layout` is collapsed; its inputs are those that are arrays, in order. kInput
// numbers the inputs.
template <typename F, typename Out, typename... In, std::size_t... kInput>
void LaunchStrided(const CudaLaunch& launch, F f, Out* out,
                   StridedLayout layout, std::index_sequence<kInput...>,
                   ArrayOrNumber<In>... in) {
  constexpr int kOperands = 1 + sizeof...(In);
  constexpr int kSize = kVectorSize<Out, In...>;
  Shape zeros = Shape::Filled(layout.shape.rank(), 0);
  StridedOperand operands[kOperands] = {
      {&layout.out, out, sizeof(Out), false},
      {&zeros, in.data, sizeof(In), false}...};
  int arrays = 0;
  for (int k = 1; k < kOperands; ++k) {
    if (operands[k].data == nullptr) continue;
    operands[k].strides = &layout.in[arrays];
    ++arrays;
  }
  const bool split = SplitRows(kSize, layout.shape, absl::MakeSpan(operands));
  const std::int64_t vectors = layout.shape.numel();
  const StridedDims<kOperands> dims = MakeStridedDims<kOperands>(
      layout.shape, {operands[0].strides, operands[1 + kInput].strides...});
  const auto start = [&](auto* kernel, int at_once) {
    StartGrid(launch, vectors, at_once, kernel, f, out, vectors, dims,
              WithRepeated(in, split && operands[1 + kInput].repeated)...);
  };
  if (split) {
    start(StridedKernel<kSize, F, Out, In...>, kVectorsAtOnce<kSize>);
  } else {
    start(StridedKernel<1, F, Out, In...>, kVectorsAtOnce<1>);
  }
}

// ---- The choice.

// Whether elements may be numbered in another order than the layout's.
enum class Order { kAny, kOfLayout };

// `given` is as in kernels.h, with one input for each operand; the input of a
// number is ignored.
template <typename F, typename Out, typename... In>
void Elementwise(const CudaLaunch& launch, F f, std::int64_t numel, Out* out,
                 const StridedLayout* given, Order order,
                 ArrayOrNumber<In>... in) {
  constexpr int kInputs = sizeof...(In);
  if (numel == 0) return;
  if (given == nullptr) {
    LaunchContiguous(launch, f, numel, out, in...);
    return;
  }
  // Holds the arrays only: a number needs no strides.
  StridedLayout layout = {given->shape, given->out, {}};
  const bool is_array[kInputs + 1] = {(in.data != nullptr)...};
  int arrays = 0;
  for (int k = 0; k < kInputs; ++k) {
    if (is_array[k]) layout.in[arrays++] = given->in[k];
  }
  const bool contiguous = order == Order::kAny ? SortAndCollapse(layout, arrays)
                                               : Collapse(layout, arrays);
  if (contiguous) {
    LaunchContiguous(launch, f, numel, out, in...);
  } else {
    LaunchStrided(launch, f, out, layout, std::index_sequence_for<In...>(),
                  in...);
  }
}

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_ELEMENTWISE_CUH_
