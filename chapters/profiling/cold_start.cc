#include "chapters/profiling/cold_start.h"

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/undisturbed_timer.h"
#include "common/d2l.h"
#include "common/lesson/fresh_process.h"
#include "common/lesson/host_library.h"

namespace d2l {
namespace {

constexpr char kProbe[] = "profiling/cold_start";
// A third of them counts beside other load.
constexpr int kProcesses = 27;
constexpr int kNextCalls = 100;

Elapsed Sum(Elapsed a, const Elapsed& b) {
  a.seconds += b.seconds;
  if (!b.undisturbed) a.undisturbed.reset();
  if (a.undisturbed) {
    a.undisturbed->least += b.undisturbed->least;
    a.undisturbed->most += b.undisturbed->most;
  }
  return a;
}

// Runs in the fresh process. The arguments: "host" or the only device, and the
// number of products.
std::vector<double> Probe(const std::vector<std::string>& arguments) {
  const std::string& where = arguments.at(0);
  const int products = std::stoi(arguments.at(1));
  const std::vector<float> x_host = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  Tensor x, y;
  // Until `count` products are done.
  const auto run = [&](int count) {
    const UndisturbedTimer timer;
    if (where == "host") {
      for (int i = 0; i < count; ++i) HostMatMul(x_host, x_host, 3);
      return timer.Read();
    }
    // Nothing of the device is touched before the clock runs.
    if (!x.defined()) {
      const absl::Status made = InitializeDevices(where);
      if (!made.ok()) throw std::runtime_error(made.ToString());
      x = Ones({3, 3}, Devices()[0].device);
    }
    for (int i = 0; i < count; ++i) y = MatMul(x, T(x));
    Synchronize(x.device());
    return timer.Read();
  };
  const Elapsed first_call = run(1), others = run(products - 1);
  const Elapsed next_run = run(products);
  std::vector<Elapsed> calls;
  for (int i = 0; i < kNextCalls; ++i) calls.push_back(run(1));
  std::sort(calls.begin(), calls.end(), [](const Elapsed& a, const Elapsed& b) {
    return a.seconds < b.seconds;
  });
  std::vector<double> result;
  for (const Elapsed& e :
       {first_call, calls[kNextCalls / 2], Sum(first_call, others), next_run}) {
    // -1: not known.
    const Bounds bounds = e.undisturbed.value_or(Bounds{-1, -1});
    result.insert(result.end(), {e.seconds, bounds.least, bounds.most});
  }
  return result;
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
  std::vector<std::vector<Elapsed>> samples(4);
  for (int i = 0; i < kProcesses; ++i) {
    const absl::StatusOr<std::vector<double>> taken =
        RunInFreshProcess(kProbe, {spec, absl::StrCat(products)});
    if (!taken.ok()) throw std::runtime_error(taken.status().ToString());
    for (std::size_t f = 0; f < samples.size(); ++f) {
      Elapsed e{taken->at(3 * f),
                Bounds{taken->at(3 * f + 1), taken->at(3 * f + 2)}};
      if (e.undisturbed->least < 0) e.undisturbed.reset();
      samples[f].push_back(e);
    }
  }
  const Phrase on = Worded("%s, fresh processes", MeasuredOn(devices));
  const auto figure = [&](const Phrase& what, std::size_t f) {
    return cell.ReportTimes(what, on, samples[f]);
  };
  return {figure("the first product", 0), figure("a later one", 1),
          figure(Worded("the first %d", products), 2),
          figure(Worded("the next %d", products), 3)};
}

}  // namespace d2l
