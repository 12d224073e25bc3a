#include "common/safetensors/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "common/base/console/text.h"
#include "common/base/files/format_error.h"
#include "common/base/source_location.h"
#include "common/device/failure.h"
#include "common/device/memory/memory.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/primitives.h"

namespace d2l::safetensors {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "the bytes of the format are little-endian");

template <typename T>
std::string_view BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()),
          values.size() * sizeof(T)};
}

// The value of a 16-bit float. A NaN keeps its sign and its payload.
float FloatOfHalf(std::uint16_t bits, Encoding encoding) {
  const std::uint32_t sign = (bits & 0x8000u) << 16;
  std::uint32_t wide = std::uint32_t{bits} << 16;  // of kBFloat16
  if (encoding == Encoding::kFloat16) {
    constexpr std::uint32_t kSubnormal = 0x400, kInfinite = 0x7c00;
    const std::uint32_t magnitude = bits & 0x7fffu;
    if (magnitude < kSubnormal) {
      const float value = static_cast<float>(magnitude) * 0x1p-24f;
      return sign != 0 ? -value : value;
    }
    // The exponent has 3 bits more, and that of 1 is 127 instead of 15.
    // Infinity's and NaN's goes from 31 to 255.
    const std::uint32_t shift = magnitude < kInfinite ? 127 - 15 : 255 - 31;
    wide = sign | ((magnitude << 13) + (shift << 23));
  }
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

// The bytes that are read, or copied from a GPU, at a time: they stay in the
// caches, and the device copies one piece while the next one is read.
constexpr std::size_t kPiece = std::size_t{1} << 20;

// The order of Python's library: larger elements first, so that all are
// aligned.
Header HeaderOf(const NamedTensors& tensors, const Metadata& metadata) {
  Header header;
  header.metadata = metadata;
  header.metadata.emplace("format", "pt");  // unless there is one
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

// Calls `write` with the elements' bytes in pieces, until it returns false.
template <typename F>
bool ForPieces(const Tensor& x, const F& write) {
  if (x.device().type() == DeviceType::kCpu && x.is_contiguous()) {
    // The host can read the device's memory.
    WaitToRead(x);
    return write(
        {static_cast<const char*>(x.data()), x.numel() * DTypeSize(x.dtype())});
  }
  const Tensor flat = View(Contiguous(x), {x.numel()});
  const auto step = static_cast<std::int64_t>(4 * kPiece);
  for (std::int64_t at = 0; at < x.numel(); at += step) {
    const Tensor piece = Slice(flat, 0, at, std::min(at + step, x.numel()));
    const bool written = VisitDType(x.dtype(), [&](auto zero) {
      return write(BytesOf(ToVector<decltype(zero)>(piece)));
    });
    if (!written) return false;
  }
  return true;
}

// Saves what torch.save wrote in its first argument to the second one. Tensors
// that share memory, or are not contiguous, are refused by save_file.
constexpr const char* kConvertTorchSave =
    "  python3 -c 'import sys, torch; from safetensors.torch import save_file; "
    "state = torch.load(sys.argv[1], \"cpu\", weights_only=True); "
    "save_file({name: x.contiguous().clone() for name, x in state.items()}, "
    "sys.argv[2])'";

absl::Status NoSafetensors(const std::string& path, std::string_view what) {
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s is no safetensors file: %s", PrintableText(path), what));
}

}  // namespace

absl::Status Write(const NamedTensors& tensors, AtomicFile& file,
                   const Metadata& metadata) {
  const Header header = HeaderOf(tensors, metadata);
  std::string json;
  try {
    json = HeaderToJson(header);
  } catch (const FormatError& error) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "cannot write %s: %s", PrintableText(file.path()), error.what));
  }
  json.resize((json.size() + 7) / 8 * 8, ' ');
  if (static_cast<std::int64_t>(json.size()) > kMaxHeaderBytes) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "cannot write %s: the names and shapes of %d tensors need %d bytes; "
        "%d is the most",
        PrintableText(file.path()), tensors.size(), json.size(),
        kMaxHeaderBytes));
  }
  const auto write = [&](std::string_view bytes) { return file.Write(bytes); };
  const std::uint64_t size = json.size();
  write({reinterpret_cast<const char*>(&size), sizeof(size)});
  write(json);
  for (const Entry& entry : header.entries) {
    if (!ForPieces(tensors.at(entry.name), write)) break;
  }
  return absl::OkStatus();
}

absl::Status SaveFile(const NamedTensors& tensors, const std::string& path,
                      const Metadata& metadata) {
  absl::StatusOr<AtomicFile> file = AtomicFile::Open(path);
  if (!file.ok()) return file.status();
  const absl::Status written = Write(tensors, *file, metadata);
  return written.ok() ? file->Commit() : written;
}

