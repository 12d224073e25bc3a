// What the header of a safetensors file says; a part of safetensors.cc.

#ifndef D2L_COMMON_SAFETENSORS_HEADER_H_
#define D2L_COMMON_SAFETENSORS_HEADER_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "common/safetensors/safetensors.h"

namespace d2l::safetensors {

// What is wrong with a file.
struct FormatError {
  std::string what;
};

// Throws FormatError, also unless the tensors cover data_bytes, each byte once.
Header ParseHeader(std::string_view json, std::uint64_t data_bytes);

// Throws FormatError for text that is not UTF-8, and for "__metadata__".
std::string HeaderToJson(const Header& header);

}  // namespace d2l::safetensors

#endif  // D2L_COMMON_SAFETENSORS_HEADER_H_
