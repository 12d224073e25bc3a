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

// The products are made on the first device, and then spread.
namespace results_only {
std::vector<Tensor> SquareAll(const std::vector<Tensor>& xs,
                              const std::vector<Device>& devices) {
  std::vector<Tensor> squares;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    squares.push_back(To(MatMul(xs[i], xs[i]), devices[i % devices.size()]));
  }
  return squares;
}
}  // namespace results_only

namespace by_elements {
std::vector<Tensor> SquareAll(const std::vector<Tensor>& xs,
                              const std::vector<Device>& devices) {
  std::vector<Tensor> squares;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const Tensor x = To(xs[i], devices[i % devices.size()]);
    squares.push_back(x * x);
  }
  return squares;
}
}  // namespace by_elements

// Right with two devices.
namespace first_and_last {
std::vector<Tensor> SquareAll(const std::vector<Tensor>& xs,
                              const std::vector<Device>& devices) {
  std::vector<Tensor> squares;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const Tensor x = To(xs[i], i % 2 == 0 ? devices.front() : devices.back());
    squares.push_back(MatMul(x, x));
  }
  return squares;
}
}  // namespace first_and_last

namespace through_the_host {
std::vector<Tensor> SquareAll(const std::vector<Tensor>& xs,
                              const std::vector<Device>& devices) {
  std::vector<Tensor> squares;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const Tensor x = FromVector(ToVector<float>(xs[i]), xs[i].shape(),
                                devices[i % devices.size()]);
    squares.push_back(MatMul(x, x));
  }
  return squares;
}
}  // namespace through_the_host

namespace brings_them_back {
std::vector<Tensor> SquareAll(const std::vector<Tensor>& xs,
                              const std::vector<Device>& devices) {
  std::vector<Tensor> squares;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const Tensor x = To(xs[i], devices[i % devices.size()]);
    squares.push_back(To(MatMul(x, x), devices[0]));
  }
  return squares;
}
}  // namespace brings_them_back

// Takes one of the results.
namespace on_each_device {
std::vector<Tensor> SquareAll(const std::vector<Tensor>& xs,
                              const std::vector<Device>& devices) {
  std::vector<Tensor> squares;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    std::vector<Tensor> all;
    for (const Device device : devices) {
      const Tensor x = To(xs[i], device);
      all.push_back(MatMul(x, x));
    }
    squares.push_back(all[i % devices.size()]);
  }
  return squares;
}
}  // namespace on_each_device

D2L_MISTAKE("eight_operations", where_the_operands_are, SquareAll,
            "An operation runs where its operands are");
D2L_MISTAKE("eight_operations", waits_for_each, SquareAll,
            "A caller that waits for one device cannot enqueue work");
D2L_MISTAKE("eight_operations", leaves_the_rest_out, SquareAll,
            "need not divide evenly");
D2L_MISTAKE("eight_operations", results_only, SquareAll, "spreads the results");
D2L_MISTAKE("eight_operations", by_elements, SquareAll, "not x * x");
D2L_MISTAKE("eight_operations", first_and_last, SquareAll,
            "Take all devices in turn");
D2L_MISTAKE("eight_operations", through_the_host, SquareAll,
            "by way of the host");
D2L_MISTAKE("eight_operations", brings_them_back, SquareAll,
            "Leave each result");
D2L_MISTAKE("eight_operations", on_each_device, SquareAll,
            "Make each product once");

}  // namespace
}  // namespace d2l
