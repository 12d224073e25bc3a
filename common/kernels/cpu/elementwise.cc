#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/device/cpu/cpu_stream.h"
#include "common/device/cpu/parallel_for.h"
#include "common/device/op_label.h"
#include "common/kernels/cpu/elementwise_loops.h"
#include "common/kernels/cpu/elementwise_run.h"
#include "common/kernels/enqueue.h"
#include "common/kernels/kernels.h"
#include "common/kernels/layout.h"
#include "common/tensor/dtype.h"
#include "common/tensor/scalar.h"
#include "common/tensor/shape.h"

// A family (at the end) describes its operation, an output and up to three
// inputs, and takes a loop for the kinds of input that Plan() finds. Enqueue()
// puts both into the smallest task that holds them: for contiguous operands,
// for two dimensions, whose strides fit into the queue's slot, and for more.

namespace d2l::kernels::cpu {
namespace {

// ---- The operation.

int SizeOf(DType dtype) { return static_cast<int>(DTypeSize(dtype)); }

Source NumberSource(DType dtype, const Scalar& scalar) {
  Source source{};
  VisitDType(dtype, [&](auto zero) {
    const auto number = scalar.To<decltype(zero)>();
    std::memcpy(source.number, &number, sizeof(number));
  });
  return source;
}

struct InputOfLoop {
  Source source;
  int size;              // of an element in bytes
  const Shape* strides;  // null if there is no layout
  bool is_number;        // whether source is one
  bool may_be_scalar;    // whether there are loops that take it as one number
  bool is_scalar;        // set by Plan(): whether the loop takes one number

  // Input `index` of the layout, elements in memory.
  void Set(const void* data, DType dtype, const StridedLayout* layout,
           int index) {
    source.data = data;
    size = SizeOf(dtype);
    strides = layout != nullptr ? &layout->in[index] : nullptr;
    is_number = may_be_scalar = is_scalar = false;
  }

  // Input `index` of the layout, elements in memory or one number.
  void Set(const Input& input, DType dtype, const StridedLayout* layout,
           int index) {
    Set(input.data, dtype, layout, index);
    may_be_scalar = true;
    is_number = input.data == nullptr;
    if (is_number) source = NumberSource(dtype, input.scalar);
  }
};

// Built in place: copying it just after it was written bit by bit, or filling
// it with zeros first, costs as much as the rest of a call.
template <int kInputs>
struct Operation {
  template <typename Args>
  Operation(const Args& args, DType result)
      : numel(args.numel),
        out(args.out),
        out_size(SizeOf(result)),
        layout(args.layout) {}

  std::int64_t numel;
  void* out;
  int out_size;
  const StridedLayout* layout;
  InputOfLoop in[kInputs];
  Walk walk;  // set by Plan(), if there is a layout
};

// Shorter rows are combined into tiles.
constexpr std::int64_t kLeastRow = 32;

// Decides how to walk through memory and which inputs the loop takes as
// scalars. There is no loop for two scalars alone: one of them is then treated
// as a vector.
template <int kInputs>
void Plan(Operation<kInputs>& operation) {
  auto& in = operation.in;
  if (operation.layout == nullptr) {
    for (InputOfLoop& operand : in) operand.is_scalar = operand.is_number;
    return;
  }
  const StridedLayout& layout = *operation.layout;
  const int last = layout.shape.rank() - 1;
  bool rows = layout.shape[last] >= kLeastRow && layout.out[last] == 1;
  for (InputOfLoop& operand : in) {
    const std::int64_t stride = (*operand.strides)[last];
    operand.is_scalar = operand.may_be_scalar && stride == 0;
    rows = rows && (operand.is_scalar || stride == 1);
  }
  if (kInputs == 2 && in[0].is_scalar && in[1].is_scalar) rows = false;
  operation.walk = rows ? Walk::kRows : Walk::kTiles;
  if (rows) return;
  for (InputOfLoop& operand : in) {
    operand.is_scalar =
        operand.may_be_scalar &&
        std::all_of(operand.strides->begin(), operand.strides->end(),
                    [](std::int64_t stride) { return stride == 0; });
  }
  if (kInputs == 2 && in[1].is_scalar) in[0].is_scalar = false;
}

// ---- Tasks.

template <int kInputs>
struct ContiguousTask {
  LoopFn loop;
  void* out;
  std::int64_t numel;
  Source in[kInputs];
  std::uint8_t out_size;
  std::uint8_t in_size[kInputs];  // 0: a number

