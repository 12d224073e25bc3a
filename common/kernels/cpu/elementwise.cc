#include "common/kernels/cpu/elementwise.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/device/cpu/cpu_stream.h"
#include "common/device/cpu/parallel_for.h"
#include "common/device/op_label.h"
#include "common/kernels/cpu/elementwise_loops.h"
#include "common/kernels/cpu/elementwise_run.h"
#include "common/kernels/kernels.h"
#include "common/kernels/layout.h"
#include "common/tensor/dtype.h"
#include "common/tensor/scalar.h"
#include "common/tensor/shape.h"

// Every family comes down to a loop_fn, an output and up to three inputs. What
// the worker calls for it is one of three tasks: for contiguous operands, for
// two dimensions, whose strides fit into the queue's slot, and for more.

namespace d2l::kernels::cpu {
namespace {

// A number of any type, where a loop_fn will read it.
struct Value {
  alignas(8) unsigned char bytes[8];
};

template <typename T>
Value ValueOf(T number) {
  Value value{};
  std::memcpy(value.bytes, &number, sizeof(T));
  return value;
}

Value ValueOf(DType dtype, const Scalar& scalar) {
  return VisitDType(
      dtype, [&](auto zero) { return ValueOf(scalar.To<decltype(zero)>()); });
}

// An address, or a number.
union Source {
  const void* data;
  Value value;
};

struct Operand {
  Source source;
  bool is_value;
  int size;              // of an element in bytes
  const Shape* strides;  // null if there is no layout
};

Operand ArrayOperand(const void* data, DType dtype, const StridedLayout* layout,
                     int index) {
  Operand operand;
  operand.source.data = data;
  operand.is_value = false;
  operand.size = static_cast<int>(DTypeSize(dtype));
  operand.strides = layout != nullptr ? &layout->in[index] : nullptr;
  return operand;
}

Operand OperandOf(const Input& input, DType dtype, const StridedLayout* layout,
                  int index) {
  Operand operand = ArrayOperand(input.data, dtype, layout, index);
  if (input.data == nullptr) {
    operand.is_value = true;
    operand.source.value = ValueOf(dtype, input.scalar);
  }
  return operand;
}

// What is to be done, but for the loop_fn: that depends on the plan.
template <int kInputs>
struct Operation {
  std::int64_t numel;
  void* out;
  int out_size;
  const StridedLayout* layout;
  Operand in[kInputs];
};

// ---- Tasks.

template <int kInputs>
struct ContiguousTask {
  LoopFn loop_fn;
  void* out;
  std::int64_t numel;
  Source in[kInputs];
  std::uint8_t out_size;
  std::uint8_t in_size[kInputs];  // 0: a value

  const void* Address(int k) const {
    if (k >= kInputs) return nullptr;
    return in_size[k] == 0 ? in[k].value.bytes : in[k].data;
  }

  void operator()() const {
    if (numel * out_size <= kLargeBytes) {
      loop_fn(out, Address(0), Address(1), Address(2), numel);
      return;
    }
    ContiguousLoop loop = {loop_fn, out, out_size, {}, {}, numel};
    for (int k = 0; k < kInputs; ++k) {
      loop.in[k] = Address(k);
      loop.in_size[k] = in_size[k];
    }
    RunLarge(loop);
  }
};
// What the queue has room for in a slot's first cache line.
static_assert(sizeof(ContiguousTask<2>) <= 48, "");

struct Plan {
  bool by_rows;
  unsigned numbers;  // one bit for each operand
};

// At most two dimensions, and sizes and strides of 32 bits.
template <int kInputs>
struct PlaneTask {
  LoopFn loop_fn;
  char* out;
  Source in[kInputs];
  std::int32_t shape[2];
  std::int32_t strides[1 + kInputs][2];  // the output's first
  std::uint8_t size[1 + kInputs];
  std::uint8_t values;
  std::uint8_t numbers;
  bool by_rows;

  void operator()() {
    StridedLoop loop;
    Fill(loop);
    RunStrided(loop);
  }

