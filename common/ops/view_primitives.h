// The primitives of views.h, for tracing, rewriting and replaying programs.
// Each makes a view of its one input, and launches nothing.
//
// Immutable values; see primitive.h.

#ifndef D2L_COMMON_OPS_VIEW_PRIMITIVES_H_
#define D2L_COMMON_OPS_VIEW_PRIMITIVES_H_

#include <cstdint>
#include <vector>

#include "common/ops/primitive.h"
#include "common/tensor/shape.h"

namespace d2l {

class ReshapePrimitive final
    : public Cloneable<ReshapePrimitive, ViewPrimitive> {
 public:
  explicit ReshapePrimitive(const Shape& shape) : shape_(shape) {}
  const char* name() const override { return "view"; }
  Spec View(const Tensor& x) const override;
  std::vector<Attribute> attributes() const override;

  // One size may be -1: whatever is left.
  const Shape& shape() const { return shape_; }

 private:
  const Shape shape_;
};

class TransposePrimitive final
    : public Cloneable<TransposePrimitive, ViewPrimitive> {
 public:
  TransposePrimitive(int dim0, int dim1) : dim0_(dim0), dim1_(dim1) {}
  const char* name() const override { return "transpose"; }
  Spec View(const Tensor& x) const override;
  std::vector<Attribute> attributes() const override;

  int dim0() const { return dim0_; }
  int dim1() const { return dim1_; }

 private:
  const int dim0_;
  const int dim1_;
};

class SlicePrimitive final : public Cloneable<SlicePrimitive, ViewPrimitive> {
 public:
  SlicePrimitive(int dim, std::int64_t start, std::int64_t end,
                 std::int64_t step)
      : dim_(dim), start_(start), end_(end), step_(step) {}
  const char* name() const override { return "slice"; }
  Spec View(const Tensor& x) const override;
  std::vector<Attribute> attributes() const override;

  int dim() const { return dim_; }
  std::int64_t start() const { return start_; }
  std::int64_t end() const { return end_; }
  std::int64_t step() const { return step_; }

 private:
  const int dim_;
  const std::int64_t start_;
  const std::int64_t end_;
  const std::int64_t step_;
};

class SelectPrimitive final : public Cloneable<SelectPrimitive, ViewPrimitive> {
 public:
  SelectPrimitive(int dim, std::int64_t index) : dim_(dim), index_(index) {}
  const char* name() const override { return "select"; }
  Spec View(const Tensor& x) const override;
  std::vector<Attribute> attributes() const override;

  int dim() const { return dim_; }
  std::int64_t index() const { return index_; }

 private:
  const int dim_;
  const std::int64_t index_;
};

class SqueezePrimitive final
    : public Cloneable<SqueezePrimitive, ViewPrimitive> {
 public:
  static constexpr int kAllDims = kMaxRank;

  explicit SqueezePrimitive(int dim) : dim_(dim) {}
  const char* name() const override { return "squeeze"; }
  Spec View(const Tensor& x) const override;
  std::vector<Attribute> attributes() const override;

  int dim() const { return dim_; }

 private:
  const int dim_;
};

class UnsqueezePrimitive final
    : public Cloneable<UnsqueezePrimitive, ViewPrimitive> {
 public:
  explicit UnsqueezePrimitive(int dim) : dim_(dim) {}
  const char* name() const override { return "unsqueeze"; }
  Spec View(const Tensor& x) const override;
  std::vector<Attribute> attributes() const override;

  int dim() const { return dim_; }

 private:
  const int dim_;
};

class ExpandPrimitive final : public Cloneable<ExpandPrimitive, ViewPrimitive> {
 public:
  explicit ExpandPrimitive(const Shape& shape) : shape_(shape) {}
  const char* name() const override { return "expand"; }
  Spec View(const Tensor& x) const override;
  std::vector<Attribute> attributes() const override;

  // -1: as in the input.
  const Shape& shape() const { return shape_; }

 private:
  const Shape shape_;
};

}  // namespace d2l

#endif  // D2L_COMMON_OPS_VIEW_PRIMITIVES_H_
