#include "chapters/auto_parallelism/two_devices.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/device/backend.h"
#include "common/device/device_table.h"

namespace d2l {
namespace {

// Until the calls had returned, of all the time.
double PercentAsking(const Timing& timing) {
  return 100 * timing.enqueue.value.median / timing.completion.value.median;
}

}  // namespace

Device First() { return Devices()[0].device; }
Device Second() { return Devices()[Devices().size() > 1 ? 1 : 0].device; }

std::vector<Device> Both() { return Distinct({First(), Second()}); }

std::vector<Device> Distinct(std::vector<Device> devices) {
  std::sort(devices.begin(), devices.end());
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  return devices;
}

std::vector<Stream*> StreamsWithRoom(std::int64_t operations) {
  Stream& first = NewStream(First(), operations);
  if (First() == Second()) return {&first, &first};
  return {&first, &NewStream(Second(), operations)};
}

std::string DeviceFact(Device device) {
  const DeviceInfo& info = GetDeviceInfo(device);
  if (info.kind != DeviceKind::kVirtual) return info.Describe() + ".";
  return absl::StrFormat(
      "%s has %d of the machine's %d cores, and each of its streams a worker "
      "thread.",
      device.ToString(), info.cores, CpuBackend().Inventory().devices[0].cores);
}

std::string PairFact() { return PairFact(First(), Second()); }

std::string PairFact(Device a, Device b) {
  if (a == b) {
    return absl::StrFormat(
        "There is only one device, %s, with one queue: it does one operation "
        "after the other, whatever asks for them.",
        a.ToString());
  }
  return absl::StrCat(DeviceFact(a), " ", DeviceFact(b));
}

std::string AskingFact(const Timing& timing) {
  const double percent = PercentAsking(timing);
  // With launch blocking, asking is waiting.
  const bool bound = percent > 50 && !LaunchBlocking();
  return absl::StrFormat("Asking took %.0f %% of the time%s.", percent,
                         bound ? ": launches may be the bound" : "");
}

std::string HeldUpFact(const Timing& pageable, const Timing& pinned) {
  return absl::StrFormat(
      "The front end was held up for %.0f %% of the time, with pinned memory "
      "for %.0f %%.",
      PercentAsking(pageable), PercentAsking(pinned));
}

Figure One() { return Known("no gain", "x", 1); }

Figure Quotient(Cell& cell, const std::string& label, const Figure& a,
                const Figure& b) {
  Figure quotient = RatioPerRepeat(label, a, b);
  // The one that was measured on more devices says where.
  quotient.measured_on = std::max(
      a.measured_on, b.measured_on,
      [](const auto& x, const auto& y) { return x.size() < y.size(); });
  return cell.Report(quotient);
}

Figure Quotient(Cell& cell, const std::string& label, const Timing& a,
                const Timing& b) {
  return Quotient(cell, label, a.completion, b.completion);
}

Figure Gain(Cell& cell, const Timing& one, const Timing& two,
            const Timing& both) {
  const auto combine = [&](const std::string& label, const Figure& a,
                           const Figure& b, auto how) {
    Figure figure = PerRepeat(label, a.unit, a, b, how);
    figure.measured_on = both.completion.measured_on;
    return figure;
  };
  const Figure& a = one.completion;
  const Figure& b = two.completion;
  const std::minus<double> minus;
  const Figure sum = combine("sum", a, b, std::plus<double>());
  const Figure most = combine(
      "maximum", a, b, [](double x, double y) { return std::max(x, y); });
  const Figure gained = combine("", sum, both.completion, minus);
  const Figure possible = combine("", sum, most, minus);
  Figure share = combine(both.completion.label + ", share of the possible gain",
                         gained, possible, [](double x, double y) {
                           return std::round(100 * x / y) + 0.0;  // never -0
                         });
  share.unit = "%";
  std::cout << absl::StrFormat("%s: %.0f %% of (sum %.4f - maximum %.4f)\n",
                               both.completion.label, share.value.median,
                               sum.value.median, most.value.median);
  cell.Report(share);
  return Quotient(cell, "sum / " + both.completion.label, sum, both.completion);
}

void PrintTime(const std::string& prefix, const Timing& timing) {
  std::cout << absl::StrFormat("%s%s time: %.4f sec\n", prefix,
                               timing.completion.label,
                               timing.completion.value.median);
}

std::string LeftFact(Device device, std::int64_t left, int of) {
  const std::string text = absl::StrFormat(
      "%s had %d of %d products left then.", device.ToString(), left, of);
  return First() == Second() ? absl::StrCat(text, " ", PairFact()) : text;
}

}  // namespace d2l
