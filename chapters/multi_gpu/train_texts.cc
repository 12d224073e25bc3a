#include "chapters/multi_gpu/train_texts.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/device/device.h"
#include "common/device/device_table.h"

namespace d2l {
namespace {

// "cpu:0, cpu:1", or with what f makes of each.
template <typename F>
std::string DeviceList(const TrainOptions& options, F f) {
  return absl::StrJoin(options.devices, ", ",
                       [f](std::string* out, Device device) {
                         absl::StrAppend(out, f(device));
                       });
}

std::string InEach(const Processes& processes) {
  return processes.several() ? Say(" in each of %d processes", processes.size())
                             : "";
}

}  // namespace

std::string HeadText(const TrainOptions& options, const TrainData& data,
                     const Processes& processes, std::int64_t parameters) {
  const std::string devices = DeviceList(options, [](Device device) {
    return TranslatedMessage(GetDeviceInfo(device).Describe());
  });
  return Wrap(Say("%s, %d parameters, --init=%s, --batch_size=%d, --lr=%g, "
                  "--momentum=%g, --seed=%d, on %s%s",
                  options.net, parameters, options.init, options.batch_size,
                  options.lr, options.momentum, options.seed, devices,
                  InEach(processes))) +
         Wrap(Say("%s: %d images to train on, %d to test",
                  TranslatedMessage(data.training.name), data.training.size(),
                  data.test.size()));
}

std::string ResultText(const TrainOptions& options, const TrainData& data,
                       const Processes& processes,
                       const std::vector<EpochRecord>& epochs) {
  double seconds = 0;
  for (const EpochRecord& epoch : epochs) seconds += epoch.seconds;
  seconds /= static_cast<double>(epochs.size());
  const std::string devices =
      DeviceList(options, [](Device device) { return device.ToString(); });
  return Say("test accuracy %.2f on %s, %.1f s/epoch, on [%s]%s",
             epochs.back().test_accuracy, TranslatedMessage(data.test.name),
             seconds, devices, InEach(processes));
}

std::string Hardware(const TrainOptions& options, const Processes& processes) {
  const std::string own = DeviceList(options, [](Device device) {
    return absl::StrFormat("%s (%s)", DeviceTypeName(device.type()),
                           GetDeviceInfo(device).name);
  });
  return absl::StrJoin(std::vector<std::string>(processes.size(), own), ", ");
}

std::string HowMany(const TrainOptions& options, const Processes& processes) {
  const std::size_t devices = options.devices.size();
  return absl::StrFormat("%d process%s of %d device%s", processes.size(),
                         processes.several() ? "es" : "", devices,
                         devices == 1 ? "" : "s");
}

}  // namespace d2l
