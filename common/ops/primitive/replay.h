// Replay requests a recorded operation again; MakePrimitive makes a primitive
// from its text.
//
//   class Calls : public OpListener {
//    public:
//     void OnOp(const OpRecord& record) override {
//       calls.push_back(ToCall(record));
//     }
//     std::vector<OpCall> calls;
//   };
//   Calls made;
//   {
//     ScopedOpListener listen(&made);
//     Tensor z = x * y;
//   }
//   Tensor same = Replay(made.calls[0], {&x, &y});
//
// Replay takes every kind of operation: plain, view, in place, empty.
// Thread-safety: as for Apply.
//
//   std::unique_ptr<Primitive> add =
//       MakePrimitive("add", {{"second", "2"}}).value();
//   Tensor y = Apply(*add, {&x}, SourceLocation::Current());
//
// The text may be untrusted: the attributes are checked here, and against the
// inputs by Infer.

#ifndef D2L_COMMON_OPS_PRIMITIVE_REPLAY_H_
#define D2L_COMMON_OPS_PRIMITIVE_REPLAY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/source_location.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/record.h"
#include "common/tensor/tensor.h"

namespace d2l {

// An operation without its operands. A value; copies share the primitive.
struct OpCall {
  std::shared_ptr<const Primitive> primitive;
  bool in_place = false;
  // The lines that messages name.
  SourceLocation requested_at;
  SourceLocation requested_by;
};

OpCall ToCall(const OpRecord& record);

// Whether the operation makes a view of its input.
bool IsView(const Primitive& primitive);

// Requests the operation with other operands and returns its output, which is
// `target` if it is in place. A random operation draws new numbers. Throws as
// Apply does, and std::invalid_argument for inputs that do not match.
Tensor Replay(const OpCall& call, Inputs inputs, const Tensor& target = {});

// The primitive whose name() and attributes() these are, in any order. Errors:
// NotFound for an unknown name, InvalidArgument for attributes that are
// missing, unknown, given twice or not of their type, Unimplemented for
// "from_vector", whose numbers no attribute holds.
absl::StatusOr<std::unique_ptr<Primitive>> MakePrimitive(
    const std::string& name, const std::vector<Attribute>& attributes);

}  // namespace d2l

#endif  // D2L_COMMON_OPS_PRIMITIVE_REPLAY_H_
