#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/console/text.h"
#include "common/base/files/atomic_file.h"
#include "common/base/files/format_error.h"
#include "common/data/dataset.h"

namespace d2l {
namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 30;
// No byte of a gzip file can encode more bytes than this (zlib's documentation:
// 1032).
constexpr std::uint64_t kMaxRatio = 1032;

constexpr char kEndsEarly[] =
    "it ends early; was the download broken off? Download it again";

constexpr char kShorter[] = "the data in it is shorter than its header says";
constexpr char kLonger[] = "there is more data in it than its header says";

using Bytes = std::vector<std::uint8_t>;

bool IsGzipped(std::string_view file) {
  return file.substr(0, 2) == "\x1f\x8b";
}

// The first `most` bytes of a file, or all if it has fewer; a gzipped file is
// decompressed: all of its members, and the zeros that a tape or a block device
// adds (RFC 1952, section 2.2). gzread would not notice other bytes behind
// them.
Bytes FirstBytes(std::string_view file, std::size_t most) {
  if (!IsGzipped(file)) {
    const std::string_view first = file.substr(0, most);
    return {first.begin(), first.end()};
  }
  z_stream stream = {};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(file.data()));
  stream.avail_in = static_cast<uInt>(file.size());
  constexpr int kGzip = 16;  // expects a gzip header
  if (inflateInit2(&stream, kGzip + MAX_WBITS) != Z_OK) throw std::bad_alloc();
  const absl::Cleanup end = [&] { inflateEnd(&stream); };
  Bytes bytes(most);
  stream.next_out = bytes.data();
  stream.avail_out = static_cast<uInt>(most);
  int result = inflate(&stream, Z_SYNC_FLUSH);
  while (result == Z_STREAM_END && stream.avail_in > 0) {
    const std::string_view rest(reinterpret_cast<const char*>(stream.next_in),
                                stream.avail_in);
    if (rest.find_first_not_of('\0') == rest.npos) break;
    if (!IsGzipped(rest)) Refuse(kLonger);
    inflateReset(&stream);
    result = inflate(&stream, Z_SYNC_FLUSH);
  }
  bytes.resize(most - stream.avail_out);
  if (result != Z_STREAM_END && stream.avail_out > 0) {
    if (result == Z_OK || result == Z_BUF_ERROR) Refuse(kEndsEarly);
    Refuse("its gzip data is damaged (%s); download it again",
           stream.msg != nullptr ? stream.msg : zError(result));
  }
  return bytes;
}

// The bytes after the header. `sides` are an image's: there are none for
// labels. Throws FormatError.
Bytes Parse(std::string_view file, const char* contents, std::uint32_t magic,
            std::initializer_list<std::uint32_t> sides) {
  if (file.size() > kMaxBytes) Refuse("it is larger than 1 GiB");
  const bool gzipped = IsGzipped(file);
  const char* const too_short = gzipped ? kShorter : kEndsEarly;
  const std::size_t header_size = 4 * (2 + sides.size());
  const Bytes header = FirstBytes(file, header_size);
  auto byte = header.begin();
  const auto next_number = [&] {
    if (header.end() - byte < 4) Refuse("%s", too_short);
    std::uint32_t number = 0;
    for (int i = 0; i < 4; ++i) number = number << 8 | *byte++;
    return number;
  };
  if (const std::uint32_t number = next_number(); number != magic) {
    const Bytes first = FirstBytes(file, 32);
    const std::string_view kind =
        KindOfFile({reinterpret_cast<const char*>(first.data()), first.size()});
    if (!kind.empty())
      Refuse("it is %s, not an IDX file of %s", kind, contents);
    Refuse("it begins with %#010x; an IDX file of %s begins with %#010x",
           number, contents, magic);
  }
  const std::uint32_t count = next_number();
  std::uint64_t bytes = count;
  for (const std::uint32_t wanted : sides) {
    if (const std::uint32_t side = next_number(); side != wanted) {
      Refuse(
          "it says that its images have a side of %d pixels; images of %dx%d "
          "are wanted",
          side, kImageSide, kImageSide);
    }
    bytes *= wanted;
  }
  // Checks the size before memory is allocated.
  if (bytes > kMaxBytes) {
    Refuse("it says that it has %d %s, which is more than 1 GiB", count,
           contents);
  }
  if (bytes > file.size() * (gzipped ? kMaxRatio : 1)) Refuse(kEndsEarly);
  // Reads one byte more, which should not exist.
  Bytes data = FirstBytes(file, header_size + bytes + 1);
  data.erase(data.begin(), data.begin() + static_cast<int>(header_size));
  if (data.size() < bytes) Refuse("%s", too_short);
  if (data.size() > bytes) Refuse(kLonger);
  return data;
}

