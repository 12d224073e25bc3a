#include "common/safetensors/header.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <set>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/text.h"
#include "nlohmann/json.hpp"

namespace d2l::safetensors {
namespace {

constexpr const char* kMetadata = "__metadata__";

constexpr struct {
  const char* code;
  DType dtype;
} kDTypes[] = {{"F32", DType::kFloat32},
               {"F64", DType::kFloat64},
               {"I64", DType::kInt64},
               {"U8", DType::kUInt8}};

// Hears of the JSON value by value, so that a key that comes twice is noticed
// and nothing is kept that the format does not have.
class Handler : public nlohmann::json_sax<nlohmann::json> {
 public:
  Header header;

  bool start_object(std::size_t) override {
    if (++depth_ > 2) Fail("an object where there is none in the format");
    fields_.clear();
    return true;
  }
  bool key(string_t& text) override {
    if (depth_ == 1) {
      if (!names_.insert(text).second) Fail(QuotedText(text) + " comes twice");
      name_ = text;
      if (name_ == kMetadata) return true;
      header.entries.emplace_back();
      header.entries.back().name = name_;
    } else {
      if (!fields_.insert(text).second) Fail(QuotedText(text) + " comes twice");
      field_ = text;
    }
    return true;
  }
  bool end_object() override {
    if (depth_ == 2 && name_ != kMetadata && fields_.size() != 3) {
      Fail("not \"dtype\", \"shape\" and \"data_offsets\"");
    }
    --depth_;
    return true;
  }
  bool string(string_t& text) override {
    if (depth_ == 2 && name_ == kMetadata) {
      header.metadata[field_] = text;
      return true;
    }
    if (depth_ != 2 || field_ != "dtype") Fail("a text");
    for (const auto& [code, dtype] : kDTypes) {
      if (text != code) continue;
      header.entries.back().dtype = dtype;
      return true;
    }
    Fail(absl::StrCat("the dtype ", QuotedText(text),
                      "; F32, F64, I64 and U8 can be read"));
  }
  bool start_array(std::size_t) override {
    if (depth_ != 2 || name_ == kMetadata ||
        (field_ != "shape" && field_ != "data_offsets")) {
      Fail("a list");
    }
    ++depth_;
    numbers_.clear();
    return true;
  }
  bool number_unsigned(number_unsigned_t number) override {
    if (depth_ != 3 || number > std::numeric_limits<std::int64_t>::max()) {
      Fail(absl::StrCat("the number ", number));
    }
    if (numbers_.size() == kMaxRank) {
      Fail(absl::StrCat("more than ", kMaxRank, " numbers in a list"));
    }
    numbers_.push_back(static_cast<std::int64_t>(number));
    return true;
  }
  bool end_array() override {
    --depth_;
    Entry& entry = header.entries.back();
    if (field_ == "shape") {
      entry.shape = Shape(numbers_);
    } else if (numbers_.size() == 2) {
      entry.begin = numbers_[0];
      entry.end = numbers_[1];
    } else {
      Fail("not two \"data_offsets\"");
    }
    return true;
  }
  bool null() override { Fail("null"); }
  bool boolean(bool) override { Fail("true or false"); }
  bool number_integer(number_integer_t) override { Fail("a negative number"); }
  bool number_float(number_float_t, const string_t&) override {
    Fail("a number that is no integer of 64 bits");
  }
  bool binary(binary_t&) override { Fail("binary data"); }
  bool parse_error(std::size_t at, const std::string&,
                   const nlohmann::json::exception&) override {
    throw FormatError{absl::StrCat("the header is no JSON at its byte ", at)};
  }

 private:
  [[noreturn]] void Fail(const std::string& what) const {
    throw FormatError{depth_ < 2 ? absl::StrCat("the header has ", what)
                                 : absl::StrCat("the header has ", what, " in ",
                                                QuotedText(name_))};
  }

  int depth_ = 0;
  std::set<std::string> names_;
  std::string name_;              // the last key of depth 1
  std::set<std::string> fields_;  // the keys of the object in it
  std::string field_;
  std::vector<std::int64_t> numbers_;
};

std::uint64_t BytesOf(const Entry& entry) {
  const auto size = static_cast<std::int64_t>(DTypeSize(entry.dtype));
  try {
    return CheckedNumel("shape", entry.shape, size) * size;
  } catch (const std::invalid_argument& error) {
    throw FormatError{absl::StrFormat("the tensor %s: %s",
                                      QuotedText(entry.name), error.what())};
  }
}

}  // namespace

Header ParseHeader(std::string_view json, std::uint64_t data_bytes) {
  if (json.empty() || json[0] != '{') {
    throw FormatError{"the header does not begin with {"};
  }
  // The parser would take it for the end.
  if (const std::size_t at = json.find('\0'); at != json.npos) {
    throw FormatError{absl::StrCat("the header is no JSON at its byte ", at)};
  }
  Handler handler;
  nlohmann::json::sax_parse(json.begin(), json.end(), &handler);
  std::vector<Entry>& entries = handler.header.entries;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t end = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != end || entry.end < entry.begin ||
        entry.end - entry.begin != BytesOf(entry)) {
      throw FormatError{absl::StrFormat(
          "the tensor %s has the bytes from %d to %d; wanted are %d from %d on",
          QuotedText(entry.name), entry.begin, entry.end, BytesOf(entry), end)};
    }
    end = entry.end;
  }
  if (end != data_bytes) {
    throw FormatError{
        absl::StrFormat("the file holds %d bytes of data; the header tells of "
                        "%d",
                        data_bytes, end)};
  }
  return std::move(handler.header);
}

std::string HeaderToJson(const Header& header) {
  std::vector<std::string> members;
  try {
    if (!header.metadata.empty()) {
      members.push_back(absl::StrCat(
          "\"", kMetadata, "\":", nlohmann::json(header.metadata).dump()));
    }
    for (const Entry& entry : header.entries) {
      if (entry.name == kMetadata) {
        throw FormatError{"no tensor can be called __metadata__"};
      }
      const char* code = "";
      for (const auto& [its_code, dtype] : kDTypes) {
        if (dtype == entry.dtype) code = its_code;
      }
      members.push_back(absl::StrFormat(
          R"(%s:{"dtype":"%s","shape":[%s],"data_offsets":[%d,%d]})",
          nlohmann::json(entry.name).dump(), code,
          absl::StrJoin(entry.shape, ","), entry.begin, entry.end));
    }
  } catch (const nlohmann::json::type_error&) {
    throw FormatError{"the name of a tensor, or the metadata, is not UTF-8"};
  }
  return absl::StrCat("{", absl::StrJoin(members, ","), "}");
}

}  // namespace d2l::safetensors
