#include "common/graph/strips.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "common/device/cpu/parallel_for.h"
#include "common/kernels/cpu/strided_copy.h"
#include "common/ops/primitive/primitives.h"

namespace d2l::ir {

namespace cpu = kernels::cpu;
using kernels::BinaryOp;

namespace {

// As in kernels/cpu/elementwise_run.cc.
constexpr std::int64_t kGrain = 1 << 15;
constexpr std::int64_t kStreamBytes = 6 << 20;

constexpr std::int64_t kSlotBytes = Strips::kElements * 8;
// The stack has room for this many slots.
constexpr int kStackSlots = 8;

}  // namespace

// Finds the loops, and slots for values inside the region.
class Strips::Builder {
 public:
  Builder(const Function& body, Strips& strips) : body_(body), to_(strips) {
    shape_ = body_.type(body_.nodes[0].outputs[0]).shape();
    to_.numel_ = shape_.numel();
    for (const ValueId value : body_.arguments) {
      memory_of_[value] = to_.arguments_++;
    }
    for (const ValueId value : body_.returns) {
      memory_of_[value] = static_cast<int>(memory_of_.size());
      to_.result_sizes_.push_back(SizeOf(value));
    }
  }

  // The memory that is passed to compiled code.
  void BuildMemory() {
    for (const ValueId value : body_.arguments) {
      to_.memory_.push_back(Use(value, true));
    }
    for (const ValueId value : body_.returns) {
      to_.memory_.push_back(Define(value));
    }
  }

  void Build() {
    for (std::size_t i = 0; i < body_.nodes.size(); ++i) {
      for (const ValueId value : body_.nodes[i].inputs) {
        last_use_[value] = static_cast<int>(i);
      }
    }
    for (std::size_t i = 0; i < body_.nodes.size(); ++i) {
      const Node& node = body_.nodes[i];
      Step step = StepOf(node);
      step.out = Define(node.outputs[0]);
      to_.steps_.push_back(step);
      for (const ValueId value : node.inputs) {
        // The slot is freed only now, so that the loop's result has another:
        // with elements of another size it could not use this one.
        const auto slot = slot_of_.find(value);
        if (slot == slot_of_.end() || last_use_[value] != static_cast<int>(i)) {
          continue;
        }
        free_.push_back(slot->second);
        slot_of_.erase(slot);
      }
    }
  }

 private:
  int SizeOf(ValueId value) const {
    return static_cast<int>(DTypeSize(body_.type(value).dtype()));
  }

  Ref MakeRef(Ref::Kind kind, int index, ValueId value) const {
    return {kind, index, SizeOf(value)};
  }

  int NewSlot() {
    if (free_.empty()) return to_.slots_++;
    const int slot = free_.back();
    free_.pop_back();
    return slot;
  }

  Ref Define(ValueId value) {
    const auto memory = memory_of_.find(value);
    if (memory != memory_of_.end()) {
      return MakeRef(Ref::kEach, memory->second, value);
    }
    slot_of_[value] = NewSlot();
    return MakeRef(Ref::kSlot, slot_of_[value], value);
  }

  // `scalar` says that there is a loop that takes the value as one number.
  Ref Use(ValueId value, bool scalar) {
    const auto slot = slot_of_.find(value);
    if (slot != slot_of_.end()) return MakeRef(Ref::kSlot, slot->second, value);
    const int memory = memory_of_.at(value);
    const Tensor& type = body_.type(value);
    const Steps steps = StepsOf(type, shape_);
    if (steps == Steps::kEach) return MakeRef(Ref::kEach, memory, value);
    if (steps == Steps::kOne && scalar) {
      return MakeRef(Ref::kOne, memory, value);
    }
    for (const Row& row : to_.rows_) {
      if (row.index == memory) return MakeRef(Ref::kSlot, row.slot, value);
    }
    // Keeps the row for the whole strip.
    to_.rows_.push_back({memory, to_.slots_++, SizeOf(value), type.numel()});
    return MakeRef(Ref::kSlot, to_.rows_.back().slot, value);
  }

  Ref UseNumber(Scalar scalar, DType dtype) {
    Number number = {};
    VisitDType(dtype, [&](auto zero) {
      const auto value = scalar.To<decltype(zero)>();
      std::memcpy(number.bytes, &value, sizeof(value));
    });
    to_.numbers_.push_back(number);
    Ref ref;
    ref.kind = Ref::kNumber;
    ref.index = static_cast<int>(to_.numbers_.size()) - 1;
    return ref;
  }

  static bool IsScalar(const Ref& ref) {
    return ref.kind == Ref::kOne || ref.kind == Ref::kNumber;
  }

  Step StepOf(const Node& node) {
    const Primitive* const primitive = node.op.primitive.get();
    const DType result = body_.type(node.outputs[0]).dtype();
    const DType dtype = body_.type(node.inputs[0]).dtype();
    Step step = {};
    if (const auto* unary = dynamic_cast<const UnaryPrimitive*>(primitive)) {
      step.in[0] = Use(node.inputs[0], false);
      step.loop = cpu::UnaryLoop(unary->op, dtype);
    } else if (const auto* binary =
                   dynamic_cast<const BinaryPrimitive*>(primitive)) {
      BuildBinary(*binary, node, dtype, step);
    } else if (const auto* where =
                   dynamic_cast<const WherePrimitive*>(primitive)) {
      std::size_t next = 0;
      step.in[0] = Use(node.inputs[next++], false);
      step.in[1] = where->a.has_value() ? UseNumber(*where->a, result)
                                        : Use(node.inputs[next++], true);
      step.in[2] = where->b.has_value() ? UseNumber(*where->b, result)
                                        : Use(node.inputs[next++], true);
      step.loop = cpu::WhereLoop(
          result, cpu::OperandsOf(IsScalar(step.in[1]), IsScalar(step.in[2])));
    } else {  // a CopyPrimitive
      step.in[0] = Use(node.inputs[0], false);
      step.loop = cpu::CopyLoop(result, dtype);
    }
    return step;
  }

