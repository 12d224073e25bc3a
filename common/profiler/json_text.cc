#include "common/profiler/json_text.h"

#include <cstddef>

#include "absl/strings/str_cat.h"

namespace d2l {
namespace {

// The length of the UTF-8 sequence that begins at `i`; 0 if none does.
std::size_t SequenceLength(absl::string_view text, std::size_t i) {
  const auto byte = [&](std::size_t at) {
    return static_cast<unsigned char>(text[at]);
  };
  const unsigned char first = byte(i);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xc2 && first < 0xe0   ? 2
                             : first >= 0xe0 && first < 0xf0 ? 3
                             : first >= 0xf0 && first < 0xf5 ? 4
                                                             : 0;
  if (length == 0 || text.size() - i < length) return 0;
  for (std::size_t k = 1; k < length; ++k) {
    if ((byte(i + k) & 0xc0) != 0x80) return 0;
  }
  const unsigned char second = byte(i + 1);
  // Overlong forms, surrogates, and what lies beyond U+10FFFF.
  if (first == 0xe0 && second < 0xa0) return 0;
  if (first == 0xed && second >= 0xa0) return 0;
  if (first == 0xf0 && second < 0x90) return 0;
  if (first == 0xf4 && second >= 0x90) return 0;
  return length;
}

bool MustEscape(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f || c == '"' || c == '\\' || c == '<';
}

}  // namespace

void AppendJsonString(absl::string_view text, std::string* out) {
  out->push_back('"');
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = SequenceLength(text, i);
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