Reader::Reader(Reader&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      data_at_(other.data_at_),
      header_(std::move(other.header_)) {}

Reader::~Reader() {
  if (descriptor_ >= 0) close(descriptor_);
}

// Throws FormatError.
void Reader::ReadBytes(void* to, std::uint64_t at, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t n = pread(descriptor_, static_cast<char*>(to) + done,
                            bytes - done, static_cast<off_t>(at + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) Refuse("%s", std::strerror(errno));
    if (n == 0) Refuse("it became shorter while it was read");
    done += static_cast<std::size_t>(n);
  }
}

// Throws FormatError.
void Reader::ReadHeader() {
  struct stat status;
  if (fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
    Refuse("it is not a regular file");
  }
  const auto file_size = static_cast<std::uint64_t>(status.st_size);
  std::uint64_t size = 0;
  if (file_size < sizeof(size)) Refuse("it has less than 8 bytes");
  ReadBytes(&size, 0, sizeof(size));
  const std::uint64_t most = std::min(
      file_size - sizeof(size), static_cast<std::uint64_t>(kMaxHeaderBytes));
  if (size > most) {
    std::string first(std::min<std::uint64_t>(file_size, 32), '\0');
    ReadBytes(first.data(), 0, first.size());
    const absl::string_view kind = KindOfFile(first);
    if (absl::StrContains(kind, "torch.save")) {
      const std::string file = PrintableText(path_);
      Refuse(
          "it is %s. If it holds a state dict, convert it:\n%s \"%s\" "
          "\"%s.safetensors\"",
          kind, kConvertTorchSave, file, file);
    }
    if (!kind.empty()) Refuse("it is %s", kind);
    Refuse("a header of %d bytes is announced; %d is the most", size, most);
  }
  std::string json(size, '\0');
  ReadBytes(json.data(), sizeof(size), json.size());
  data_at_ = sizeof(size) + size;
  header_ = ParseHeader(json, file_size - data_at_);
}

absl::StatusOr<Reader> Reader::Open(const std::string& path) {
  Reader reader;
  reader.path_ = path;
  // A pipe without a writer would block here.
  reader.descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (reader.descriptor_ < 0) {
    return absl::NotFoundError(absl::StrFormat(
        "cannot read %s: %s", PrintableText(path), std::strerror(errno)));
  }
  try {
    reader.ReadHeader();
  } catch (const FormatError& wrong) {
    return NoSafetensors(path, wrong.what);
  }
  return reader;
}

// Throws FormatError.
void Reader::ReadTensor(const Entry& entry, const Tensor& target) {
  if (entry.dtype != target.dtype() || !target.is_contiguous()) {
    const Tensor read = Empty(entry.shape, target.device(), entry.dtype);
    ReadTensor(entry, read);
    CopyTo(read, target);
    return;
  }
  const auto at = SourceLocation::Current();
  const auto element = static_cast<std::int64_t>(DTypeSize(entry.dtype));
  const auto element_in_file = static_cast<std::int64_t>(entry.element_bytes());
  const std::int64_t step = static_cast<std::int64_t>(kPiece) / element;
  if (target.numel() > step) {
    // Memory whose writer failed must be written as a whole.
    try {
      WaitToRead(target);
    } catch (const AsyncError&) {
      CopyTo(ZerosLike(target), target);
    }
  }
  const Tensor flat = View(target, {target.numel()});
  std::vector<std::uint16_t> halves;
  for (std::int64_t i = 0; i < target.numel(); i += step) {
    const std::int64_t n = std::min(step, target.numel() - i);
    StorageRef piece =
        PinnedMemory(target.device()).AllocatePinned(n * element);
    const std::uint64_t begin = data_at_ + entry.begin + i * element_in_file;
    if (entry.encoding == Encoding::kOfDType) {
      ReadBytes(piece->data(), begin, n * element);
    } else {
      halves.resize(n);
      ReadBytes(halves.data(), begin, n * element_in_file);
      std::transform(halves.begin(), halves.end(),
                     static_cast<float*>(piece->data()),
                     [&](std::uint16_t half) {
                       return FloatOfHalf(half, entry.encoding);
                     });
    }
    const FromVectorPrimitive copy({{n}, entry.dtype, target.device()},
                                   std::move(piece));
    ApplyInPlace(copy, {}, Slice(flat, 0, i, i + n), at);
  }
}

absl::Status Reader::ReadInto(const NamedTensors& tensors) {
  std::size_t found = 0;
  for (const Entry& entry : header_.entries) {
    const auto target = tensors.find(entry.name);
    if (target == tensors.end()) continue;
    if (target->second.shape() != entry.shape) {
      throw std::invalid_argument(absl::StrFormat(
          "[ReadInto] \"%s\" is %s; in %s it has the shape %s", entry.name,
          target->second.Describe(), path_, entry.shape.ToString()));
    }
    ++found;
  }
  if (found != tensors.size()) {
    throw std::invalid_argument(
        absl::StrFormat("[ReadInto] %s has %d of the %d tensors that are asked "
                        "for; header() tells which",
                        path_, found, tensors.size()));
  }
  try {
    for (const Entry& entry : header_.entries) {
      const auto target = tensors.find(entry.name);
      if (target == tensors.end()) continue;
      ReadTensor(entry, target->second);
    }
  } catch (const FormatError& wrong) {
    return absl::DataLossError(absl::StrFormat(
        "%s: %s; some of the tensors were overwritten", path_, wrong.what));
  }
  return absl::OkStatus();
}

absl::StatusOr<File> LoadFile(const std::string& path, Device device) {
  absl::StatusOr<Reader> reader = Reader::Open(path);
  if (!reader.ok()) return reader.status();
  File file;
  try {
    for (const Entry& entry : reader->header_.entries) {
      Tensor& tensor = file.tensors[entry.name];
      tensor = Empty(entry.shape, device, entry.dtype);
      reader->ReadTensor(entry, tensor);
    }
  } catch (const FormatError& wrong) {
    return NoSafetensors(path, wrong.what);
  } catch (const OutOfMemoryError& wrong) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "cannot load %s: %s", PrintableText(path), wrong.what()));
  }
  file.metadata = std::move(reader->header_.metadata);
  return file;
}

}  // namespace d2l::safetensors