  ContiguousTask(const Operation<kInputs>& operation, LoopFn loop_fn)
      : loop(loop_fn),
        out(operation.out),
        numel(operation.numel),
        out_size(static_cast<std::uint8_t>(operation.out_size)) {
    for (int k = 0; k < kInputs; ++k) {
      const InputOfLoop& operand = operation.in[k];
      in[k] = operand.source;
      in_size[k] =
          static_cast<std::uint8_t>(operand.is_number ? 0 : operand.size);
    }
  }

  const void* Address(int k) const {
    if (k >= kInputs) return nullptr;
    return in_size[k] == 0 ? in[k].number : in[k].data;
  }

  void operator()() const {
    if (numel * out_size <= kLargeBytes) {
      loop(out, Address(0), Address(1), Address(2), numel);
      return;
    }
    ContiguousLoop all = {loop, out, out_size, numel, {}, {}};
    for (int k = 0; k < kInputs; ++k) {
      all.in[k] = Address(k);
      all.in_size[k] = in_size[k];
    }
    RunContiguous(all);
  }
};
// The room in the first cache line of a queue's slot.
static_assert(sizeof(ContiguousTask<2>) <= 48, "");

template <int kInputs>
StridedLoop MakeStridedLoop(const Operation<kInputs>& operation, LoopFn loop) {
  const StridedLayout& layout = *operation.layout;
  StridedLoop all;
  all.loop = loop;
  all.walk = operation.walk;
  all.inputs = kInputs;
  all.rank = static_cast<std::uint8_t>(layout.shape.rank());
  std::copy(layout.shape.begin(), layout.shape.end(), all.shape);
  all.source[0].data = operation.out;
  all.size[0] = static_cast<std::uint8_t>(operation.out_size);
  all.is_number[0] = all.is_scalar[0] = false;
  std::copy(layout.out.begin(), layout.out.end(), all.strides[0]);
  for (int k = 1; k <= kInputs; ++k) {
    const InputOfLoop& operand = operation.in[k - 1];
    all.source[k] = operand.source;
    all.is_number[k] = operand.is_number;
    all.is_scalar[k] = operand.is_scalar;
    all.size[k] = static_cast<std::uint8_t>(operand.size);
    std::copy(operand.strides->begin(), operand.strides->end(), all.strides[k]);
  }
  return all;
}

// Returns whether `to` has room for the sizes and strides.
template <class From, class To>
bool Convert(const From& from, To& to) {
  bool fits = true;
  const auto copy = [&](const auto* in, auto* out) {
    for (int d = 0; d < from.rank; ++d) {
      out[d] = static_cast<std::remove_reference_t<decltype(*out)>>(in[d]);
      fits = fits && out[d] == in[d];
    }
  };
  to.loop = from.loop;
  to.walk = from.walk;
  to.inputs = from.inputs;
  to.rank = from.rank;
  copy(from.shape, to.shape);
  for (int k = 0; k <= from.inputs; ++k) {
    to.source[k] = from.source[k];
    to.is_number[k] = from.is_number[k];
    to.is_scalar[k] = from.is_scalar[k];
    to.size[k] = from.size[k];
    copy(from.strides[k], to.strides[k]);
  }
  return fits;
}

// Has at most two dimensions, whose sizes and strides have 32 bits.
template <int kInputs>
struct PlaneTask : Strided<kInputs, 2, std::int32_t> {
  void operator()() const {
    StridedLoop all;
    Convert(*this, all);
    RunStrided(all);
  }
};

template <int kInputs>
std::uint64_t Enqueue(CpuStream& stream, const OpLabel& label,
                      const Operation<kInputs>& operation, LoopFn loop) {
  if (operation.layout == nullptr) {
    return stream.Enqueue(label, ContiguousTask<kInputs>(operation, loop));
  }
  const StridedLoop strided = MakeStridedLoop(operation, loop);
  PlaneTask<kInputs> plane;
  if (strided.rank <= 2 && Convert(strided, plane)) {
    return stream.Enqueue(label, plane);
  }
  return stream.Enqueue(label, [all = std::make_shared<StridedLoop>(strided)] {
    RunStrided(*all);
  });
}

std::uint64_t EnqueueUnaryLoop(CpuStream& stream, const OpLabel& label,
                               const UnaryArgs& args, LoopFn loop) {
  Operation<1> operation(args, args.dtype);
  operation.in[0].Set(args.in, args.dtype, args.layout, 0);
  Plan(operation);
  return Enqueue(stream, label, operation, loop);
}

// ---- Late errors: integers divided by zero, or raised to a negative power.

bool IsBadDivisor(BinaryOp op, std::int64_t divisor) {
  return op == BinaryOp::kFloorDivide ? divisor == 0 : divisor < 0;
}

[[noreturn]] void ThrowBadDivisor(BinaryOp op, std::int64_t divisor,
                                  std::int64_t element) {
  if (op == BinaryOp::kFloorDivide) {
    throw std::domain_error(
        absl::StrCat("division by zero at element ", element));
  }
  throw std::domain_error(absl::StrCat("negative integer exponent ", divisor,
                                       " at element ", element));
}

// Throws if one of the n divisors is bad; the first is element `first`.
template <typename T>
void CheckRow(BinaryOp op, const T* divisors, std::int64_t stride,
              std::int64_t n, std::int64_t first) {
  // Checks all without a branch, and searches only if there is a bad one.
  bool bad = false;
  if (op == BinaryOp::kFloorDivide) {
    for (std::int64_t i = 0; i < n; ++i) bad |= divisors[i * stride] == 0;
  } else {
    for (std::int64_t i = 0; i < n; ++i) bad |= divisors[i * stride] < 0;
  }
  if (!bad) return;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t divisor = divisors[i * stride];
    if (IsBadDivisor(op, divisor)) ThrowBadDivisor(op, divisor, first + i);
  }
}

template <typename T>
void CheckDivisors(BinaryOp op, const StridedLoop& loop) {
  const T* const divisors = static_cast<const T*>(loop.source[2].data);
  const std::int64_t* const strides = loop.strides[2];
  const int last = loop.rank - 1;
  std::int64_t rows = 1;
  for (int d = 0; d < last; ++d) rows *= loop.shape[d];
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t offset = 0;
    std::int64_t rest = row;
    for (int d = last - 1; d >= 0; --d) {
      offset += rest % loop.shape[d] * strides[d];
      rest /= loop.shape[d];
    }
    CheckRow(op, divisors + offset, strides[last], loop.shape[last],
             row * loop.shape[last]);
  }
}

