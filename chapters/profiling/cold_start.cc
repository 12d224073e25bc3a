#include "chapters/profiling/cold_start.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/statistics.h"
#include "common/base/timer.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/lesson/fresh_process.h"
#include "common/lesson/host_library.h"
#include "common/ops/ops.h"

namespace d2l {
namespace {

constexpr char kProbe[] = "profiling/cold_start";
constexpr int kProcesses = 9;
constexpr int kNextCalls = 100;

// A product, and the wait until what was asked for is done.
struct Products {
  std::function<void()> one;
  std::function<void()> wait;
};

Products OnTheHost() {
  return {[x = std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9},
           y = std::vector<float>()]() mutable { y = HostMatMul(x, x, 3); },
          [] {}};
}

Products OnTheDevice(const std::string& spec) {
  // Nothing of the device is touched before the clock runs.
  auto x = std::make_shared<Tensor>();
  auto y = std::make_shared<Tensor>();
  return {[=] {
            if (!x->defined()) {
              const absl::Status made = InitializeDevices(spec);
              if (!made.ok()) throw std::runtime_error(made.ToString());
              *x = Ones({3, 3}, Devices()[0].device);
            }
            *y = MatMul(*x, T(*x));
          },
          [=] { Synchronize(Devices()[0].device); }};
}

double Seconds(const std::function<void()>& work) {
  const Timer timer;
  work();
  return timer.Seconds();
}

// In the fresh process: where, and how many products.
std::vector<double> Probe(const std::vector<std::string>& arguments) {
  int products = 0;
  if (arguments.size() != 2 || !absl::SimpleAtoi(arguments[1], &products)) {
    throw std::invalid_argument("wanted: where, and how many products");
  }
  const Products work =
      arguments[0] == "host" ? OnTheHost() : OnTheDevice(arguments[0]);
  const auto call = [&] {
    work.one();
    work.wait();
  };
  const double first_call = Seconds(call);
  std::vector<double> calls;
  const double others = Seconds([&] {
    for (int i = 1; i < products; ++i) work.one();
    work.wait();
  });
  const double next_run = Seconds([&] {
    for (int i = 0; i < products; ++i) work.one();
    work.wait();
  });
  for (int i = 0; i < kNextCalls; ++i) calls.push_back(Seconds(call));
  return {first_call, Summarize(calls).median, first_call + others, next_run};
}

[[maybe_unused]] const bool registered = RegisterProbe(kProbe, Probe);

// The list that makes `where` the only device of the new process.
std::string SpecOf(const std::string& where) {
  if (where == "host") return where;
  for (const DeviceInfo& info : Devices()) {
    if (info.device.ToString() != where) continue;
    return Device(info.device.type(), info.physical_index).ToString();
  }
  throw std::invalid_argument(absl::StrCat("there is no device ", where));
}

}  // namespace

ColdStart MeasureColdStart(Cell& cell, const std::string& where, int products) {
  const std::string spec = SpecOf(where);
  std::vector<Device> devices;
  if (where != "host") devices.push_back(Device::Parse(where).value());
  std::vector<std::vector<double>> samples(4);
  for (int i = 0; i < kProcesses; ++i) {
    const absl::StatusOr<std::vector<double>> taken =
        RunInFreshProcess(kProbe, {spec, absl::StrCat(products)});
    if (!taken.ok()) throw std::runtime_error(taken.status().ToString());
    if (taken->size() != samples.size()) {
      throw std::runtime_error("the fresh process gave other figures");
    }
    for (std::size_t f = 0; f < samples.size(); ++f) {
      samples[f].push_back((*taken)[f]);
    }
  }
  const auto figure = [&](const std::string& what, std::size_t f) {
    return cell.Report(
        Sampled(absl::StrCat(where, ": ", what),
                absl::StrCat(MeasuredOn(devices), ", fresh processes"), "s",
                samples[f]));
  };
  return {figure("first product", 0), figure("a later product", 1),
          figure(absl::StrCat("first ", products), 2),
          figure(absl::StrCat("next ", products), 3)};
}

}  // namespace d2l
