// Judges eight_operations: are all products there, made on all devices alike,
// and enqueued without a wait? Then, how much faster than one device?

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chapters/auto_parallelism/exercises/judges/square.h"
#include "common/base/console/language.h"
#include "common/base/timer.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/exercise/exercise.h"
#include "common/exercise/probes.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/record.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

using SquareAll = std::vector<Tensor>(const std::vector<Tensor>& xs,
                                      const std::vector<Device>& devices);

// The devices on which this thread's products are made, while it lives.
class Products : private OpListener {
 public:
  std::vector<Device> made_on;

 private:
  void OnOp(const OpRecord& record) override {
    if (std::string_view(record.primitive->name()) != "matmul") return;
    made_on.push_back(record.stream->device());
  }

  const ScopedOpListener listen_{this};
};

// The most and the fewest products that one of the devices has.
std::pair<int, int> MostAndLeast(const std::vector<Device>& have,
                                 const std::vector<Device>& devices) {
  int most = 0, least = static_cast<int>(have.size());
  for (const Device device : devices) {
    const auto products =
        static_cast<int>(std::count(have.begin(), have.end(), device));
    most = std::max(most, products);
    least = std::min(least, products);
  }
  return {most, least};
}

void JudgeOne(const Judging& judging, SquareAll* answer,
              const std::vector<Device>& devices, int count, std::int64_t n) {
  std::vector<Tensor> xs;
  std::vector<std::vector<float>> expected;
  for (int i = 0; i < count; ++i) {
    const std::vector<float> numbers = RandomNumbers(n * n, i);
    xs.push_back(FromVector(numbers, {n, n}, devices[0]));
    expected.push_back(Square(numbers, n));
  }
  const std::string input =
      Say("%d matrices of %d x %d, %d devices", count, n, n, devices.size());
  std::list<Gate> gates;
  for (const Device device : devices) gates.emplace_back(CurrentStream(device));
  const Products products;
  const Requests asked;
  const std::vector<Tensor> squares = answer(xs, devices);
  const int reads = asked.reads;
  bool waited = false;
  for (Gate& gate : gates) {
    waited = waited || gate.TimedOut();
    gate.Open();
  }
  if (squares.size() != xs.size()) {
    judging.Wrong({input, Say("%d results", squares.size()),
                   Say("%d results", count),
                   "The number of matrices need not divide evenly among the "
                   "devices; leave none out."});
  }
  if (waited) {
    judging.Wrong({input, "the call waited for a device", "no wait",
                   "A caller that waits for one device cannot enqueue work on "
                   "the other one."});
  }
  if (reads > 0) {
    judging.Wrong({input, Say("%d matrices read to the host", reads), "none",
                   "ToVector takes the numbers by way of the host, and waits "
                   "until they are computed. To(x, device) copies from one "
                   "device to another, and does not wait."});
  }
  for (int i = 0; i < count; ++i) {
    judging.ExpectClose(
        input, ToVector<float>(squares[i]), expected[i], 1e-4,
        "Each result is MatMul(x, x), not x * x, and they stand in "
        "the order of the matrices.");
  }
  if (products.made_on.size() != xs.size()) {
    judging.Wrong({input, Say("%d products", products.made_on.size()),
                   Say("%d products", count),
                   "Make each product once, on one of the devices."});
  }
  std::vector<Device> results_on;
  for (const Tensor& square : squares) results_on.push_back(square.device());
  const auto [most, least] = MostAndLeast(products.made_on, devices);
  const auto [most_results, least_results] = MostAndLeast(results_on, devices);
  const bool results_spread = most_results <= least_results + 1;
  if (most > least + 1) {
    judging.Wrong(
        {input, Say("%d products on one device and %d on another", most, least),
         "as many, or one more",
         results_spread
             ? "This spreads the results, after one device has made them all: "
               "move x before it is multiplied, not the product."
         : least_results == 0 && most_results == count
             ? "An operation runs where its operands are: move them first, "
               "with To."
             : "Take all devices in turn, however many there are: "
               "devices[i % devices.size()]."});
  }
  if (!results_spread) {
    judging.Wrong({input,
                   Say("%d results on one device and %d on another",
                       most_results, least_results),
                   "as many, or one more",
                   "Leave each result on the device that makes it. A copy "
                   "can take it elsewhere later."});
  }
}

void JudgeSquareAll(Judging& judging, SquareAll* answer) {
  const std::vector<Device> devices = {Devices()[0].device,
                                       Devices()[1].device};
  const std::vector<Device> three = {devices[0], devices[1],
                                     Devices()[2].device};
  for (const int count : {8, 7, 1, 0}) {
    JudgeOne(judging, answer, devices, count, 5);
  }
  for (const int count : {8, 2}) JudgeOne(judging, answer, three, count, 5);
  JudgeOne(judging, answer, {devices[0]}, 3, 5);
  if (!judging.timed()) return;

  std::vector<Tensor> xs;
  for (int i = 0; i < 8; ++i) xs.push_back(Rand({300, 300}, devices[0]));
  const auto on = [&](const std::vector<Device>& some) {
    for (std::size_t i = 0; i < xs.size(); ++i) {
      const Tensor x = To(xs[i], some[i % some.size()]);
      MatMul(x, x);
    }
  };
  on(devices);
  Synchronize(devices[0]);
  const Timer timer;
  on({devices[0]});
  Synchronize(devices[0]);
  const double one = timer.Seconds();
  judging.Race(
      {"your eight products", devices, [&] { answer(xs, devices); }},
      {{"one on each device in turn", devices, [&] { on(devices); }},
       1.3,
       "Eight products of 300 x 300 matrices take a millisecond or two each. "
       "Does your program wait, or copy more than it needs to?",
       one / 2,
       "bound: half of the time of one device"});
}

D2L_JUDGE("eight_operations", JudgeSquareAll);

}  // namespace
}  // namespace d2l