// For integers that are divided or raised to a power. The divisors are checked
// before the loop runs: the result may overwrite them.
std::uint64_t EnqueueChecked(CpuStream& stream, const OpLabel& label,
                             const BinaryArgs& args, Operation<2> operation,
                             LoopFn loop) {
  if (args.b.data == nullptr) {
    const std::int64_t divisor = args.b.scalar.To<std::int64_t>();
    if (args.numel == 0 || !IsBadDivisor(args.op, divisor)) {
      return Enqueue(stream, label, operation, loop);
    }
    return stream.Enqueue(
        label, [op = args.op, divisor] { ThrowBadDivisor(op, divisor, 0); });
  }
  // Contiguous operands are one row. The loop's scalars stay scalars.
  const StridedLayout row = {{args.numel}, {1}, {{1}, {1}}};
  const Shape zero = {0};
  if (operation.layout == nullptr) {
    operation.layout = &row;
    operation.walk = Walk::kRows;
    for (InputOfLoop& in : operation.in) {
      in.strides = in.is_number ? &zero : &row.in[0];
    }
  }
  return stream.Enqueue(
      label,
      [op = args.op, dtype = args.dtype,
       all = std::make_shared<StridedLoop>(MakeStridedLoop(operation, loop))] {
        if (dtype == DType::kInt64) {
          CheckDivisors<std::int64_t>(op, *all);
        } else {
          CheckDivisors<std::uint8_t>(op, *all);
        }
        RunStrided(*all);
      });
}

}  // namespace

// ---- The families.

std::uint64_t Enqueue(CpuStream& stream, const OpLabel& label,
                      const FillArgs& args) {
  Operation<1> operation(args, args.dtype);
  InputOfLoop& number = operation.in[0];
  number.Set(Input{nullptr, args.value}, args.dtype, nullptr, 0);
  const Shape zeros =
      Shape::Filled(args.layout != nullptr ? args.layout->shape.rank() : 0, 0);
  number.strides = &zeros;
  Plan(operation);
  // Copies the number directly: the tiles would first make a vector of it.
  if (operation.walk == Walk::kTiles) operation.walk = Walk::kCopy;
  return Enqueue(stream, label, operation, FillLoop(args.dtype));
}