  void Fill(StridedLoop& loop) {
    loop.loop_fn = loop_fn;
    loop.by_rows = by_rows;
    loop.inputs = kInputs;
    loop.rank = 2;
    const auto operand = [&](int k, char* data, bool number) {
      return StridedOperand{
          data, size[k], number, {strides[k][0], strides[k][1]}};
    };
    for (int d = 0; d < 2; ++d) loop.shape[d] = shape[d];
    loop.out = operand(0, out, false);
    for (int k = 0; k < kInputs; ++k) {
      char* const data =
          (values >> k & 1) != 0
              ? reinterpret_cast<char*>(in[k].value.bytes)
              : static_cast<char*>(const_cast<void*>(in[k].data));
      loop.in[k] = operand(1 + k, data, (numbers >> k & 1) != 0);
    }
  }
};

// Any other layout, on the heap.
struct StridedTask {
  struct Memory {
    StridedLoop loop;
    Value values[kMaxInputs];
  };
  std::unique_ptr<Memory> memory;

  void operator()() const { RunStrided(memory->loop); }
};

// ---- Choosing the task.

// Shorter rows are put together to tiles.
constexpr std::int64_t kLeastRow = 32;

// may_be_numbers: for which operands there are blocks that take a number.
template <int kInputs>
Plan PlanFor(const Operation<kInputs>& operation, unsigned may_be_numbers) {
  Plan plan = {false, 0};
  if (operation.layout == nullptr) {
    for (int k = 0; k < kInputs; ++k) {
      if (operation.in[k].is_value) plan.numbers |= 1u << k;
    }
    return plan;
  }
  const StridedLayout& layout = *operation.layout;
  const int last = layout.shape.rank() - 1;
  plan.by_rows = layout.shape[last] >= kLeastRow && layout.out[last] == 1;
  for (int k = 0; k < kInputs; ++k) {
    const std::int64_t stride = (*operation.in[k].strides)[last];
    if (stride == 0) plan.numbers |= 1u << k;
    const bool may_be_number = (may_be_numbers >> k & 1) != 0;
    if (stride != 1 && !(stride == 0 && may_be_number)) plan.by_rows = false;
  }
  // There is no loop_fn for two numbers: one of them is made an array.
  if (kInputs == 2 && plan.numbers == 3u) plan.by_rows = false;
  if (plan.by_rows) return plan;
  plan.numbers = 0;
  for (int k = 0; k < kInputs; ++k) {
    const Shape& strides = *operation.in[k].strides;
    if ((may_be_numbers >> k & 1) != 0 &&
        std::all_of(strides.begin(), strides.end(),
                    [](std::int64_t stride) { return stride == 0; })) {
      plan.numbers |= 1u << k;
    }
  }
  if (kInputs == 2 && plan.numbers == 3u) {
    plan.numbers = 2u;
  }
  return plan;
}

bool Fits32(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](std::int64_t x) {
    return x == static_cast<std::int32_t>(x);
  });
}

template <int kInputs>
bool FitsPlane(const Operation<kInputs>& operation) {
  const StridedLayout& layout = *operation.layout;
  if (layout.shape.rank() > 2) return false;
  bool fits = Fits32(layout.shape) && Fits32(layout.out);
  for (const Operand& in : operation.in) fits = fits && Fits32(*in.strides);
  return fits;
}

template <int kInputs>
ContiguousTask<kInputs> MakeContiguous(const Operation<kInputs>& operation,
                                       LoopFn loop_fn) {
  ContiguousTask<kInputs> task;
  task.loop_fn = loop_fn;
  task.out = operation.out;
  task.numel = operation.numel;
  task.out_size = static_cast<std::uint8_t>(operation.out_size);
  for (int k = 0; k < kInputs; ++k) {
    const Operand& in = operation.in[k];
    task.in[k] = in.source;
    task.in_size[k] = static_cast<std::uint8_t>(in.is_value ? 0 : in.size);
  }
  return task;
}

