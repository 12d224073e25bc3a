// The primitives of creation.h, for tracing, rewriting and replaying programs.
//
// Immutable values; see primitive.h.

#ifndef D2L_COMMON_OPS_CREATION_PRIMITIVES_H_
#define D2L_COMMON_OPS_CREATION_PRIMITIVES_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "common/device/memory.h"
#include "common/kernels/kernels.h"
#include "common/ops/primitive.h"
#include "common/tensor/scalar.h"

namespace d2l {

// The base of all creations: a shape, a dtype and a device, but no input.
class Creation : public Primitive {
 public:
  explicit Creation(const ValueSpec& spec) : spec_(spec) {}
  const ValueSpec& spec() const { return spec_; }

  ValueSpec Infer(Inputs inputs, int) const override;
  std::vector<Attribute> attributes() const override;

 private:
  const ValueSpec spec_;
};

class EmptyPrimitive final : public Cloneable<EmptyPrimitive, Creation> {
 public:
  using Cloneable::Cloneable;

  const char* name() const override { return "empty"; }
  Effect effect() const override { return Effect::kUninitialized; }
  std::uint64_t Launch(Stream&, const OpLabel&, Inputs, Outputs) const override;
};

class FullPrimitive final : public Cloneable<FullPrimitive, Creation> {
 public:
  // name: "ones", "full", a literal.
  FullPrimitive(const char* name, const ValueSpec& spec, Scalar value)
      : Cloneable(spec), name_(name), value_(value) {}

  const char* name() const override { return name_; }
  ValueSpec Infer(Inputs inputs, int) const override;
  std::uint64_t Launch(Stream& stream, const OpLabel& label, Inputs,
                       Outputs outputs) const override;
  std::vector<Attribute> attributes() const override;

  Scalar fill_value() const { return value_; }

 private:
  const char* const name_;
  const Scalar value_;
};

class ArangePrimitive final : public Cloneable<ArangePrimitive, Creation> {
 public:
  ArangePrimitive(const ValueSpec& spec, Scalar start, Scalar step)
      : Cloneable(spec), start_(start), step_(step) {}

  const char* name() const override { return "arange"; }
  ValueSpec Infer(Inputs inputs, int) const override;
  std::uint64_t Launch(Stream& stream, const OpLabel& label, Inputs,
                       Outputs outputs) const override;
  std::vector<Attribute> attributes() const override;

  Scalar start() const { return start_; }
  Scalar step() const { return step_; }

 private:
  const Scalar start_;
  const Scalar step_;
};

class EyePrimitive final : public Cloneable<EyePrimitive, Creation> {
 public:
  using Cloneable::Cloneable;

  const char* name() const override { return "eye"; }
  ValueSpec Infer(Inputs inputs, int) const override;
  std::uint64_t Launch(Stream& stream, const OpLabel& label, Inputs,
                       Outputs outputs) const override;
};

// The copy of a staging buffer. A tracer that keeps it keeps the buffer.
class FromVectorPrimitive final
    : public Cloneable<FromVectorPrimitive, Creation> {
 public:
  FromVectorPrimitive(const ValueSpec& spec, StorageRef staging)
      : Cloneable(spec), staging_(std::move(staging)) {}

  const char* name() const override { return "from_vector"; }
  Effect effect() const override { return Effect::kHostData; }
  std::uint64_t Launch(Stream& stream, const OpLabel& label, Inputs,
                       Outputs outputs) const override;

 private:
  const StorageRef staging_;
};

class RandomPrimitive final : public Cloneable<RandomPrimitive, Creation> {
 public:
  // per_device: with one seed devices of one type draw other sequences, not the
  // same. Those of one index, as cpu:0 and cuda:0, still do.
  RandomPrimitive(kernels::RandomOp op, const ValueSpec& spec,
                  std::int64_t low = 0, std::int64_t high = 1,
                  bool per_device = false)
      : Cloneable(spec),
        op_(op),
        low_(low),
        high_(high),
        per_device_(per_device) {}

  const char* name() const override { return OpName(op_); }
  Effect effect() const override { return Effect::kRandom; }
  ValueSpec Infer(Inputs inputs, int) const override;
  std::uint64_t Launch(Stream& stream, const OpLabel& label, Inputs,
                       Outputs outputs) const override;
  std::vector<Attribute> attributes() const override;

  kernels::RandomOp op() const { return op_; }
  // Integers are from low to high - 1.
  std::int64_t low() const { return low_; }
  std::int64_t high() const { return high_; }

 private:
  const kernels::RandomOp op_;
  const std::int64_t low_;
  const std::int64_t high_;
  const bool per_device_;
};

}  // namespace d2l

#endif  // D2L_COMMON_OPS_CREATION_PRIMITIVES_H_
