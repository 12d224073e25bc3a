#include "common/kernels/op_tables.h"

#include <stdexcept>

#include "absl/strings/str_cat.h"

namespace d2l::kernels {

void ThrowNoLoop(const char* name, DType dtype) {
  throw std::invalid_argument(absl::StrCat(
      "[", name, "] no kernel for ", DTypeName(dtype),
      "; convert the operands, or add the dtype to the operation's row in "
      "common/kernels/op_tables.h"));
}

}  // namespace d2l::kernels
