// For any bytes of a file, the result is whole images or labels that are
// classes, or an error with a message. The bytes are read directly, and as the
// content of a gzipped file.

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/data/dataset.h"

namespace {

using Parsed = absl::StatusOr<std::vector<std::uint8_t>>;

void Check(bool right) {
  if (!right) std::abort();
}

void CheckImages(const Parsed& images) {
  if (images.ok()) {
    Check(images->size() % d2l::kImagePixels == 0);
  } else {
    Check(!images.status().message().empty());
  }
}

void CheckLabels(const Parsed& labels) {
  if (labels.ok()) {
    for (const std::uint8_t label : *labels) Check(label < d2l::kClasses);
  } else {
    Check(!labels.status().message().empty());
  }
}

std::string Gzip(const std::uint8_t* data, std::size_t size) {
  z_stream stream = {};
  Check(deflateInit2(&stream, 1, Z_DEFLATED, 16 + MAX_WBITS, 8,
                     Z_DEFAULT_STRATEGY) == Z_OK);
  std::string packed(deflateBound(&stream, size), '\0');
  stream.next_in = const_cast<Bytef*>(data);
  stream.avail_in = static_cast<uInt>(size);
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  Check(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  const Parsed images = d2l::ParseIdxImages(file);
  const Parsed labels = d2l::ParseIdxLabels(file);
  CheckImages(images);
  CheckLabels(labels);
  const bool gzipped = size >= 2 && data[0] == 0x1f && data[1] == 0x8b;
  if (gzipped) return 0;
  const std::string packed = Gzip(data, size);
  const Parsed unpacked_images = d2l::ParseIdxImages(packed);
  const Parsed unpacked_labels = d2l::ParseIdxLabels(packed);
  Check(unpacked_images.ok() == images.ok() &&
        unpacked_labels.ok() == labels.ok());
  if (images.ok()) Check(*unpacked_images == *images);
  if (labels.ok()) Check(*unpacked_labels == *labels);
  return 0;
}
