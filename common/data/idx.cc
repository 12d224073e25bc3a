#include "common/data/idx.h"

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/atomic_file.h"

namespace d2l {
namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 30;
// No byte of a gzip file can stand for more bytes than this (zlib's
// documentation: 1032).
constexpr std::uint64_t kMaxRatio = 1032;

constexpr char kEndsEarly[] =
    "it ends early; was the download broken off? Download it again";

// Reads the bytes of a file from the beginning; of a gzipped one, those that it
// stands for.
class Input {
 public:
  explicit Input(std::string_view file)
      : gzipped_(file.substr(0, 2) == "\x1f\x8b"),
        most_(file.size() * (gzipped_ ? kMaxRatio : 1)),
        plain_(gzipped_ ? "" : file) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(file.data()));
    stream_.avail_in = static_cast<uInt>(file.size());
    constexpr int kGzip = 16;  // with a header of gzip's
    if (gzipped_) ready_ = inflateInit2(&stream_, kGzip + MAX_WBITS) == Z_OK;
  }
  ~Input() {
    if (ready_) inflateEnd(&stream_);
  }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  // It cannot have more bytes than this.
  std::uint64_t most() const { return most_; }

  // Exactly that many.
  absl::Status Read(std::uint8_t* to, std::size_t bytes) {
    if (!gzipped_) {
      if (bytes > plain_.size()) return absl::InvalidArgumentError(kEndsEarly);
      std::copy_n(plain_.begin(), bytes, to);
      plain_.remove_prefix(bytes);
      return absl::OkStatus();
    }
    const absl::Status status = Inflate(to, bytes);
    if (status.ok() && stream_.avail_out > 0) {
      return absl::InvalidArgumentError(
          "the data in it is shorter than its header says");
    }
    return status;
  }

  // There is nothing more, and the checksum is right.
  absl::Status End() {
    constexpr char kLonger[] = "there is more data in it than its header says";
    std::size_t more = plain_.size();
    if (gzipped_) {
      std::uint8_t byte;
      const absl::Status status = Inflate(&byte, 1);
      if (!status.ok()) return status;
      more = 1 - stream_.avail_out + stream_.avail_in;
    }
    return more == 0 ? absl::OkStatus() : absl::InvalidArgumentError(kLonger);
  }

 private:
  // Less only at the end of the data.
  absl::Status Inflate(std::uint8_t* to, std::size_t bytes) {
    if (!ready_) return absl::ResourceExhaustedError("zlib has no memory");
    stream_.next_out = to;
    stream_.avail_out = static_cast<uInt>(bytes);
    const int result = inflate(&stream_, Z_SYNC_FLUSH);
    if (result == Z_STREAM_END || stream_.avail_out == 0) {
      return absl::OkStatus();
    }
    if (result == Z_OK || result == Z_BUF_ERROR) {
      return absl::InvalidArgumentError(kEndsEarly);
    }
    return absl::InvalidArgumentError(
        absl::StrFormat("its gzip data is damaged (%s); download it again",
                        stream_.msg != nullptr ? stream_.msg : zError(result)));
  }

  const bool gzipped_;
  const std::uint64_t most_;
  bool ready_ = false;
  std::string_view plain_;  // what is left of a file that is not gzipped
  z_stream stream_ = {};
};

absl::StatusOr<std::uint32_t> ReadNumber(Input& input) {
  std::uint8_t bytes[4];
  if (const absl::Status status = input.Read(bytes, 4); !status.ok()) {
    return status;
  }
  std::uint32_t number = 0;
  for (const std::uint8_t byte : bytes) number = number << 8 | byte;
  return number;
}

