// Primitive: an operation as an object (JAX's and MLX's term), and Apply, which
// requests one.
//
//   Tensor c = Apply(MatMulPrimitive(), {&a, &b}, at);
//
// Apply checks, allocates the output, launches the kernel on the current stream
// of the device, and passes an OpRecord to the listeners. It returns when the
// operation has been enqueued, not when it is done.
//
// A primitive is a small immutable value, made on the stack for each request; a
// tracer keeps a Clone. They are public, with their fields: primitives.h,
// nn/primitives.h. attributes() returns all of its fields as text, and
// MakePrimitive (replay.h) makes a primitive from that. Adding one means a
// subclass with its fields, shape inference, launch and cost, a kernel per back
// end, a line in replay.cc, and tests.
//
// Errors: the call throws std::invalid_argument, naming the operation, for
// invalid shapes, dtypes and devices, and AsyncError for an input that a failed
// operation should have written, once that failure has been reported (Stream).
// Errors on the device surface in a later wait and name the line `at`.

#ifndef D2L_COMMON_OPS_PRIMITIVE_PRIMITIVE_H_
#define D2L_COMMON_OPS_PRIMITIVE_PRIMITIVE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
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

// The shape, dtype and device of an output.
struct ValueSpec {
  Shape shape;
  DType dtype = DType::kFloat32;
  Device device;
};

// A parameter of an operation that is not a tensor: {"scalar", "2"}.
using Attribute = std::pair<std::string, std::string>;

// The inputs; all defined, all on one device.
using Inputs = absl::Span<const Tensor* const>;

// The least work that an operation needs, whatever its kernel does. Its rules
// are in cost.cc; an element-wise operation's count is in its row of
// kernels/op_tables.h.
//
// flop: additions, multiplications, divisions and comparisons, one each; so a
// multiplication and an addition are two. Functions such as exp count as their
// definitions in math.h do for float32, which all back ends follow bit by bit.
// Work done once for a row or a channel is not counted, nor are conversions and
// integer arithmetic, except the multiplications that random numbers are made
// of: creations and copies have none. A convolution's count is that of its
// definition, padding included.
// avoidable_flop: the part of `flop` that Winograd's algorithm avoids
// (kernels/cpu/nn/convolution.h), which bounds leave out.
// bytes: the bytes of device memory that are read and written, each once: one
// element for an expanded dimension, only the elements it takes for an index.
// written: the part of `bytes` that is overwritten without having been read.
struct OpCost {
  std::int64_t flop = 0;
  std::int64_t bytes = 0;
  std::int64_t written = 0;
  std::int64_t avoidable_flop = 0;

  std::int64_t least_flop() const { return flop - avoidable_flop; }
  OpCost& operator+=(const OpCost& more) {
    flop += more.flop;
    bytes += more.bytes;
    written += more.written;
    avoidable_flop += more.avoidable_flop;
    return *this;
  }
};

// The arguments of a launch.
struct LaunchContext {
  Stream& stream;
  const OpLabel& label;
  Inputs inputs;
  const Tensor& output;  // contiguous and as inferred, or, in place, the target
};

// The effect of a primitive, for compilers of programs.
enum class Effect {
  kPure,           // its output is a function of its inputs
  kRandom,         // it advances the generator of its device
  kHostData,       // it holds numbers of the host's, which no text describes
  kUninitialized,  // it leaves its output as it was
  kInPlace,  // it has a target: use ApplyInPlace. (Other primitives may be
             // applied in place too.)
};

class Fields;

class Primitive {
 public:
  virtual ~Primitive() = default;

  // PyTorch's name of the function: "add". A string literal.
  virtual const char* name() const = 0;
  virtual Effect effect() const { return Effect::kPure; }
  // What the output will be. Throws std::invalid_argument for invalid inputs,
  // and checks all that Launch relies on: loaded programs are untrusted.
  virtual ValueSpec Infer(Inputs inputs) const = 0;
  // Enqueues the work that fills the output, and returns its number in the
  // stream.
  virtual std::uint64_t Launch(const LaunchContext& ctx) const = 0;
  // The cost of computing `output`, which is an input if in place. By default
  // the bytes moved, without arithmetic.
  virtual OpCost Cost(Inputs inputs, const Tensor& output) const;
  // Whether its kernels may report an error in the elements of the inputs, such
  // as an index out of range: a compiler of programs then keeps it, and its
  // error, even if its output is unused. dtype: of the first input.
  virtual bool MayFailLate(DType) const { return false; }
  // Whether it reads the elements of an input.
  virtual bool ReadsInput(int) const { return true; }
  // The inputs from this number on are written in place, besides the output.
  virtual std::size_t first_written_input() const { return SIZE_MAX; }
  // Passes each of its fields by name to Fields, which writes it or, for a new
  // primitive, reads it (fields.h). Only the host's data is left out.
  virtual void Visit(Fields&) {}
  virtual std::unique_ptr<Primitive> Clone() const = 0;

