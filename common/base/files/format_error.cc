#include "common/base/files/format_error.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace d2l {

const char* KindOfFile(absl::string_view first_bytes) {
  constexpr struct {
    absl::string_view begin;
    const char* kind;
  } kKinds[] = {
      {"<!doctype html", "a web page (HTML), so the download went wrong"},
      {"<html", "a web page (HTML), so the download went wrong"},
      {"<?xml", "XML, which a server sends as an error"},
      {"version https://git-lfs", "a pointer of Git LFS: git lfs pull"},
      {"PK\x03\x04", "a ZIP archive, as a .pt file of torch.save is"},
      {"\x80\x02", "a pickle, as an old .pt file of torch.save is"},
      {"\x1f\x8b", "gzip data"},
      {"\x93NUMPY", "an array of NumPy (.npy)"},
  };
  const absl::string_view text = absl::StripLeadingAsciiWhitespace(first_bytes);
  for (const auto& [begin, kind] : kKinds) {
    if (absl::StartsWithIgnoreCase(text, begin)) return kind;
  }
  return "";
}

}  // namespace d2l
