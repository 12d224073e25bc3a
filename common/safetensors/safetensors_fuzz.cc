// For any bytes of a file, the result is tensors, whose header is the same when
// written and read again, or an error with a message.

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/ops/ops.h"
#include "common/safetensors/safetensors.h"

namespace {

using d2l::safetensors::File;
using d2l::safetensors::LoadFile;

void Check(bool right) {
  if (!right) std::abort();
}

// Loads a file in memory.
absl::StatusOr<File> Load(const void* data, std::size_t size) {
  const int file = memfd_create("fuzz", MFD_CLOEXEC);
  Check(file >= 0 && write(file, data, size) == static_cast<ssize_t>(size));
  absl::StatusOr<File> loaded = LoadFile(absl::StrCat("/proc/self/fd/", file));
  close(file);
  return loaded;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const absl::StatusOr<File> file = Load(data, size);
  if (!file.ok()) {
    Check(!file.status().message().empty());
    return 0;
  }
  d2l::safetensors::Header header;
  header.metadata = file->metadata;
  std::size_t bytes = 0;
  for (const auto& [name, tensor] : file->tensors) {
    const std::size_t end =
        bytes + tensor.numel() * d2l::DTypeSize(tensor.dtype());
    header.entries.push_back(
        {name, tensor.dtype(), tensor.shape(), bytes, end});
    bytes = end;
  }
  const d2l::safetensors::Header again =
      d2l::safetensors::ParseHeader(HeaderToJson(header), bytes);
  Check(again.entries.size() == header.entries.size() &&
        again.metadata == header.metadata);
  return 0;
}