std::uint64_t Enqueue(CpuStream& stream, const OpLabel& label,
                      const ArangeArgs& args) {
  struct Task {
    LoopFn loop;
    char* out;
    std::int64_t numel;
    Source start;
    Source step;
    int size;

    void operator()() const {
      ParallelFor(numel, 1 << 15, [&](std::int64_t begin, std::int64_t end) {
        loop(out + begin * size, start.number, step.number, &begin,
             end - begin);
      });
    }
  };
  const DType computed =
      IsFloatingPoint(args.dtype) ? DType::kFloat64 : DType::kInt64;
  return stream.Enqueue(
      label, Task{ArangeLoop(args.dtype), static_cast<char*>(args.out),
                  args.numel, NumberSource(computed, args.start),
                  NumberSource(computed, args.step), SizeOf(args.dtype)});
}

std::uint64_t Enqueue(CpuStream& stream, const OpLabel& label,
                      const CopyArgs& args) {
  const bool moves = args.out_dtype == args.in_dtype;
  if (moves && args.layout == nullptr) {
    const std::int64_t bytes = args.numel * SizeOf(args.out_dtype);
    return stream.Enqueue(label, [out = args.out, in = args.in, bytes] {
      if (out == in) return;
      if (bytes <= kLargeBytes) {
        std::memcpy(out, in, static_cast<std::size_t>(bytes));
      } else {
        CopyContiguous(out, in, bytes);
      }
    });
  }
  Operation<1> operation(args, args.out_dtype);
  operation.in[0].Set(args.in, args.in_dtype, args.layout, 0);
  Plan(operation);
  if (moves) operation.walk = Walk::kCopy;
  return Enqueue(stream, label, operation,
                 CopyLoop(args.out_dtype, args.in_dtype));
}

std::uint64_t Enqueue(CpuStream& stream, const OpLabel& label,
                      const UnaryArgs& args) {
  return EnqueueUnaryLoop(stream, label, args, UnaryLoop(args.op, args.dtype));
}

std::uint64_t Enqueue(CpuStream& stream, const OpLabel& label,
                      const BinaryArgs& args) {
  const bool power = args.op == BinaryOp::kPow;
  bool wide = false;  // a float32 to the power of a double
  if (power && args.b.data == nullptr) {
    const double exponent = args.b.scalar.To<double>();
    if (exponent == 0) {
      return Enqueue(
          stream, label,
          FillArgs{args.dtype, args.numel, args.out, 1, args.layout});
    }
    if (const LoopFn loop = PowerLoop(exponent, args.dtype)) {
      return EnqueueUnaryLoop(
          stream, label,
          {{}, args.dtype, args.numel, args.out, args.a.data, args.layout},
          loop);
    }
    // Float is twice as fast, and is used where it loses nothing.
    wide = args.dtype == DType::kFloat32 &&
           static_cast<double>(static_cast<float>(exponent)) != exponent;
  }
  const BinaryOp op = WithoutGreater(args.op);
  const bool reversed = op != args.op;
  Operation<2> operation(args, ResultDType(args.op, args.dtype));
  auto& [a, b] = operation.in;
  a.Set(reversed ? args.b : args.a, args.dtype, args.layout, reversed ? 1 : 0);
  b.Set(reversed ? args.a : args.b, wide ? DType::kFloat64 : args.dtype,
        args.layout, reversed ? 0 : 1);
  Plan(operation);
  if (a.is_scalar && Commutes(op)) std::swap(a, b);
  if (wide) return Enqueue(stream, label, operation, PowerOfFloatLoop());
  const LoopFn loop =
      BinaryLoop(op, args.dtype, OperandsOf(a.is_scalar, b.is_scalar));
  if (!IsFloatingPoint(args.dtype) && (power || op == BinaryOp::kFloorDivide)) {
    return EnqueueChecked(stream, label, args, operation, loop);
  }
  return Enqueue(stream, label, operation, loop);
}

std::uint64_t Enqueue(CpuStream& stream, const OpLabel& label,
                      const WhereArgs& args) {
  Operation<3> operation(args, args.dtype);
  operation.in[0].Set(args.condition, DType::kUInt8, args.layout, 0);
  operation.in[1].Set(args.a, args.dtype, args.layout, 1);
  operation.in[2].Set(args.b, args.dtype, args.layout, 2);
  Plan(operation);
  return Enqueue(stream, label, operation,
                 WhereLoop(args.dtype, OperandsOf(operation.in[1].is_scalar,
                                                  operation.in[2].is_scalar)));
}

}  // namespace d2l::kernels::cpu
