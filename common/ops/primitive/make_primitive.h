// MakePrimitive: makes a primitive from its name and attributes.
//
//   std::unique_ptr<Primitive> add =
//       MakePrimitive("add", {{"second", "2"}}).value();
//   Tensor y = Apply(*add, {&x}, SourceLocation::Current());
//
// For loaders of programs. The text may be untrusted: the attributes are
// checked here, and against the inputs by Infer.

#ifndef D2L_COMMON_OPS_PRIMITIVE_MAKE_PRIMITIVE_H_
#define D2L_COMMON_OPS_PRIMITIVE_MAKE_PRIMITIVE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ops/primitive/primitive.h"

namespace d2l {

// The primitive whose name() and attributes() these are, in any order. Errors:
// NotFound for an unknown name, InvalidArgument for attributes that are
// missing, unknown, given twice or not of their type, Unimplemented for
// "from_vector", whose numbers no attribute holds.
absl::StatusOr<std::unique_ptr<Primitive>> MakePrimitive(
    const std::string& name, const std::vector<Attribute>& attributes);

}  // namespace d2l

#endif  // D2L_COMMON_OPS_PRIMITIVE_MAKE_PRIMITIVE_H_
