// Primitive: an operation as a thing (JAX's and MLX's word), and Apply, the
// only door through which one is requested.
//
//   Tensor c = Apply(MatMulPrimitive(), {&a, &b}, at);
//
// Apply checks, allocates the output, launches the kernel on the current
// stream of the device, and hands an OpRecord to whoever listens. It returns
// when the operation has been enqueued, not when it is done.
//
// A primitive is a small immutable value, made on the stack for each request;
// a tracer keeps a Clone. Adding one means a subclass with its shape
// inference and launch, a kernel per back end, and tests.
//
// Errors: what can be known at the call (shapes, dtypes, devices) is thrown
// by the call, as std::invalid_argument that names the operation; so is
// AsyncError for an input that a failed operation should have written. What
// goes wrong on the device surfaces later, where somebody waits, and names
// the line `at`.

#ifndef D2L_COMMON_OPS_PRIMITIVE_H_
#define D2L_COMMON_OPS_PRIMITIVE_H_

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "common/base/source_location.h"
#include "common/device/device.h"
#include "common/device/op_label.h"
#include "common/device/stream.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"
#include "common/tensor/tensor.h"

namespace d2l {

// What an operation will make.
struct ValueSpec {
  Shape shape;
  DType dtype = DType::kFloat32;
  Device device;
};

// A parameter of an operation that is not a tensor: {"scalar", "2"}.
using Attribute = std::pair<std::string, std::string>;

// The inputs; all defined, all on one device.
using Inputs = absl::Span<const Tensor* const>;

class Primitive {
 public:
  virtual ~Primitive() = default;

  // PyTorch's name of the function: "add". A string literal.
  virtual const char* name() const = 0;
  // Throws std::invalid_argument if the inputs do not go together.
  virtual ValueSpec Infer(Inputs inputs) const = 0;
  // Enqueues the work that fills `output`, a contiguous tensor as inferred,
  // and returns its number in the stream.
  virtual std::uint64_t Launch(Stream& stream, const OpLabel& label,
                               Inputs inputs, const Tensor& output) const = 0;
  virtual std::vector<Attribute> attributes() const { return {}; }
  virtual std::unique_ptr<Primitive> Clone() const = 0;
};

// Requests the operation and returns its output.
Tensor Apply(const Primitive& primitive,
             std::initializer_list<const Tensor*> inputs, SourceLocation at);

// Requests the operation with `target` as its output, which may be one of the
// inputs. Throws std::invalid_argument if the result has another shape, dtype
// or device.
void ApplyInPlace(const Primitive& primitive,
                  std::initializer_list<const Tensor*> inputs, Tensor& target,
                  SourceLocation at);

}  // namespace d2l

#endif  // D2L_COMMON_OPS_PRIMITIVE_H_
