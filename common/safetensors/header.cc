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
} kDTypes[] = {{"F32", DType::kFloat32},
               {"F64", DType::kFloat64},
               {"I64", DType::kInt64},
               {"U8", DType::kUInt8}};

// Describes a value that the format does not allow at its place.
std::string Describe(const Json& value) {
  if (value.is_string()) return "a text";
  if (value.is_array()) return "a list";
  if (value.is_boolean()) return "true or false";
  if (value.is_number_unsigned()) {
    return absl::StrCat("the number ", value.get<std::uint64_t>());
  }
  if (value.is_number_integer()) return "a negative number";
  if (value.is_number()) return "a number that is not a 64-bit integer";
  return "null";
}

// Refuses a duplicate key, of which the parser keeps one, and nesting deeper
// than the format's.
Json ParseJson(std::string_view text) {
  using Event = Json::parse_event_t;
  std::set<std::string> names, fields;  // the keys of depth 1, and in the last
  std::string name;
  const auto hear = [&](int depth, Event event, const Json& value) {
    std::string wrong;
    if (event == Event::key) {
      const auto& key = value.get_ref<const std::string&>();
      const bool is_new = (depth == 1 ? names : fields).insert(key).second;
      if (!is_new) wrong = absl::StrCat(QuotedText(key), " comes twice");
      if (depth == 1) name = key;
    } else if (event == Event::object_start) {
      if (depth > 1) wrong = "an object where there is none in the format";
      fields.clear();
    } else if (event == Event::array_start && depth != 2) {
      wrong = "a list";
    }
    if (wrong.empty()) return true;
    if (depth > 1) absl::StrAppend(&wrong, " in ", QuotedText(name));
    Refuse("the header has %s", wrong);
  };
  try {
    return Json::parse(text.begin(), text.end(), hear);
  } catch (const Json::parse_error& error) {
    Refuse("the header is not JSON at its byte %d", error.byte);
  } catch (const Json::out_of_range&) {
    Refuse("the header has a number that is not a 64-bit integer");
  }
}

// These three throw FormatError for an object of the header that is wrong.
std::vector<std::int64_t> NumbersOf(const Json& list) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  for (const Json& value : list) {
    const bool fits = value.is_number_unsigned() && value <= kMost;
    if (!fits) Refuse("%s", Describe(value));
  }
  if (list.size() > kMaxRank) {
    Refuse("more than %d numbers in a list", kMaxRank);
  }
  return list;
}

Entry EntryOf(const std::string& name, const Json& object) {
  Entry entry;
  entry.name = name;
  for (const auto& [field, value] : object.items()) {
    if (field == "dtype" && value.is_string()) {
      const auto found =
          std::find_if(std::begin(kDTypes), std::end(kDTypes),
                       [&v = value](const auto& row) { return v == row.code; });
      if (found == std::end(kDTypes)) {
        Refuse("the dtype %s; F32, F64, I64 and U8 can be read",
               QuotedText(value.get<std::string>()));
      }
      entry.dtype = found->dtype;
    } else if (field == "shape" && value.is_array()) {
      entry.shape = Shape(NumbersOf(value));
    } else if (field == "data_offsets" && value.is_array()) {
      const std::vector<std::int64_t> offsets = NumbersOf(value);
      if (offsets.size() != 2) Refuse("not two \"data_offsets\"");
      entry.begin = offsets[0];
      entry.end = offsets[1];
    } else {
      Refuse("%s", Describe(value));
    }
  }
  if (object.size() != 3) {
    Refuse("not \"dtype\", \"shape\" and \"data_offsets\"");
  }
  return entry;
}

Metadata MetadataOf(const Json& object) {
  for (const Json& value : object) {
    if (!value.is_string()) Refuse("%s", Describe(value));
  }
  return object;
}

std::uint64_t NumBytes(const Entry& entry) {
  const auto size = static_cast<std::int64_t>(DTypeSize(entry.dtype));
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
  std::vector<Entry>& entries = header.entries;
  const Json members = ParseJson(json);
  for (const auto& [name, value] : members.items()) {
    if (!value.is_object()) Refuse("the header has %s", Describe(value));
    try {
      if (name == kMetadata) {
        header.metadata = MetadataOf(value);
      } else {
        entries.push_back(EntryOf(name, value));
      }
    } catch (const FormatError& wrong) {
      Refuse("the header has %s in %s", wrong.what, QuotedText(name));
    }
  }
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
      for (const auto& [its_code, dtype] : kDTypes) {
        if (dtype == entry.dtype) code = its_code;
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
