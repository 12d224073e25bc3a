#include "common/profiler/json_text.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "common/base/console/text.h"

namespace d2l {
namespace {

bool MustEscape(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f || c == '"' || c == '\\' || c == '<';
}

}  // namespace

void AppendJsonString(absl::string_view text, std::string* out) {
  out->push_back('"');
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = Utf8Length(text.substr(i));
    if (length == 0) {
      out->append("\xef\xbf\xbd");
      ++i;
      continue;
    }
    const char c = text[i];
    if (c == '"' || c == '\\') {
      out->push_back('\\');
      out->push_back(c);
    } else if (MustEscape(c)) {
      absl::StrAppend(out, "\\u", absl::Hex(c, absl::kZeroPad4));
    } else {
      out->append(text.data() + i, length);
    }
    i += length;
  }
  out->push_back('"');
}

void AppendJsonStrings(const std::vector<std::string>& texts,
                       std::string* out) {
  out->push_back('[');
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) out->push_back(',');
    AppendJsonString(texts[i], out);
  }
  out->push_back(']');
}

void AppendMicros(std::int64_t nanos, std::string* out) {
  // Unsigned: the smallest number has no opposite.
  std::uint64_t size = static_cast<std::uint64_t>(nanos);
  if (nanos < 0) {
    out->push_back('-');
    size = 0 - size;
  }
  absl::StrAppend(out, size / 1000, ".",
                  absl::Dec(size % 1000, absl::kZeroPad3));
}

}  // namespace d2l
