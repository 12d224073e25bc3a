#include "common/device/device_table.h"
#include "common/exercise/exercise.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

namespace adds_nothing {
Tensor PlusOne(const Tensor& x) { return x + 0; }
}  // namespace adds_nothing

namespace makes_a_tensor_of_ones {
Tensor PlusOne(const Tensor& x) { return x + Ones(x.shape(), x.device()); }
}  // namespace makes_a_tensor_of_ones

namespace waits {
Tensor PlusOne(const Tensor& x) {
  const Tensor y = x + 1;
  Synchronize(x.device());
  return y;
}
}  // namespace waits

D2L_MISTAKE("plus_one", adds_nothing, PlusOne, "Each element is one more");
D2L_MISTAKE("plus_one", makes_a_tensor_of_ones, PlusOne, "2 operations");
D2L_MISTAKE("plus_one", waits, PlusOne, "a wait for the device");

}  // namespace
}  // namespace d2l
