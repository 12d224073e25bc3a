#include "chapters/multi_gpu/train_data.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/base/files/sha256.h"
#include "common/data/dataset.h"
#include "common/device/device_table.h"
#include "nlohmann/json.hpp"

namespace d2l {

absl::StatusOr<TrainData> LoadData(const std::string& data_dir,
                                   std::int64_t images) {
  if (data_dir.empty()) {
    const std::int64_t test = std::max<std::int64_t>(10, images / 6);
    return TrainData{GenerateImages(images),
                     GenerateImages(test, /*seed=*/0, /*first=*/images)};
  }
  absl::StatusOr<Dataset> training =
      LoadFashionMnist(data_dir, DatasetSplit::kTraining);
  if (!training.ok()) return training.status();
  absl::StatusOr<Dataset> test =
      LoadFashionMnist(data_dir, DatasetSplit::kTest);
  if (!test.ok()) return test.status();
  if (training->size() == 0 || test->size() == 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s has %d images to train on and %d to test on; at least one of each "
        "is needed. Name another --data_dir, or none for generated images.",
        training->name, training->size(), test->size()));
  }
  return TrainData{*std::move(training), *std::move(test)};
}

std::string Fingerprint(const Dataset& data) {
  Sha256 hash;
  for (const std::vector<std::uint8_t>* part : {&data.images, &data.labels}) {
    hash.Update({reinterpret_cast<const char*>(part->data()), part->size()});
  }
  return absl::StrFormat("%d images with the SHA-256 %s", data.size(),
                         hash.Hex().substr(0, 16));
}

std::string ReportJson(const TrainOptions& options, const TrainData& data,
                       std::int64_t parameters,
                       const std::vector<EpochRecord>& records) {
  nlohmann::ordered_json epochs = nlohmann::ordered_json::array();
  for (const EpochRecord& epoch : records) {
    epochs.push_back({{"training_loss", epoch.loss},
                      {"training_accuracy", epoch.training_accuracy},
                      {"test_accuracy", epoch.test_accuracy},
                      {"seconds", epoch.seconds}});
  }
  nlohmann::ordered_json devices = nlohmann::ordered_json::array();
  for (const Device device : options.devices) {
    const DeviceInfo& info = GetDeviceInfo(device);
    devices.push_back({{"name", info.device.ToString()},
                       {"kind", DeviceKindName(info.kind)},
                       {"hardware", info.name}});
  }
  const nlohmann::ordered_json json = {
      {"program", "train"},
      {"data",
       {{"name", data.training.name},
        {"training", Fingerprint(data.training)},
        {"test", Fingerprint(data.test)}}},
      {"options", options.ForCheckpoint()},
      {"parameters", parameters},
      {"devices", devices},
      {"versions", {{"compiler", __VERSION__}}},
      {"epochs", epochs}};
  // `replace`: a path may be no UTF-8; that must not throw.
  return json.dump(2, ' ', false,
                   nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

}  // namespace d2l
