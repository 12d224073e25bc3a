#include "common/kernels/cpu/elementwise.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "common/kernels/functors.h"
#include "common/tensor/shape.h"

namespace d2l::kernels::cpu {
namespace {

// Where an operand's element comes from, in a loop over i. The compiler
// vectorises the loops over Array and Scalar; they differ from Strided only
// in what they know.
template <typename T>
struct Array {
  const T* data;
  T operator[](std::int64_t i) const { return data[i]; }
};
template <typename T>
struct Scalar {
  T value;
  T operator[](std::int64_t) const { return value; }
};
template <typename T>
struct Strided {
  const T* data;
  std::int64_t stride;
  T operator[](std::int64_t i) const { return data[i * stride]; }
};

template <typename T, typename F, typename A, typename B>
void BinaryLoop(T* out, A a, B b, std::int64_t n) {
  const F f;
  for (std::int64_t i = 0; i < n; ++i) out[i] = f(a[i], b[i]);
}

// Calls f(out, a, b), the offsets of the first element, for each row of the
// layout's innermost dimension.
template <typename F>
void ForEachRow(const StridedLayout& layout, F f) {
  const int outer = layout.shape.rank() - 1;
  std::int64_t index[kMaxRank] = {};
  std::int64_t out = 0, a = 0, b = 0;
  for (;;) {
    f(out, a, b);
    int d = outer - 1;
    for (; d >= 0; --d) {
      out += layout.out[d];
      a += layout.a[d];
      b += layout.b[d];
      if (++index[d] < layout.shape[d]) break;
      out -= index[d] * layout.out[d];
      a -= index[d] * layout.a[d];
      b -= index[d] * layout.b[d];
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

template <typename T, typename F>
std::uint64_t EnqueueBinaryOf(CpuStream& stream, const OpLabel& label,
                              const BinaryArgs& args) {
  T* out = static_cast<T*>(args.out);
  const T* a = static_cast<const T*>(args.a.data);
  const T* b = static_cast<const T*>(args.b.data);
  const T a_scalar = static_cast<T>(args.a.scalar);
  const T b_scalar = static_cast<T>(args.b.scalar);
  const std::int64_t n = args.numel;
  if (args.layout == nullptr) {
    if (b == nullptr) {
      return stream.Enqueue(label, [=] {
        BinaryLoop<T, F>(out, Array<T>{a}, Scalar<T>{b_scalar}, n);
      });
    }
    if (a == nullptr) {
      return stream.Enqueue(label, [=] {
        BinaryLoop<T, F>(out, Scalar<T>{a_scalar}, Array<T>{b}, n);
      });
    }
    return stream.Enqueue(
        label, [=] { BinaryLoop<T, F>(out, Array<T>{a}, Array<T>{b}, n); });
  }
  // Too large for a slot, and rare: the layout goes to the heap.
  auto layout = std::make_unique<StridedLayout>(*args.layout);
  return stream.Enqueue(label, [=, layout = std::move(layout)] {
    if (n == 0) return;
    const int last = layout->shape.rank() - 1;
    const std::int64_t out_step = layout->out[last];
    const Strided<T> a0 = {a != nullptr ? a : &a_scalar, layout->a[last]};
    const Strided<T> b0 = {b != nullptr ? b : &b_scalar, layout->b[last]};
    ForEachRow(*layout,
               [&](std::int64_t to, std::int64_t in_a, std::int64_t in_b) {
                 const F f;
                 const Strided<T> row_a = {a0.data + in_a, a0.stride};
                 const Strided<T> row_b = {b0.data + in_b, b0.stride};
                 for (std::int64_t i = 0; i < layout->shape[last]; ++i) {
                   out[to + i * out_step] = f(row_a[i], row_b[i]);
                 }
               });
  });
}

// A unary function as a binary one whose second operand is not looked at.
template <typename F>
struct IgnoreSecond {
  template <typename T>
  T operator()(T a, T) const {
    return F()(a);
  }
};

template <typename F>
std::uint64_t EnqueueOf(CpuStream& stream, const OpLabel& label,
                        const BinaryArgs& args) {
  return VisitDType(args.dtype, [&](auto zero) {
    return EnqueueBinaryOf<decltype(zero), F>(stream, label, args);
  });
}

}  // namespace

std::uint64_t EnqueueUnary(CpuStream& stream, const OpLabel& label,
                           const UnaryArgs& args) {
  BinaryArgs binary{};
  binary.dtype = args.dtype;
  binary.numel = args.numel;
  binary.out = args.out;
  binary.a.data = args.a;
  binary.layout = args.layout;
  switch (args.op) {
    case UnaryOp::kNegative:
      break;
  }
  return EnqueueOf<IgnoreSecond<Negative>>(stream, label, binary);
}

std::uint64_t EnqueueBinary(CpuStream& stream, const OpLabel& label,
                            const BinaryArgs& args) {
  switch (args.op) {
    case BinaryOp::kAdd:
      return EnqueueOf<Add>(stream, label, args);
    case BinaryOp::kSubtract:
      return EnqueueOf<Subtract>(stream, label, args);
    case BinaryOp::kMultiply:
      break;
  }
  return EnqueueOf<Multiply>(stream, label, args);
}

}  // namespace d2l::kernels::cpu
