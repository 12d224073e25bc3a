#include "common/device/device.h"

#include <stdexcept>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/console/language.h"

namespace d2l {

const char* DeviceTypeName(DeviceType type) {
  return type == DeviceType::kCpu ? "cpu" : "cuda";
}

Device Device::Parse(absl::string_view text) {
  const absl::string_view::size_type colon = text.find(':');
  const absl::string_view name = text.substr(0, colon);
  DeviceType type;
  if (name == "cpu") {
    type = DeviceType::kCpu;
  } else if (name == "cuda") {
    type = DeviceType::kCuda;
  } else {
    throw std::invalid_argument(Say(
        "\"%s\" is not a device. Devices are written cpu:0, cpu:1, cuda:0, …",
        text));
  }
  if (colon == absl::string_view::npos) return Device(type, 0);
  const absl::string_view digits = text.substr(colon + 1);
  int index = 0;
  // SimpleAtoi alone would take "+1" and " 1".
  const bool plain = !digits.empty() && absl::ascii_isdigit(digits[0]) &&
                     absl::ascii_isdigit(digits[digits.size() - 1]);
  if (!plain || !absl::SimpleAtoi(digits, &index)) {
    throw std::invalid_argument(
        Say("\"%s\" is not a device: after \"%s:\" comes a number, as in %s:0.",
            text, name, name));
  }
  return Device(type, index);
}

std::string Device::ToString() const {
  return absl::StrCat(DeviceTypeName(type_), ":", index_);
}

}  // namespace d2l
