#include "common/lesson/cell.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/statistics.h"
#include "common/base/timer.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/lesson/judge.h"

namespace d2l {
namespace {

// Nine is the fewest whose interval leaves out an outlier (statistics.h).
constexpr int kMinRepeats = 9;
constexpr int kMaxRepeats = 99;
constexpr double kEnoughSeconds = 0.2;

// Calls `once` as often as it takes.
void Repeat(const std::function<void()>& once) {
  const Timer timer;
  for (int i = 0; i < kMaxRepeats; ++i) {
    if (i >= kMinRepeats && timer.Seconds() >= kEnoughSeconds) break;
    once();
  }
}

Figure Seconds(const std::string& label, const std::string& column,
               const std::string& measured_on, std::vector<double> samples) {
  return {label, column, measured_on, "s", Summarize(std::move(samples))};
}

// "" if all elements are close enough, else which are not.
template <typename T>
std::string Difference(const std::vector<T>& got,
                       const std::vector<T>& expected, double tolerance) {
  if (got.size() != expected.size()) {
    return absl::StrFormat("%d elements, expected %d", got.size(),
                           expected.size());
  }
  std::size_t differing = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double e = expected[i];
    const double difference = std::abs(got[i] - e);
    // Infinities of one sign are equal, though their difference is NaN; NaN is
    // close to nothing, and nothing finite is close to infinity.
    if (got[i] == expected[i] ||
        (std::isfinite(difference) &&
         difference <= tolerance * std::max(1.0, std::abs(e)))) {
      continue;
    }
    if (differing == 0) first = i;
    ++differing;
  }
  if (differing == 0) return "";
  return absl::StrFormat(
      "%d of %d elements differ; the first is [%d]: got %.9g, expected %.9g, "
      "tolerance %g",
      differing, got.size(), first, got[first], expected[first], tolerance);
}

}  // namespace

const char* SizeName(Size size) {
  switch (size) {
    case Size::kSmall:
      return "small";
    case Size::kCourse:
      return "course";
    case Size::kLarge:
      return "large";
  }
  return "unknown";
}

std::string MeasuredOn(Device device) {
  return absl::StrCat(device.ToString(), ", ",
                      DeviceKindName(GetDeviceInfo(device).kind));
}

Timing Cell::Time(const std::string& label, Device device,
                  const std::function<void()>& work) {
  return Time(label, device, work, [device] { Synchronize(device); });
}

Timing Cell::Time(const std::string& label, Device device,
                  const std::function<void()>& work,
                  const std::function<void()>& wait) {
  // The first run holds initialisation: memory, threads, libraries.
  work();
  wait();
  std::vector<double> enqueue;
  std::vector<double> completion;
  std::vector<double> waiting;
  Repeat([&] {
    Synchronize(device);
    const Timer timer;
    work();
    enqueue.push_back(timer.Seconds());
    wait();
    completion.push_back(timer.Seconds());
    waiting.push_back(completion.back() - enqueue.back());
  });
  Synchronize(device);
  const std::string on = MeasuredOn(device);
  return {Report(Seconds(label, "enqueue", on, std::move(enqueue))),
          Report(Seconds(label, "completion", on, std::move(completion))),
          Seconds(label, "wait", on, std::move(waiting))};
}

Figure Cell::TimeHost(const std::string& label,
                      const std::function<void()>& work) {
  work();
  std::vector<double> completion;
  Repeat([&] {
    const Timer timer;
    work();
    completion.push_back(timer.Seconds());
  });
  return Report(Seconds(label, "completion", "host", std::move(completion)));
}

Figure Cell::Report(Figure figure) {
  result_->figures.push_back(figure);
  return figure;
}

void Cell::Claim(const std::string& text, const Judgement& judgement,
                 const std::string& because) {
  Claimed claimed{text, judgement};
  std::string& reason = claimed.judgement.reason;
  if (!because.empty()) absl::StrAppend(&reason, " ", because);
  if (judgement.verdict != Verdict::kHolds) {
    for (const std::string& circumstance : circumstances_) {
      absl::StrAppend(&reason, " ", circumstance);
    }
  }
  result_->claims.push_back(std::move(claimed));
}

void Cell::CheckClose(const std::string& what, const std::vector<float>& got,
                      const std::vector<float>& expected, double tolerance) {
  const std::string difference = Difference(got, expected, tolerance);
  Check(difference.empty(), absl::StrCat(what, ": ", difference));
}

void Cell::CheckClose(const std::string& what, const std::vector<double>& got,
                      const std::vector<double>& expected, double tolerance) {
  const std::string difference = Difference(got, expected, tolerance);
  Check(difference.empty(), absl::StrCat(what, ": ", difference));
}

void Cell::Check(bool right, const std::string& what) {
  if (right) return;
  ++result_->wrong_results;
  std::cout << "WRONG RESULT in " << result_->id << ": " << what << "\n"
            << std::flush;
}

}  // namespace d2l