// The bytes after the header. The sides are of an image: none for labels.
absl::StatusOr<std::vector<std::uint8_t>> Parse(
    std::string_view file, const char* kind, std::uint32_t magic,
    std::initializer_list<std::uint32_t> sides) {
  if (file.size() > kMaxBytes) {
    return absl::InvalidArgumentError("it is larger than 1 GiB");
  }
  Input input(file);
  absl::StatusOr<std::uint32_t> number = ReadNumber(input);
  if (!number.ok()) return number.status();
  if (*number != magic) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "it begins with %#010x; an IDX file of %s begins with %#010x", *number,
        kind, magic));
  }
  number = ReadNumber(input);
  if (!number.ok()) return number.status();
  std::uint64_t bytes = *number;
  for (const std::uint32_t wanted : sides) {
    const absl::StatusOr<std::uint32_t> side = ReadNumber(input);
    if (!side.ok()) return side.status();
    if (*side != wanted) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "it says that its images have a side of %d pixels; images of %dx%d "
          "are wanted",
          *side, kImageSide, kImageSide));
    }
    bytes *= wanted;
  }
  // Before memory is taken for them.
  if (bytes > kMaxBytes) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "it says that it has %d %s, which is more than 1 GiB", *number, kind));
  }
  if (bytes > input.most()) return absl::InvalidArgumentError(kEndsEarly);
  std::vector<std::uint8_t> data(bytes);
  absl::Status status = input.Read(data.data(), bytes);
  if (status.ok()) status = input.End();
  if (!status.ok()) return status;
  return data;
}

using Parser = absl::StatusOr<std::vector<std::uint8_t>> (*)(std::string_view);

// The file of that name in the directory, or of that name and ".gz".
absl::StatusOr<std::vector<std::uint8_t>> Load(const std::string& directory,
                                               const std::string& name,
                                               Parser parse) {
  std::string path = (std::filesystem::path(directory) / name).string();
  std::error_code none;
  if (!std::filesystem::exists(path, none)) path += ".gz";
  if (!std::filesystem::exists(path, none)) {
    return absl::NotFoundError(absl::StrFormat(
        "there is no %s in %s, gzipped or not. To download it: wget -P %s "
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/%s.gz",
        name, directory, directory, name));
  }
  std::error_code error;
  const std::uint64_t size = std::filesystem::is_regular_file(path, error)
                                 ? std::filesystem::file_size(path, error)
                                 : kMaxBytes + 1;
  if (error || size > kMaxBytes) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s is not a file of at most 1 GiB that can be read", path));
  }
  const std::string file = ReadFile(path);
  if (file.size() != size) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s cannot be read: %d of its %d bytes came; look at its permissions: "
        "ls -l %s",
        path, file.size(), size, path));
  }
  absl::StatusOr<std::vector<std::uint8_t>> parsed = parse(file);
  if (parsed.ok()) return parsed;
  return absl::Status(
      parsed.status().code(),
      absl::StrCat("cannot use ", path, ": ", parsed.status().message()));
}

}  // namespace

absl::StatusOr<std::vector<std::uint8_t>> ParseIdxImages(
    std::string_view file) {
  return Parse(file, "images", 0x803, {kImageSide, kImageSide});
}

absl::StatusOr<std::vector<std::uint8_t>> ParseIdxLabels(
    std::string_view file) {
  absl::StatusOr<std::vector<std::uint8_t>> labels =
      Parse(file, "labels", 0x801, {});
  if (!labels.ok()) return labels;
  for (std::size_t i = 0; i < labels->size(); ++i) {
    if ((*labels)[i] < kClasses) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("label %d of it is %d; labels are from 0 to %d", i,
                        (*labels)[i], kClasses - 1));
  }
  return labels;
}

absl::StatusOr<Dataset> LoadFashionMnist(const std::string& directory,
                                         Split split) {
  const std::string prefix = split == Split::kTraining ? "train" : "t10k";
  absl::StatusOr<std::vector<std::uint8_t>> images =
      Load(directory, prefix + "-images-idx3-ubyte", ParseIdxImages);
  if (!images.ok()) return images.status();
  absl::StatusOr<std::vector<std::uint8_t>> labels =
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
