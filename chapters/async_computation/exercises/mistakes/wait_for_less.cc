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

namespace calls_it_twice {
double SumFirst(const Tensor& x, const std::function<void()>& more) {
  const Tensor sum = Sum(x);
  more();
  const double got = Item(sum);
  more();
  return got;
}
}  // namespace calls_it_twice

namespace does_not_wait {
// The device's memory is the host's here: what is read is the sum, or what was
// there before.
double SumFirst(const Tensor& x, const std::function<void()>& more) {
  const Tensor sum = Sum(x);
  more();
  return *static_cast<const float*>(sum.data());
}
}  // namespace does_not_wait

namespace mean_times_count {
double SumFirst(const Tensor& x, const std::function<void()>& more) {
  const Tensor mean = Mean(x);
  more();
  return Item(mean) * static_cast<double>(x.numel());
}
}  // namespace mean_times_count

D2L_MISTAKE("wait_for_less", waits_for_all, SumFirst,
            "after the other work was done");
D2L_MISTAKE("wait_for_less", reads_first, SumFirst,
            "a wait before more() was called");
D2L_MISTAKE("wait_for_less", asks_last, SumFirst, "behind the other work");
D2L_MISTAKE("wait_for_less", calls_it_twice, SumFirst, "calls of more()");
D2L_MISTAKE("wait_for_less", does_not_wait, SumFirst,
            "a number that was read without a wait");
D2L_MISTAKE("wait_for_less", mean_times_count, SumFirst,
            "The sum of no elements is 0");

}  // namespace
}  // namespace d2l
