// Reads Fashion-MNIST: four files in the IDX format, gzipped or not.
//
//   absl::StatusOr<Dataset> training =
//       LoadFashionMnist("/data/fashion", Split::kTraining);
//
// MNIST's and KMNIST's files have the same names and format. An IDX file is
// numbers of 32 bits, the highest byte first (a magic number, the count and,
// for images, their sides), and a byte for each pixel or label.
//
// Files may be untrusted: nothing larger than 1 GiB is read or made, and a file
// that is shorter, longer or otherwise not what it says is refused. Errors are
// an absl::Status that names the file, what is wrong and what to do.
// Thread-safe.

#ifndef D2L_COMMON_DATA_IDX_H_
#define D2L_COMMON_DATA_IDX_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/data/dataset.h"

namespace d2l {

enum class Split { kTraining, kTest };

// The dataset's name is "Fashion-MNIST, DIRECTORY". NotFound if a file is not
// there, InvalidArgument if it is not what it should be.
absl::StatusOr<Dataset> LoadFashionMnist(const std::string& directory,
                                         Split split);

// The pixels of a file of 28x28 images, and the labels of a file of labels, all
// below kClasses. `file`: its bytes, gzipped or not.
absl::StatusOr<std::vector<std::uint8_t>> ParseIdxImages(std::string_view file);
absl::StatusOr<std::vector<std::uint8_t>> ParseIdxLabels(std::string_view file);

}  // namespace d2l

#endif  // D2L_COMMON_DATA_IDX_H_
