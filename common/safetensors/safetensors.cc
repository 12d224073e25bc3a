#include "common/safetensors/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/sha256.h"
#include "common/device/failure.h"
#include "common/ops/ops.h"
#include "common/safetensors/header.h"
#include "common/tensor/dtype.h"

namespace d2l::safetensors {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "the bytes of the format are little-endian");

template <typename T>
std::string_view BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()),
          values.size() * sizeof(T)};
}

// Reads a file from its beginning. Throws FormatError.
class Input {
 public:
  Input(int descriptor, std::uint64_t size)
      : descriptor_(descriptor), left_(size) {}

  void Read(void* to, std::size_t bytes) {
    char* at = static_cast<char*>(to);
    for (std::size_t done = 0; done < bytes;) {
      const ssize_t n = read(descriptor_, at + done, bytes - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw FormatError{std::strerror(errno)};
      if (n == 0) throw FormatError{"it became shorter while it was read"};
      done += static_cast<std::size_t>(n);
    }
    hash_.Update({at, bytes});
    left_ -= bytes;
  }
  std::uint64_t left() const { return left_; }
  std::string Hash() { return hash_.Hex(); }

 private:
  int descriptor_;
  std::uint64_t left_;
  Sha256 hash_;
};

// In pieces, so that the host needs little memory besides.
Tensor ReadTensor(const Entry& entry, Device device, Input& input) {
  const std::int64_t numel = entry.shape.numel();
  const Tensor flat = Empty({numel}, device, entry.dtype);
  VisitDType(entry.dtype, [&](auto zero) {
    using T = decltype(zero);
    constexpr std::int64_t kPiece = (std::int64_t{4} << 20) / sizeof(T);
    for (std::int64_t at = 0; at < numel; at += kPiece) {
      std::vector<T> piece(std::min(kPiece, numel - at));
      const auto size = static_cast<std::int64_t>(piece.size());
      input.Read(piece.data(), piece.size() * sizeof(T));
      CopyTo(FromVector(piece, {size}, device), Slice(flat, 0, at, at + size));
    }
  });
  return View(flat, entry.shape);
}

File Read(Input& input, Device device, std::int64_t max_header_bytes) {
  if (input.left() < 8) throw FormatError{"it has less than 8 bytes"};
  std::uint64_t size = 0;
  input.Read(&size, sizeof(size));
  const std::uint64_t most =
      std::min(input.left(), static_cast<std::uint64_t>(max_header_bytes));
  if (size > most) {
    throw FormatError{absl::StrFormat(
        "a header of %d bytes is announced; %d is the most", size, most)};
  }
  std::string json(size, '\0');
  input.Read(json.data(), json.size());
  Header header = ParseHeader(json, input.left());
  File file;
  for (const Entry& entry : header.entries) {
    file.tensors[entry.name] = ReadTensor(entry, device, input);
  }
  file.metadata = std::move(header.metadata);
  file.sha256 = input.Hash();
  return file;
}

// In the order in which Python's library writes them: larger elements first, so
// that all are aligned.
Header HeaderOf(const NamedTensors& tensors, const Metadata& metadata) {
  Header header;
  header.metadata = metadata;
  for (const auto& [name, tensor] : tensors) {
    header.entries.push_back({name, tensor.dtype(), tensor.shape(), 0, 0});
  }
  std::stable_sort(header.entries.begin(), header.entries.end(),
                   [](const Entry& a, const Entry& b) {
                     return DTypeSize(a.dtype) > DTypeSize(b.dtype);
                   });
  std::uint64_t at = 0;
  for (Entry& entry : header.entries) {
    entry.begin = at;
    at += entry.shape.numel() * DTypeSize(entry.dtype);
    entry.end = at;
  }
  return header;
}

}  // namespace

absl::StatusOr<std::string> Write(const NamedTensors& tensors, AtomicFile& file,
                                  const Metadata& metadata,
                                  std::int64_t max_header_bytes) {
  const Header header = HeaderOf(tensors, metadata);
  std::string json;
  try {
    json = HeaderToJson(header);
  } catch (const FormatError& error) {
    return absl::InvalidArgumentError(
        absl::StrFormat("cannot write %s: %s", file.path(), error.what));
  }
  json.resize((json.size() + 7) / 8 * 8, ' ');
  if (static_cast<std::int64_t>(json.size()) > max_header_bytes) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "cannot write %s: the names and shapes of %d tensors need %d bytes; "
        "%d is the most",
        file.path(), tensors.size(), json.size(), max_header_bytes));
  }
  Sha256 hash;
  const auto write = [&](std::string_view bytes) {
    hash.Update(bytes);
    return file.Write(bytes);
  };
  const std::uint64_t size = json.size();
  write({reinterpret_cast<const char*>(&size), sizeof(size)});
  write(json);
  for (const Entry& entry : header.entries) {
    const bool written = VisitDType(entry.dtype, [&](auto zero) {
      using T = decltype(zero);
      return write(BytesOf(ToVector<T>(tensors.at(entry.name))));
    });
    if (!written) break;
  }
  return hash.Hex();
}

absl::Status SaveFile(const NamedTensors& tensors, const std::string& path,
                      const Metadata& metadata) {
  absl::StatusOr<AtomicFile> file = AtomicFile::Open(path);
  if (!file.ok()) return file.status();
  const absl::Status written = Write(tensors, *file, metadata).status();
  return written.ok() ? file->Commit() : written;
}

absl::StatusOr<File> LoadFile(const std::string& path, Device device,
                              std::int64_t max_header_bytes) {
  // A pipe without a writer would block.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    return absl::NotFoundError(
        absl::StrFormat("cannot read %s: %s", path, std::strerror(errno)));
  }
  const absl::Cleanup closes = [&] { close(descriptor); };
  const auto error = [&](std::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s is no safetensors file: %s", path, what));
  };
  struct stat there;
  if (fstat(descriptor, &there) != 0 || !S_ISREG(there.st_mode)) {
    return error("it is not a regular file");
  }
  try {
    Input input(descriptor, static_cast<std::uint64_t>(there.st_size));
    return Read(input, device, max_header_bytes);
  } catch (const FormatError& wrong) {
    return error(wrong.what);
  } catch (const OutOfMemoryError& wrong) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("cannot load %s: %s", path, wrong.what()));
  }
}

}  // namespace d2l::safetensors
