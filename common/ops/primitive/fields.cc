#include "common/ops/primitive/fields.h"

#include <charconv>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/ops/primitive/reject.h"

namespace d2l {
namespace {

template <typename Integer>
std::optional<Integer> ParseInteger(std::string_view text) {
  Integer value;
  const char* const end = text.data() + text.size();
  const auto [next, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || next != end) return std::nullopt;
  return value;
}

std::optional<bool> ParseBool(std::string_view text) {
  if (text != "true" && text != "false") return std::nullopt;
  return text == "true";
}

std::optional<std::vector<int>> ParseDims(const std::string& text) {
  std::vector<int> dims;
  if (text == "all") return dims;
  for (const std::string& one :
       std::vector<std::string>(absl::StrSplit(text, ", "))) {
    const auto dim = ParseInteger<int>(one);
    if (!dim.has_value()) return std::nullopt;
    dims.push_back(*dim);
  }
  return dims;
}

std::optional<Device> ParseDevice(const std::string& text) {
  try {
    return Device::Parse(text);
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

}  // namespace

Fields& Fields::operator()(const char* name, bool& field) {
  if (written_ != nullptr) return Write(name, field ? "true" : "false");
  return Set(name, field, ParseBool(Take(name)), "is not true or false");
}

Fields& Fields::operator()(const char* name, int& field) {
  if (written_ != nullptr) return Write(name, absl::StrCat(field));
  return Set(name, field, ParseInteger<int>(Take(name)), "is not an integer");
}

Fields& Fields::operator()(const char* name, std::int64_t& field) {
  if (written_ != nullptr) return Write(name, absl::StrCat(field));
  return Set(name, field, ParseInteger<std::int64_t>(Take(name)),
             "is not an integer");
}

Fields& Fields::operator()(const char* name, double& field) {
  Scalar number = field;
  (*this)(name, number);
  field = number.To<double>();
  return *this;
}

Fields& Fields::operator()(const char* name, Scalar& field) {
  if (written_ != nullptr) return Write(name, field.ToString());
  return Set(name, field, Scalar::Parse(Take(name)), "is not a number");
}

Fields& Fields::operator()(const char* name, Shape& field) {
  if (written_ != nullptr) return Write(name, field.ToString());
  return Set(name, field, Shape::Parse(Take(name)), "is not a shape");
}

Fields& Fields::operator()(const char* name, std::vector<int>& field) {
  if (written_ != nullptr) {
    return Write(name, field.empty() ? "all" : absl::StrJoin(field, ", "));
  }
  return Set(name, field, ParseDims(Take(name)), "is not an integer");
}

Fields& Fields::operator()(ValueSpec& field) {
  (*this)("shape", field.shape);
  if (written_ != nullptr) {
    Write("dtype", DTypeName(field.dtype));
    return Write("device", field.device.ToString());
  }
  Set("dtype", field.dtype, DTypeNamed(Take("dtype")), "is unknown");
  return Set("device", field.device, ParseDevice(Take("device")),
             "is not a device");
}

bool Fields::Has(const char* name, bool has) const {
  if (written_ != nullptr) return has;
  for (const Attribute& attribute : left_) {
    if (attribute.first == name) return true;
  }
  return false;
}

Fields& Fields::operator()(const char* name, std::optional<Scalar>& field) {
  if (!Has(name, field.has_value())) return *this;
  if (!field.has_value()) field.emplace();
  return (*this)(name, *field);
}

void Fields::CheckNoneLeft() const {
  if (!left_.empty()) Throw(left_[0].first, "is unknown, or given twice");
}

Fields& Fields::Write(const char* name, std::string text) {
  written_->push_back({name, std::move(text)});
  return *this;
}

std::string Fields::Take(const char* name) {
  for (auto it = left_.begin(); it != left_.end(); ++it) {
    if (it->first != name) continue;
    std::string text = std::move(it->second);
    left_.erase(it);
    return text;
  }
  Throw(name, "is missing");
}

template <typename T>
Fields& Fields::Set(const char* name, T& field, const std::optional<T>& value,
                    const char* wrong) {
  if (!value.has_value()) Throw(name, wrong);
  field = *value;
  return *this;
}

void Fields::Throw(std::string_view name, const char* what) const {
  Reject("[%s] the attribute \"%s\" %s", operation_, name, what);
}

}  // namespace d2l
