// Fnv1a: the 64-bit FNV-1a hash of bytes that come in pieces, the same on every
// machine. It tells data that differ by chance apart, not data that somebody
// made to have the same hash.
//
//   Fnv1a hash;
//   hash.Update("foo");
//   hash.Update("bar");
//   std::string text = hash.Hex();  // "85944171f73967e8"
//
// Thread-safe for different objects.

#ifndef D2L_COMMON_BASE_FILES_FNV1A_H_
#define D2L_COMMON_BASE_FILES_FNV1A_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace d2l {

class Fnv1a {
 public:
  void Update(std::string_view bytes) {
    for (const char byte : bytes) {
      hash_ = (hash_ ^ static_cast<std::uint8_t>(byte)) * 0x100000001b3;
    }
  }
  // 16 digits.
  std::string Hex() const {
    return absl::StrCat(absl::Hex(hash_, absl::kZeroPad16));
  }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325;
};

}  // namespace d2l

#endif  // D2L_COMMON_BASE_FILES_FNV1A_H_
