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
// The 16-bit floats BF16 and F16 are read as float32, which has all their
// values. Saved metadata has "format": "pt" unless it has a "format": Python
// programs that read weights of PyTorch ask for it.
//
// Saving waits for the tensors, on any device. A tensor that is not contiguous
// is saved as a contiguous one, and memory shared by two tensors is saved
// twice. The file is replaced atomically (common/base/files/atomic_file.h).
//
// Files may be untrusted: a header is refused unless it describes each byte of
// the file exactly once, and so are duplicate keys.
//
// Errors of files are an absl::Status that names the file, the tensor, and the
// reason. Reading a tensor throws as ToVector does (common/ops/read.h), and
// std::invalid_argument if it is undefined. Thread-safe.

#ifndef D2L_COMMON_SAFETENSORS_SAFETENSORS_H_
#define D2L_COMMON_SAFETENSORS_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/files/atomic_file.h"
#include "common/device/device.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"
#include "common/tensor/tensor.h"

namespace d2l::safetensors {

using NamedTensors = std::map<std::string, Tensor>;
using Metadata = std::map<std::string, std::string>;

// The limit of Python's library.
inline constexpr std::int64_t kMaxHeaderBytes = 100'000'000;

struct File {
  NamedTensors tensors;
  Metadata metadata;
};

absl::Status SaveFile(const NamedTensors& tensors, const std::string& path,
                      const Metadata& metadata = {});

// Writes the same to an open file, which the caller commits. InvalidArgument
// for names that are not UTF-8, and for a header of more than kMaxHeaderBytes.
// Commit reports errors of the file.
absl::Status Write(const NamedTensors& tensors, AtomicFile& file,
                   const Metadata& metadata = {});

// Errors: NotFound, InvalidArgument, or ResourceExhausted if the device has too
// little memory. The tensors are on `device`.
absl::StatusOr<File> LoadFile(const std::string& path,
                              Device device = Device());

// How the elements of a file's tensor stand in it.
enum class Encoding : std::uint8_t { kOfDType, kBFloat16, kFloat16 };

// A tensor of a file.
struct Entry {
  std::string name;
  DType dtype = DType::kFloat32;  // in memory
  Shape shape;
  std::uint64_t begin = 0;  // in the data
  std::uint64_t end = 0;
  Encoding encoding = Encoding::kOfDType;

  std::size_t element_bytes() const {
    return encoding == Encoding::kOfDType ? DTypeSize(dtype) : 2;
  }
};
struct Header {
  std::vector<Entry> entries;  // in the order of the data
  Metadata metadata;
};

// Throws FormatError (common/base/files/format_error.h), also unless the
// tensors cover each of the data_bytes exactly once.
Header ParseHeader(std::string_view json, std::uint64_t data_bytes);
// Throws FormatError for text that is not UTF-8 and a tensor "__metadata__".
std::string HeaderToJson(const Header& header);

// Reads tensors of an open file into existing memory:
//   auto reader = safetensors::Reader::Open("net.safetensors");
//   for (const safetensors::Entry& entry : reader->header().entries) …
//   absl::Status read = reader->ReadInto({{"bias", bias}});
class Reader {
 public:
  // Errors: as of LoadFile.
  static absl::StatusOr<Reader> Open(const std::string& path);
  Reader(Reader&& other) noexcept;
  Reader& operator=(Reader&&) = delete;
  ~Reader();

  const Header& header() const { return header_; }
  // Writes the entry of its name into each tensor, on the devices' current
  // streams; numbers are converted to the tensors' dtypes. Returns when the
  // file has been read. Throws std::invalid_argument for a tensor without an
  // entry, or of another shape. DataLoss if the file cannot be read to the end.
  absl::Status ReadInto(const NamedTensors& tensors);

 private:
  friend absl::StatusOr<File> LoadFile(const std::string&, Device);
  Reader() = default;
  void ReadHeader();
  void ReadBytes(void* to, std::uint64_t at, std::size_t bytes);
  void ReadTensor(const Entry& entry, const Tensor& target);

  std::string path_;
  int descriptor_ = -1;
  std::uint64_t data_at_ = 0;  // where the tensors begin
  Header header_;
};

}  // namespace d2l::safetensors

#endif  // D2L_COMMON_SAFETENSORS_SAFETENSORS_H_
