// Parsing and writing the header of a safetensors file.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/console/text.h"
#include "common/base/files/format_error.h"
#include "common/safetensors/safetensors.h"
#include "nlohmann/json.hpp"

namespace d2l::safetensors {
namespace {

using Json = nlohmann::json;

constexpr const char* kMetadata = "__metadata__";

constexpr struct {
  const char* code;
  DType dtype;
  Encoding encoding;
} kDTypes[] = {{"F32", DType::kFloat32, Encoding::kOfDType},
               {"F64", DType::kFloat64, Encoding::kOfDType},
               {"BF16", DType::kFloat32, Encoding::kBFloat16},
               {"F16", DType::kFloat32, Encoding::kFloat16},
               {"I64", DType::kInt64, Encoding::kOfDType},
               {"U8", DType::kUInt8, Encoding::kOfDType}};

// Fills in a header from the parser's events, and throws FormatError at the
// first thing that the format does not have. A parsed document would be slower:
// the parser's callback takes a time for each object that grows with the number
// of objects before it.
class HeaderHandler : public nlohmann::json_sax<Json> {
 public:
  explicit HeaderHandler(Header* header) : header_(header) {}

  bool null() override { RefuseValue("null"); }
  bool boolean(bool) override { RefuseValue("true or false"); }
  bool number_integer(std::int64_t) override {
    RefuseValue("a negative number");
  }
  bool number_unsigned(std::uint64_t value) override {
    constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
    if (!in_list_ || value > kMost) {
      RefuseValue(absl::StrCat("the number ", value));
    }
    if (numbers_.size() == kMaxRank) {
      RefuseValue(absl::StrFormat("more than %d numbers in a list", kMaxRank));
    }
    numbers_.push_back(static_cast<std::int64_t>(value));
    return true;
  }
  bool number_float(double, const std::string&) override {
    RefuseValue("a number that is not a 64-bit integer");
  }
  bool string(std::string& text) override {
    if (in_list_ || depth_ < 2) RefuseValue("a text");
    if (IsMetadata()) {
      header_->metadata[field_] = std::move(text);
      return true;
    }
    if (field_ != "dtype") RefuseValue("a text");
    const auto found =
        std::find_if(std::begin(kDTypes), std::end(kDTypes),
                     [&](const auto& row) { return text == row.code; });
    if (found == std::end(kDTypes)) {
      RefuseValue(absl::StrFormat(
          "the dtype %s; F32, F64, BF16, F16, I64 and U8 can be read. Convert "
          "it in Python before it is saved: .float(), .long()",
          QuotedText(text)));
    }
    header_->entries.back().dtype = found->dtype;
    header_->entries.back().encoding = found->encoding;
    return true;
  }
  bool binary(Json::binary_t&) override { RefuseValue("binary data"); }

  bool start_object(std::size_t) override {
    if (in_list_ || depth_ == 2) {
      RefuseValue("an object where there is none in the format");
    }
    ++depth_;
    fields_.clear();
    if (depth_ == 2 && !IsMetadata()) {
      header_->entries.emplace_back().name = name_;
    }
    return true;
  }
  bool end_object() override {
    if (depth_ == 2 && !IsMetadata() && fields_.size() != 3) {
      RefuseValue("not \"dtype\", \"shape\" and \"data_offsets\"");
    }
    --depth_;
    return true;
  }
  bool key(std::string& text) override {
    const bool is_new = (depth_ == 1 ? names_ : fields_).insert(text).second;
    if (!is_new) RefuseValue(absl::StrCat(QuotedText(text), " comes twice"));
    (depth_ == 1 ? name_ : field_) = std::move(text);
    return true;
  }
  bool start_array(std::size_t) override {
    const bool is_list = field_ == "shape" || field_ == "data_offsets";
    if (depth_ < 2 || IsMetadata() || in_list_ || !is_list) {
      RefuseValue("a list");
    }
    in_list_ = true;
    numbers_.clear();
    return true;
  }
  bool end_array() override {
    in_list_ = false;
    Entry& entry = header_->entries.back();
    if (field_ == "shape") {
      entry.shape = Shape(numbers_);
      return true;
    }
    if (numbers_.size() != 2) RefuseValue("not two \"data_offsets\"");
    entry.begin = numbers_[0];
    entry.end = numbers_[1];
    return true;
  }
  bool parse_error(std::size_t byte, const std::string&,
                   const Json::exception& error) override {
    constexpr int kNumberOutOfRange = 406;
    if (error.id == kNumberOutOfRange) {
      Refuse("the header has a number that is not a 64-bit integer");
    }
    Refuse("the header is not JSON at its byte %d", byte);
  }

