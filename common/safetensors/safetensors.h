// Saves and loads named tensors in the safetensors format, which Python's
// safetensors reads and writes as well.
//
//   absl::Status saved =
//       safetensors::SaveFile({{"weight", w}, {"bias", b}}, "net.safetensors");
//   auto file = safetensors::LoadFile("net.safetensors");
//   Tensor bias = file->tensors["bias"];
//
// A file is the length of its header (8 bytes), the header (JSON: the dtype,
// shape and place of each tensor, and strings of any kind under
// "__metadata__"), and the tensors' bytes, row by row, nothing between them.
//
// Saving waits for the tensors, from whatever device. A tensor that is not
// contiguous is saved as if it were, and memory that two share is saved twice.
// The file is replaced atomically (common/base/atomic_file.h).
//
// Files may be untrusted: a header that does not describe all of the file, and
// each byte once, is refused, and so are keys that come twice.
//
// Errors of files are an absl::Status that names the file, the tensor, and what
// is wrong. Reading a tensor throws as ToVector does (common/ops/read.h), and
// std::invalid_argument if it is undefined. Thread-safe.

#ifndef D2L_COMMON_SAFETENSORS_SAFETENSORS_H_
#define D2L_COMMON_SAFETENSORS_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/atomic_file.h"
#include "common/device/device.h"
#include "common/tensor/tensor.h"

namespace d2l::safetensors {

using NamedTensors = std::map<std::string, Tensor>;
using Metadata = std::map<std::string, std::string>;

// Python's limit as well.
inline constexpr std::int64_t kMaxHeaderBytes = 100'000'000;

struct File {
  NamedTensors tensors;
  Metadata metadata;
  std::string sha256;  // of the file's bytes, in hexadecimal
};

absl::Status SaveFile(const NamedTensors& tensors, const std::string& path,
                      const Metadata& metadata = {});

// Writes the same to a file that is open, which the caller commits. Returns the
// SHA-256 of what it wrote; InvalidArgument for names that are not UTF-8, and
// for a header of more than max_header_bytes. An error of the file is Commit's.
absl::StatusOr<std::string> Write(
    const NamedTensors& tensors, AtomicFile& file,
    const Metadata& metadata = {},
    std::int64_t max_header_bytes = kMaxHeaderBytes);

// NotFound, InvalidArgument, or ResourceExhausted where the device has not the
// memory. The tensors are on `device`.
absl::StatusOr<File> LoadFile(const std::string& path, Device device = Device(),
                              std::int64_t max_header_bytes = kMaxHeaderBytes);

}  // namespace d2l::safetensors

#endif  // D2L_COMMON_SAFETENSORS_SAFETENSORS_H_