template <int kInputs>
PlaneTask<kInputs> MakePlane(const Operation<kInputs>& operation, Plan plan,
                             LoopFn loop_fn) {
  PlaneTask<kInputs> task;
  task.loop_fn = loop_fn;
  task.out = static_cast<char*>(operation.out);
  task.values = 0;
  task.numbers = static_cast<std::uint8_t>(plan.numbers);
  task.by_rows = plan.by_rows;
  const auto set = [](std::int32_t(&to)[2], const Shape& from, int missing) {
    const int rank = from.rank();
    to[0] = rank > 1 ? static_cast<std::int32_t>(from[0]) : missing;
    to[1] = static_cast<std::int32_t>(from[rank - 1]);
  };
  set(task.shape, operation.layout->shape, 1);
  set(task.strides[0], operation.layout->out, 0);
  task.size[0] = static_cast<std::uint8_t>(operation.out_size);
  for (int k = 0; k < kInputs; ++k) {
    const Operand& in = operation.in[k];
    set(task.strides[1 + k], *in.strides, 0);
    task.size[1 + k] = static_cast<std::uint8_t>(in.size);
    task.in[k] = in.source;
    if (in.is_value)
      task.values = static_cast<std::uint8_t>(task.values | 1 << k);
  }
  return task;
}

template <int kInputs>
StridedTask MakeStrided(const Operation<kInputs>& operation, Plan plan,
                        LoopFn loop_fn) {
  StridedTask task = {std::make_unique<StridedTask::Memory>()};
  StridedLoop& loop = task.memory->loop;
  const StridedLayout& layout = *operation.layout;
  const auto operand = [&](void* data, int size, bool number,
                           const Shape& strides) {
    StridedOperand result;
    result.data = static_cast<char*>(data);
    result.size = size;
    result.number = number;
    std::copy(strides.begin(), strides.end(), result.strides);
    return result;
  };
  loop.loop_fn = loop_fn;
  loop.by_rows = plan.by_rows;
  loop.inputs = kInputs;
  loop.rank = layout.shape.rank();
  std::copy(layout.shape.begin(), layout.shape.end(), loop.shape);
  loop.out = operand(operation.out, operation.out_size, false, layout.out);
  for (int k = 0; k < kInputs; ++k) {
    const Operand& in = operation.in[k];
    void* data = const_cast<void*>(in.source.data);
    if (in.is_value) {
      task.memory->values[k] = in.source.value;
      data = task.memory->values[k].bytes;
    }
    loop.in[k] =
        operand(data, in.size, (plan.numbers >> k & 1) != 0, *in.strides);
  }
  return task;
}

template <int kInputs>
std::uint64_t Enqueue(CpuStream& stream, const OpLabel& label,
                      const Operation<kInputs>& operation, Plan plan,
                      LoopFn loop_fn) {
  if (operation.layout == nullptr) {
    return stream.Enqueue(label, MakeContiguous(operation, loop_fn));
  }
  if (FitsPlane(operation)) {
    return stream.Enqueue(label, MakePlane(operation, plan, loop_fn));
  }
  return stream.Enqueue(label, MakeStrided(operation, plan, loop_fn));
}

// ---- Late errors.

[[noreturn]] void ThrowBadDivisor(BinaryOp op, std::int64_t divisor,
                                  std::int64_t element) {
  if (op == BinaryOp::kFloorDivide) {
    throw std::domain_error(
        absl::StrCat("division by zero at element ", element));
  }
  throw std::domain_error(absl::StrCat("negative integer exponent ", divisor,
                                       " at element ", element));
}

bool IsBadDivisor(BinaryOp op, std::int64_t divisor) {
  return op == BinaryOp::kFloorDivide ? divisor == 0 : divisor < 0;
}

// Throws if one of the n divisors is bad; the first is element `first`.
template <typename T>
void CheckRow(BinaryOp op, const T* divisors, std::int64_t stride,
              std::int64_t n, std::int64_t first) {
  // All of them without a branch, and again if there is a bad one.
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
void CheckAll(BinaryOp op, const T* divisors, const Shape& shape,
              const Shape& strides) {
  const int last = shape.rank() - 1;
  const std::int64_t cols = shape[last];
  if (cols == 0) return;
  const std::int64_t rows = shape.numel() / cols;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t offset = 0;
    std::int64_t rest = row;
    for (int d = last - 1; d >= 0; --d) {
      offset += rest % shape[d] * strides[d];
      rest /= shape[d];
    }
    CheckRow(op, divisors + offset, strides[last], cols, row * cols);
  }
}