 private:
  // Whether the object that the parser is in is the metadata.
  bool IsMetadata() const { return name_ == kMetadata; }

  // `found` is at a place where the format has something else.
  [[noreturn]] void RefuseValue(std::string found) const {
    if (depth_ == 2) absl::StrAppend(&found, " in ", QuotedText(name_));
    Refuse("the header has %s", found);
  }

  Header* const header_;
  int depth_ = 0;         // the number of objects that the parser is in
  bool in_list_ = false;  // whether it is in a list
  std::string name_;      // the last key of the header
  std::string field_;     // the last key of the object below it
  std::set<std::string> names_;
  std::set<std::string> fields_;       // the keys of the object below it
  std::vector<std::int64_t> numbers_;  // of the list
};

std::uint64_t NumBytes(const Entry& entry) {
  const auto size = static_cast<std::int64_t>(entry.element_bytes());
  try {
    return CheckedNumel("shape", entry.shape, size) * size;
  } catch (const std::invalid_argument& error) {
    Refuse("the tensor %s: %s", QuotedText(entry.name), error.what());
  }
}

}  // namespace

Header ParseHeader(std::string_view json, std::uint64_t data_bytes) {
  if (json.empty() || json[0] != '{') {
    Refuse("the header does not begin with {");
  }
  // The parser would take it for the end of the text.
  if (const std::size_t at = json.find('\0'); at != json.npos) {
    Refuse("the header is not JSON at its byte %d", at);
  }
  Header header;
  HeaderHandler handler(&header);
  Json::sax_parse(json.begin(), json.end(), &handler);
  std::vector<Entry>& entries = header.entries;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t end = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != end || entry.end < entry.begin ||
        entry.end - entry.begin != NumBytes(entry)) {
      Refuse(
          "the tensor %s has the bytes from %d to %d; wanted are %d from %d on",
          QuotedText(entry.name), entry.begin, entry.end, NumBytes(entry), end);
    }
    end = entry.end;
  }
  if (end != data_bytes) {
    Refuse("the file holds %d bytes of data; the header tells of %d",
           data_bytes, end);
  }
  return header;
}

std::string HeaderToJson(const Header& header) {
  std::vector<std::string> members;
  try {
    if (!header.metadata.empty()) {
      members.push_back(
          absl::StrCat("\"", kMetadata, "\":", Json(header.metadata).dump()));
    }
    for (const Entry& entry : header.entries) {
      if (entry.name == kMetadata) {
        Refuse("no tensor can be called __metadata__");
      }
      const char* code = "";
      for (const auto& row : kDTypes) {
        if (row.dtype == entry.dtype && row.encoding == entry.encoding) {
          code = row.code;
        }
      }
      members.push_back(absl::StrFormat(
          R"(%s:{"dtype":"%s","shape":[%s],"data_offsets":[%d,%d]})",
          Json(entry.name).dump(), code, absl::StrJoin(entry.shape, ","),
          entry.begin, entry.end));
    }
  } catch (const Json::type_error&) {
    Refuse("the name of a tensor, or the metadata, is not UTF-8");
  }
  return absl::StrCat("{", absl::StrJoin(members, ","), "}");
}

}  // namespace d2l::safetensors