  // Those of its inputs.
  Inputs WrittenInputs(Inputs inputs) const {
    return inputs.subspan(std::min(first_written_input(), inputs.size()));
  }
  // The fields of the primitive as text, exactly.
  std::vector<Attribute> attributes() const;
};

// Gives a primitive its Clone: class Negate final : public Cloneable<Negate>.
template <typename Derived, typename Base = Primitive>
class Cloneable : public Base {
 public:
  using Base::Base;
  std::unique_ptr<Primitive> Clone() const final {
    return std::make_unique<Derived>(static_cast<const Derived&>(*this));
  }
};

// A view of its one input: it launches nothing.
class ViewPrimitive : public Primitive {
 public:
  // Where the view's elements are, as in Tensor::View.
  struct Spec {
    std::int64_t offset;
    Shape shape;
    Shape strides;
  };
  // Throws std::invalid_argument if there is no such view.
  virtual Spec View(const Tensor& x) const = 0;

  ValueSpec Infer(Inputs inputs) const final;
  std::uint64_t Launch(const LaunchContext&) const final;
  OpCost Cost(Inputs, const Tensor&) const final { return {}; }
};

// Requests the operation and returns its output.
Tensor Apply(const Primitive& primitive, Inputs inputs, SourceLocation at);

// Requests the operation with `target` as its output, which may be one of the
// inputs. Throws std::invalid_argument if the result has another shape, dtype
// or device, if several elements of the target share memory, or if an input is
// known to overlap the target without being the same view of it.
//
// The caller copies an input that may overlap (OverlapOf).
void ApplyInPlace(const Primitive& primitive, Inputs inputs,
                  const Tensor& target, SourceLocation at);

// Requests `count` operations, each in place of the first of its inputs, as one
// launch. `inputs` are those of each, one after the other; but for its own
// operation, a target must not overlap any. For primitives whose Launch knows
// several: AxpbyPrimitive.
void ApplyEachInPlace(const Primitive& primitive, Inputs inputs,
                      std::size_t count, SourceLocation at);

// Makes the view: as cheap as copying a handle.
Tensor ApplyView(const ViewPrimitive& primitive, const Tensor& x,
                 SourceLocation at);

// An uninitialized tensor (torch.empty): only allocates.
Tensor ApplyEmpty(const Primitive& primitive, SourceLocation at);

namespace internal {
[[noreturn]] void RethrowWithLine(const std::invalid_argument& error,
                                  SourceLocation at);
}  // namespace internal

// Calls `check`, and adds the line of the request to a std::invalid_argument
// that it throws.
template <typename F>
decltype(auto) WithLine(SourceLocation at, const F& check) {
  try {
    return check();
  } catch (const std::invalid_argument& error) {
    internal::RethrowWithLine(error, at);
  }
}

// Throws std::invalid_argument, naming the operation and the line.
void CheckDefined(const char* operation, const Tensor& x, SourceLocation at);
// The same, and that all are on one device.
void CheckInputs(const char* operation, Inputs inputs, SourceLocation at);

// Garbage never looks like a result: before and after enqueueing work on
// `stream` that uses the values of x, calls CheckResult for what wrote them.
inline void CheckReadable(const Tensor& x, Stream& stream,
                          const char* operation, SourceLocation at) {
  const Storage& storage = *x.storage();
  Stream* const writer = storage.writer();
  if (writer == nullptr || !writer->ever_failed()) return;
  CheckResult(*writer, storage.written_by(), stream, operation, at);
}

// Throws std::invalid_argument if x is neither float32 nor float64.
void CheckFloatingPoint(const char* operation, const Tensor& x);
// Throws std::invalid_argument if the number of inputs differs.
void CheckInputCount(const char* operation, Inputs inputs, std::size_t count);
// Throws std::invalid_argument, for primitives whose kernels need it; the
// functions for users copy first.
void CheckContiguous(const char* operation, const Tensor& x);

// Whether two views of one memory have elements in common, unless they are
// the same view, element for element.
enum class Overlap { kNone, kPossible, kCertain };
Overlap OverlapOf(const Tensor& a, const Tensor& b);
bool IsSameView(const Tensor& a, const Tensor& b);

}  // namespace d2l

#endif  // D2L_COMMON_OPS_PRIMITIVE_PRIMITIVE_H_
