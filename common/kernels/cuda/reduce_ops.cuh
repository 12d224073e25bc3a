// What is reduced, and how. Each operation has
//   Part    what a lane's run of elements is taken into, `Add` by `Add`
//   State   what is known of an output so far
//   Flush   takes four parts into a state
//   Merge   takes in another state
//
// A part of a floating-point sum is of the elements' type and short; states are
// double. For .cu files.

#ifndef D2L_COMMON_KERNELS_CUDA_REDUCE_OPS_CUH_
#define D2L_COMMON_KERNELS_CUDA_REDUCE_OPS_CUH_

#include <cstdint>
#include <limits>
#include <type_traits>

#include "common/kernels/cuda/index/reduce_plan.h"
#include "common/kernels/cuda/start_kernel.cuh"

namespace d2l::kernels::cuda {

// Steps until parts go into the state: so few roundings to float.
inline constexpr int kReduceChain = 16;

template <typename T>
__device__ inline bool IsNan(T x) {
  return x != x;
}

// Integers wrap around, so they are unsigned. A chain of bytes fits 32 bits.
template <typename Element>
struct Sum {
  using T = Element;
  using Part = std::conditional_t<
      std::is_floating_point_v<T>, T,
      std::conditional_t<sizeof(T) == 1, std::uint32_t, std::uint64_t>>;
  using State =
      std::conditional_t<std::is_floating_point_v<T>, double, std::uint64_t>;
  using Out = std::conditional_t<std::is_integral_v<T>, std::int64_t, T>;

  __device__ static Part Init() { return 0; }
  __device__ static State Nothing() { return 0; }
  __device__ static void Add(Part& part, T x, std::int64_t) {
    part += static_cast<Part>(x);
  }
  __device__ static void Flush(State& state, const Part (&part)[kReduceStep]) {
    state += static_cast<State>((part[0] + part[1]) + (part[2] + part[3]));
  }
  __device__ static void Merge(State& state, const State& other) {
    state += other;
  }
  __device__ static Out Finish(const State& state, std::int64_t) {
    return static_cast<Out>(state);
  }
};

template <typename T>
struct Mean : Sum<T> {
  __device__ static T Finish(double state, std::int64_t n) {
    return static_cast<T>(state / static_cast<double>(n));
  }
};

struct Larger {
  template <typename T>
  __device__ static bool Before(T a, T b) {
    return a > b;
  }
  template <typename T>
  __device__ static T Last() {
    if constexpr (std::is_integral_v<T>) return std::numeric_limits<T>::min();
    return -std::numeric_limits<T>::infinity();
  }
};
struct Smaller {
  template <typename T>
  __device__ static bool Before(T a, T b) {
    return a < b;
  }
  template <typename T>
  __device__ static T Last() {
    if constexpr (std::is_integral_v<T>) return std::numeric_limits<T>::max();
    return std::numeric_limits<T>::infinity();
  }
};

// The first in the order, or NaN if one is.
template <typename Element, class Ordering>
struct Extreme {
  using T = Element;
  using Part = T;
  using State = T;
  using Out = T;

  __device__ static Part Init() { return Ordering::template Last<T>(); }
  __device__ static State Nothing() { return Init(); }
  __device__ static void Add(Part& part, T x, std::int64_t) { Merge(part, x); }
  __device__ static void Flush(State& state, const Part (&part)[kReduceStep]) {
    for (const Part& p : part) Merge(state, p);
  }
  __device__ static void Merge(State& state, const State& other) {
    if (Ordering::Before(other, state) || IsNan(other)) state = other;
  }
  __device__ static Out Finish(const State& state, std::int64_t) {
    return state;
  }
};

template <typename T>
using Max = Extreme<T, Larger>;
template <typename T>
using Min = Extreme<T, Smaller>;

// Where the largest is; of equals the first, and NaN is larger than all.
template <typename Element>
struct ArgMax {
  using T = Element;
  struct Part {
    T value;
    std::int64_t index;  // -1: no element yet
  };
  using State = Part;
  using Out = std::int64_t;

  __device__ static Part Init() { return {T{}, -1}; }
  __device__ static State Nothing() { return Init(); }
  __device__ static void Add(Part& part, T x, std::int64_t index) {
    Merge(part, {x, index});
  }
  __device__ static void Flush(State& state, const Part (&part)[kReduceStep]) {
    for (const Part& p : part) Merge(state, p);
  }
  // Lanes take turns, so what is merged later may lie before.
  __device__ static void Merge(State& state, const State& other) {
    if (other.index < 0) return;
    const bool equal = other.value == state.value ||
                       (IsNan(other.value) && IsNan(state.value));
    const bool better = other.value > state.value ||
                        (IsNan(other.value) && !IsNan(state.value));
    if (state.index < 0 || better || (equal && other.index < state.index)) {
      state = other;
    }
  }
  __device__ static Out Finish(const State& state, std::int64_t) {
    return state.index;
  }
};

// One segment of one output, by one lane; its elements are counted from
// `begin`. load(step, x) loads the elements of a step, load(i) is element i.
// kUnroll: steps whose loads are under way together.
template <class Op, int kUnroll, typename Load>
__device__ typename Op::State ReduceLane(const LaneWalk& walk,
                                         std::int64_t begin, Load load) {
  using T = typename Op::T;
  using Part = typename Op::Part;
  typename Op::State state = Op::Nothing();
  for (std::int64_t step = 0; step < walk.full_steps();) {
    Part part[kReduceStep] = {Op::Init(), Op::Init(), Op::Init(), Op::Init()};
    const std::int64_t left = walk.full_steps() - step;
    const int chain =
        left < kReduceChain ? static_cast<int>(left) : kReduceChain;
#pragma unroll kUnroll
    for (int c = 0; c < chain; ++c, ++step) {
      T x[kReduceStep];
      load(step, x);
#pragma unroll
      for (int j = 0; j < kReduceStep; ++j) {
        Op::Add(part[j], x[j], begin + walk.Element(step, j));
      }
    }
    Op::Flush(state, part);
  }
  // A sum of its own for each, as in a full step.
  Part part[kReduceStep] = {Op::Init(), Op::Init(), Op::Init(), Op::Init()};
#pragma unroll
  for (int j = 0; j < kReduceStep - 1; ++j) {
    if (j < walk.rest()) {
      const std::int64_t element = walk.Element(walk.full_steps(), j);
      Op::Add(part[j], load(element), begin + element);
    }
  }
  Op::Flush(state, part);
  return state;
}

// Puts the lanes' states together: what lane 0 of an output gets back, and what
// is at its place in `shared`, is then the state of all. Every thread of the
// block calls it; others read `shared` after another __syncthreads().
template <class Op>
__device__ typename Op::State MergeLanes(const ReducePlan& plan,
                                         typename Op::State state,
                                         typename Op::State* shared) {
  const int lane = plan.LaneOf(threadIdx.x);
  const int stride = plan.LaneStride();
  shared[threadIdx.x] = state;
  for (int half = plan.Lanes() / 2; half > 0; half /= 2) {
    __syncthreads();
    if (lane < half) {
      Op::Merge(state, shared[threadIdx.x + half * stride]);
      shared[threadIdx.x] = state;
    }
  }
  return state;
}

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_REDUCE_OPS_CUH_
