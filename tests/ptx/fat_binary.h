// The PTX in what nvcc puts into an object file.
//
//   std::string ptx = PtxOf(fat_binary);  // throws Unsupported
//
// Pure functions; thread-safe.

#ifndef D2L_TESTS_PTX_FAT_BINARY_H_
#define D2L_TESTS_PTX_FAT_BINARY_H_

#include <cstdint>
#include <cstring>
#include <string>

#include "tests/ptx/module_text.h"

namespace d2l::ptx {

// Throws if there is no PTX, or if it is compressed: nvcc needs --no-compress.
inline std::string PtxOf(const void* fat_binary) {
  // The layout is not documented: a header with its own size and that of the
  // entries, each of which has a header with both sizes, and then its bytes.
  constexpr std::uint32_t kMagic = 0xba55ed50;
  constexpr std::uint16_t kPtx = 1;
  const auto* const begin = static_cast<const char*>(fat_binary);
  const auto read = [](const char* from, auto* to) {
    std::memcpy(to, from, sizeof(*to));
  };
  std::uint32_t magic;
  std::uint16_t header_bytes;
  std::uint64_t bytes;
  read(begin, &magic);
  read(begin + 6, &header_bytes);
  read(begin + 8, &bytes);
  if (magic != kMagic) throw Unsupported("a fat binary of another format");
  const char* const end = begin + header_bytes + bytes;
  for (const char* entry = begin + header_bytes; entry < end;) {
    std::uint16_t kind;
    std::uint32_t entry_header_bytes;
    std::uint64_t entry_bytes;
    read(entry, &kind);
    read(entry + 4, &entry_header_bytes);
    read(entry + 8, &entry_bytes);
    const std::string text(entry + entry_header_bytes, entry_bytes);
    if (kind == kPtx && text.find(".version") != std::string::npos) {
      return text.substr(0, text.find('\0'));
    }
    entry += entry_header_bytes + entry_bytes;
  }
  throw Unsupported(
      "there is no PTX in the program, or it is compressed; --config=ptx makes "
      "nvcc leave it as text");
}

}  // namespace d2l::ptx

#endif  // D2L_TESTS_PTX_FAT_BINARY_H_