// A task before which the divisors are looked at: afterwards one may have been
// overwritten by the result.
template <typename Task>
struct CheckedTask {
  struct Divisors {
    BinaryOp op;
    DType dtype;
    const void* data;
    Shape shape;
    Shape strides;
  };
  Task task;
  std::unique_ptr<Divisors> divisors;

  void operator()() {
    if (divisors->dtype == DType::kInt64) {
      Check<std::int64_t>();
    } else {
      Check<std::uint8_t>();
    }
    task();
  }
  template <typename T>
  void Check() const {
    CheckAll(divisors->op, static_cast<const T*>(divisors->data),
             divisors->shape, divisors->strides);
  }
};

template <typename Task>
std::uint64_t EnqueueChecked(CpuStream& stream, const OpLabel& label,
                             const BinaryArgs& args, Task task) {
  using Checked = CheckedTask<Task>;
  const bool plain = args.layout == nullptr;
  return stream.Enqueue(
      label, Checked{std::move(task),
                     std::make_unique<typename Checked::Divisors>(
                         typename Checked::Divisors{
                             args.op, args.dtype, args.b.data,
                             plain ? Shape{args.numel} : args.layout->shape,
                             plain ? Shape{1} : args.layout->in[1]})});
}

// Integers divided, or to a power, that have to be looked at.
std::uint64_t EnqueueIntegerDivision(CpuStream& stream, const OpLabel& label,
                                     const BinaryArgs& args,
                                     const Operation<2>& operation, Plan plan,
                                     LoopFn loop_fn) {
  if (args.b.data == nullptr) {
    const std::int64_t divisor = args.b.scalar.To<std::int64_t>();
    if (!IsBadDivisor(args.op, divisor)) {
      return Enqueue(stream, label, operation, plan, loop_fn);
    }
    return stream.Enqueue(label, [op = args.op, divisor, n = args.numel] {
      if (n > 0) ThrowBadDivisor(op, divisor, 0);
    });
  }
  if (operation.layout == nullptr) {
    return EnqueueChecked(stream, label, args,
                          MakeContiguous(operation, loop_fn));
  }
  if (FitsPlane(operation)) {
    return EnqueueChecked(stream, label, args,
                          MakePlane(operation, plan, loop_fn));
  }
  return EnqueueChecked(stream, label, args,
                        MakeStrided(operation, plan, loop_fn));
}

}  // namespace

std::uint64_t EnqueueFill(CpuStream& stream, const OpLabel& label,
                          const FillArgs& args) {
  Operation<1> operation = {
      args.numel,
      args.out,
      static_cast<int>(DTypeSize(args.dtype)),
      args.layout,
      {OperandOf({nullptr, args.value}, args.dtype, nullptr, 0)}};
  if (args.layout == nullptr) {
    return Enqueue(stream, label, operation, PlanFor(operation, 1),
                   FillLoop(args.dtype));
  }
  // A number's strides.
  const Shape zeros = Shape::Filled(args.layout->shape.rank(), 0);
  operation.in[0].strides = &zeros;
  const Plan plan = PlanFor(operation, 1);
  return Enqueue(stream, label, operation, plan,
                 plan.by_rows ? FillLoop(args.dtype) : nullptr);
}

std::uint64_t EnqueueArange(CpuStream& stream, const OpLabel& label,
                            const ArangeArgs& args) {
  struct Task {
    LoopFn loop_fn;
    char* out;
    std::int64_t numel;
    Value start;
    Value step;
    int size;

    void operator()() const {
      ParallelFor(numel, 1 << 15, [&](std::int64_t begin, std::int64_t end) {
        loop_fn(out + begin * size, start.bytes, step.bytes, &begin,
                end - begin);
      });
    }
  };
  const DType computed =
      IsFloatingPoint(args.dtype) ? DType::kFloat64 : DType::kInt64;
  return stream.Enqueue(
      label,
      Task{ArangeLoop(args.dtype), static_cast<char*>(args.out), args.numel,
           ValueOf(computed, args.start), ValueOf(computed, args.step),
           static_cast<int>(DTypeSize(args.dtype))});
}

