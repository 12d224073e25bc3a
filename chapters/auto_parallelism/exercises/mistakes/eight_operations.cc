#include <cstddef>
#include <vector>

#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/exercise/exercise.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

// A guard of a stream of the other device moves nothing.
namespace where_the_operands_are {
std::vector<Tensor> SquareAll(const std::vector<Tensor>& xs,
                              const std::vector<Device>& devices) {
  std::vector<Tensor> squares;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const StreamGuard guard(DefaultStream(devices[i % devices.size()]));
    squares.push_back(MatMul(xs[i], xs[i]));
  }
  return squares;
}
}  // namespace where_the_operands_are

namespace waits_for_each {
std::vector<Tensor> SquareAll(const std::vector<Tensor>& xs,
                              const std::vector<Device>& devices) {
  std::vector<Tensor> squares;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const Device device = devices[i % devices.size()];
    const Tensor x = To(xs[i], device);
    squares.push_back(MatMul(x, x));
    Synchronize(device);
  }
  return squares;
}
}  // namespace waits_for_each

namespace leaves_the_rest_out {
std::vector<Tensor> SquareAll(const std::vector<Tensor>& xs,
                              const std::vector<Device>& devices) {
  std::vector<Tensor> squares;
  const std::size_t each = xs.size() / devices.size();
  for (std::size_t i = 0; i < each * devices.size(); ++i) {
    const Tensor x = To(xs[i], devices[i / each]);
    squares.push_back(MatMul(x, x));
  }
  return squares;
}
}  // namespace leaves_the_rest_out

D2L_MISTAKE("eight_operations", where_the_operands_are, SquareAll,
            "An operation runs where its operands are");
D2L_MISTAKE("eight_operations", waits_for_each, SquareAll,
            "A caller that waits for one device cannot ask the other");
D2L_MISTAKE("eight_operations", leaves_the_rest_out, SquareAll,
            "need not divide evenly");

}  // namespace
}  // namespace d2l
