#include <functional>

#include "common/device/device_table.h"
#include "common/exercise/exercise.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

namespace waits_for_all {
double SumFirst(const Tensor& x, const std::function<void()>& more) {
  const Tensor sum = Sum(x);
  more();
  Synchronize(x.device());
  return Item(sum);
}
}  // namespace waits_for_all

namespace reads_first {
double SumFirst(const Tensor& x, const std::function<void()>& more) {
  const double sum = Item(Sum(x));
  more();
  return sum;
}
}  // namespace reads_first

namespace asks_last {
double SumFirst(const Tensor& x, const std::function<void()>& more) {
  more();
  return Item(Sum(x));
}
}  // namespace asks_last

D2L_MISTAKE("wait_for_less", waits_for_all, SumFirst,
            "came when the other work was done");
D2L_MISTAKE("wait_for_less", reads_first, SumFirst,
            "a wait before more() was called");
D2L_MISTAKE("wait_for_less", asks_last, SumFirst, "behind the other work");

}  // namespace
}  // namespace d2l