std::uint64_t EnqueueCopy(CpuStream& stream, const OpLabel& label,
                          const CopyArgs& args) {
  const bool moves = args.out_dtype == args.in_dtype;
  if (moves && args.layout == nullptr) {
    const std::int64_t bytes =
        args.numel * static_cast<std::int64_t>(DTypeSize(args.out_dtype));
    return stream.Enqueue(label, [out = args.out, in = args.in, bytes] {
      if (out == in) return;
      if (bytes <= kLargeBytes) {
        std::memcpy(out, in, static_cast<std::size_t>(bytes));
      } else {
        CopyLarge(out, in, bytes);
      }
    });
  }
  const Operation<1> operation = {
      args.numel,
      args.out,
      static_cast<int>(DTypeSize(args.out_dtype)),
      args.layout,
      {ArrayOperand(args.in, args.in_dtype, args.layout, 0)}};
  return Enqueue(stream, label, operation, PlanFor(operation, 0),
                 moves ? nullptr : CopyLoop(args.out_dtype, args.in_dtype));
}

std::uint64_t EnqueueUnary(CpuStream& stream, const OpLabel& label,
                           const UnaryArgs& args) {
  const Operation<1> operation = {
      args.numel,
      args.out,
      static_cast<int>(DTypeSize(args.dtype)),
      args.layout,
      {ArrayOperand(args.in, args.dtype, args.layout, 0)}};
  return Enqueue(stream, label, operation, PlanFor(operation, 0),
                 UnaryLoop(args.op, args.dtype));
}

std::uint64_t EnqueueBinary(CpuStream& stream, const OpLabel& label,
                            const BinaryArgs& args) {
  if (args.op == BinaryOp::kPow && args.b.data == nullptr) {
    const double exponent = args.b.scalar.To<double>();
    if (exponent == 0) {
      return EnqueueFill(stream, label,
                         {args.dtype, args.numel, args.out, 1, args.layout});
    }
    if (const LoopFn loop_fn = PowerLoop(exponent, args.dtype)) {
      const Operation<1> operation = {
          args.numel,
          args.out,
          static_cast<int>(DTypeSize(args.dtype)),
          args.layout,
          {OperandOf(args.a, args.dtype, args.layout, 0)}};
      return Enqueue(stream, label, operation, PlanFor(operation, 0), loop_fn);
    }
  }
  const DType result = ResultDType(args.op, args.dtype);
  Operation<2> operation = {args.numel,
                            args.out,
                            static_cast<int>(DTypeSize(result)),
                            args.layout,
                            {OperandOf(args.a, args.dtype, args.layout, 0),
                             OperandOf(args.b, args.dtype, args.layout, 1)}};
  const BinaryOp op = WithoutGreater(args.op);
  if (op != args.op) {
    std::swap(operation.in[0], operation.in[1]);
  }
  Plan plan = PlanFor(operation, 3);
  if (plan.numbers == 1u && Commutes(op)) {
    std::swap(operation.in[0], operation.in[1]);
    plan.numbers = 2u;
  }
  const LoopFn loop_fn =
      BinaryLoop(op, args.dtype, static_cast<Operands>(plan.numbers));
  if (!IsFloatingPoint(args.dtype) &&
      (op == BinaryOp::kFloorDivide || op == BinaryOp::kPow)) {
    return EnqueueIntegerDivision(stream, label, args, operation, plan,
                                  loop_fn);
  }
  return Enqueue(stream, label, operation, plan, loop_fn);
}

std::uint64_t EnqueueWhere(CpuStream& stream, const OpLabel& label,
                           const WhereArgs& args) {
  const Operation<3> operation = {
      args.numel,
      args.out,
      static_cast<int>(DTypeSize(args.dtype)),
      args.layout,
      {ArrayOperand(args.condition, DType::kUInt8, args.layout, 0),
       OperandOf(args.a, args.dtype, args.layout, 1),
       OperandOf(args.b, args.dtype, args.layout, 2)}};
  const Plan plan = PlanFor(operation, 6);
  return Enqueue(
      stream, label, operation, plan,
      WhereLoop(args.dtype, static_cast<Operands>(plan.numbers >> 1)));
}

}  // namespace d2l::kernels::cpu