  // Chooses the loop as Enqueue of BinaryArgs does
  // (kernels/cpu/elementwise.cc).
  void BuildBinary(const BinaryPrimitive& binary, const Node& node, DType dtype,
                   Step& step) {
    using Which = BinaryPrimitive::Which;
    Ref a, b;
    if (binary.which == Which::kNone) {
      // There is no loop for two scalars: then the first is treated as a row.
      const bool b_is_one =
          StepsOf(body_.type(node.inputs[1]), shape_) == Steps::kOne;
      a = Use(node.inputs[0], !b_is_one);
      b = Use(node.inputs[1], true);
    } else {
      a = Use(node.inputs[0], false);
      b = UseNumber(binary.scalar, dtype);
      if (binary.which == Which::kFirst) std::swap(a, b);
    }
    const BinaryOp op = kernels::WithoutGreater(binary.op);
    if (op != binary.op) std::swap(a, b);
    if (IsScalar(a) && kernels::Commutes(op)) std::swap(a, b);
    step.in[0] = a;
    step.in[1] = b;
    step.loop =
        cpu::BinaryLoop(op, dtype, cpu::OperandsOf(IsScalar(a), IsScalar(b)));
  }

  const Function& body_;
  Strips& to_;
  Shape shape_;
  std::map<ValueId, int> memory_of_;  // arguments and results
  std::map<ValueId, int> slot_of_;
  std::map<ValueId, int> last_use_;
  std::vector<int> free_;  // slots
};

Strips::Strips(const Function& body) { Builder(body, *this).Build(); }

Strips::Strips(const Function& body, RegionFn region,
               std::vector<kernels::cpu::LoopFn> loops)
    : region_(region), loops_(std::move(loops)) {
  Builder(body, *this).BuildMemory();
}

void Strips::Run(absl::Span<void* const> memory) const {
  bool stream = false;
  for (std::size_t i = 0; i < result_sizes_.size(); ++i) {
    stream = stream || numel_ * result_sizes_[i] >= kStreamBytes;
  }
  // Memory that has just been read is in a cache already.
  for (int i = arguments_; i < static_cast<int>(memory.size()); ++i) {
    for (int k = 0; k < arguments_; ++k) {
      stream = stream && memory[i] != memory[k];
    }
  }
  ParallelFor(numel_, kGrain, [&](std::int64_t begin, std::int64_t end) {
    RunPart(memory, stream, begin, end);
  });
}

void Strips::RunPart(absl::Span<void* const> memory, bool stream,
                     std::int64_t begin, std::int64_t end) const {
  alignas(64) char on_stack[kStackSlots * kSlotBytes];
  // Streamed results are first computed in slots of their own.
  const int results = static_cast<int>(result_sizes_.size());
  const int slots = slots_ + (stream ? results : 0);
  std::unique_ptr<char[]> on_heap;
  if (slots > kStackSlots) on_heap.reset(new char[slots * kSlotBytes]);
  char* const scratch = on_heap != nullptr ? on_heap.get() : on_stack;

  // The addresses of memory[index] for this strip.
  const int count = static_cast<int>(memory.size());
  absl::InlinedVector<char*, 16> base(count);
  for (int i = 0; i < count; ++i) base[i] = static_cast<char*>(memory[i]);
  absl::InlinedVector<void*, 16> at(count);
  const auto address = [&](const Ref& ref, std::int64_t first) -> char* {
    switch (ref.kind) {
      case Ref::kEach:
        if (stream && ref.index >= arguments_) {
          return scratch + (slots_ + ref.index - arguments_) * kSlotBytes;
        }
        return base[ref.index] + first * ref.size;
      case Ref::kOne:
        return base[ref.index];
      case Ref::kSlot:
        return scratch + ref.index * kSlotBytes;
      case Ref::kNumber:
        // A loop does not write to its operands.
        return const_cast<char*>(
            reinterpret_cast<const char*>(numbers_[ref.index].bytes));
      case Ref::kNone:
        break;
    }
    return nullptr;
  };

  for (std::int64_t first = begin; first < end; first += kElements) {
    const std::int64_t n = std::min(kElements, end - first);
    for (const Row& row : rows_) {
      // Parts begin where strips do, so the first strip's copy is good for all.
      if (kElements % row.period == 0 && first != begin) continue;
      char* to = scratch + row.slot * kSlotBytes;
      std::int64_t column = first % row.period;
      for (std::int64_t left = n; left > 0;) {
        const std::int64_t run = std::min(left, row.period - column);
        std::memcpy(to, base[row.index] + column * row.size,
                    static_cast<std::size_t>(run * row.size));
        to += run * row.size;
        left -= run;
        column = 0;
      }
    }
    if (region_ != nullptr) {
      for (int i = 0; i < count; ++i) at[i] = address(memory_[i], first);
      region_(at.data(), loops_.data(), n);
    }
    for (const Step& step : steps_) {
      step.loop(address(step.out, first), address(step.in[0], first),
                address(step.in[1], first), address(step.in[2], first), n);
    }
    if (!stream) continue;
    for (int i = 0; i < results; ++i) {
      const std::int64_t size = result_sizes_[i];
      cpu::StreamBytes(base[arguments_ + i] + first * size,
                       scratch + (slots_ + i) * kSlotBytes,
                       static_cast<std::size_t>(n * size));
    }
  }
  if (stream) cpu::FinishStream();
}

}  // namespace d2l::ir