Bytes ParseLabels(std::string_view file) {
  Bytes labels = Parse(file, "labels", 0x801, {});
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < kClasses) continue;
    Refuse("label %d of it is %d; labels are from 0 to %d", i, labels[i],
           kClasses - 1);
  }
  return labels;
}

template <typename F>
absl::StatusOr<Bytes> OrStatus(const F& parse) {
  try {
    return parse();
  } catch (const FormatError& wrong) {
    return absl::InvalidArgumentError(wrong.what);
  }
}

using Parser = absl::StatusOr<Bytes> (*)(std::string_view);

// The file of that name in the directory, or of that name and ".gz".
absl::StatusOr<Bytes> Load(const std::string& directory,
                           const std::string& name, Parser parse) {
  std::string path = (std::filesystem::path(directory) / name).string();
  std::error_code none;
  if (!std::filesystem::exists(path, none)) path += ".gz";
  if (!std::filesystem::exists(path, none)) {
    return absl::NotFoundError(absl::StrFormat(
        "there is no %s in %s, gzipped or not. To download it: wget -P %s "
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/%s.gz",
        name, PrintableText(directory), PrintableText(directory), name));
  }
  std::error_code error;
  const std::uint64_t size = std::filesystem::is_regular_file(path, error)
                                 ? std::filesystem::file_size(path, error)
                                 : kMaxBytes + 1;
  if (error || size > kMaxBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s is not a file of at most 1 GiB that can be read",
                        PrintableText(path)));
  }
  const std::string file = ReadFile(path);
  if (file.size() != size) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s cannot be read: %d of its %d bytes came; look at its permissions: "
        "ls -l %s",
        PrintableText(path), file.size(), size, PrintableText(path)));
  }
  absl::StatusOr<Bytes> parsed = parse(file);
  if (parsed.ok()) return parsed;
  return absl::Status(parsed.status().code(),
                      absl::StrCat("cannot use ", PrintableText(path), ": ",
                                   parsed.status().message()));
}

}  // namespace

absl::StatusOr<Bytes> ParseIdxImages(std::string_view file) {
  return OrStatus([&] {
    return Parse(file, "images", 0x803, {kImageSide, kImageSide});
  });
}

absl::StatusOr<Bytes> ParseIdxLabels(std::string_view file) {
  return OrStatus([&] { return ParseLabels(file); });
}

absl::StatusOr<Dataset> LoadFashionMnist(const std::string& directory,
                                         DatasetSplit split) {
  const std::string prefix =
      split == DatasetSplit::kTraining ? "train" : "t10k";
  absl::StatusOr<Bytes> images =
      Load(directory, prefix + "-images-idx3-ubyte", ParseIdxImages);
  if (!images.ok()) return images.status();
  absl::StatusOr<Bytes> labels =
      Load(directory, prefix + "-labels-idx1-ubyte", ParseIdxLabels);
  if (!labels.ok()) return labels.status();
  if (images->size() != labels->size() * kImagePixels) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s has %d %s images, but %d labels; download the two files together",
        directory, images->size() / kImagePixels, prefix, labels->size()));
  }
  return Dataset{absl::StrCat("Fashion-MNIST, ", directory), *std::move(images),
                 *std::move(labels)};
}

}  // namespace d2l
