// Dataset: labelled images of 28x28 bytes in the host's memory, as
// Fashion-MNIST has them.
//
//   Dataset training = GenerateImages(12'000);
//   Dataset test = GenerateImages(2'000, /*seed=*/0, /*first=*/12'000);
//   training.name;  // "generated data, seed 0"
//   absl::StatusOr<Dataset> fashion =
//       LoadFashionMnist("/data/fashion", DatasetSplit::kTraining);
//
// Reports of an accuracy print the name. loader.h makes minibatches of a
// dataset. A value; the functions are thread-safe.

#ifndef D2L_COMMON_DATA_DATASET_H_
#define D2L_COMMON_DATA_DATASET_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/console/language.h"

namespace d2l {

inline constexpr int kImageSide = 28;
inline constexpr int kImagePixels = kImageSide * kImageSide;
inline constexpr int kClasses = 10;

struct Dataset {
  Phrase name;
  std::vector<std::uint8_t> images;  // row by row, 0 is black
  std::vector<std::uint8_t> labels;  // below kClasses

  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
};

// Images to train on if there are no files: ten glyphs made of strokes. Makes
// the images first, first + 1, ... of a seed, `count` of them. Throws
// std::invalid_argument for negative numbers.
//
// A glyph is rotated by up to 0.35 radians, scaled, and moved by up to 4 pixels
// each way; two random strokes and noise are added. So a linear model, which
// cannot follow a glyph that moves, stays far behind a convolutional network.
// Image i of a seed is a function of the two, with the same bits on every
// machine, and its label is i mod 10.
Dataset GenerateImages(std::int64_t count, std::uint64_t seed = 0,
                       std::int64_t first = 0);

// Reads Fashion-MNIST: four files in the IDX format, gzipped or not. MNIST's
// and KMNIST's files have the same names and format. An IDX file is numbers of
// 32 bits, the highest byte first (a magic number, the count and, for images,
// their sides), and a byte for each pixel or label.
//
// Files may be untrusted: nothing larger than 1 GiB is read or allocated, and a
// file that is shorter, longer or otherwise different from its header is
// refused. Errors are an absl::Status that names the file, the reason and a
// remedy: NotFound if a file does not exist, else InvalidArgument.
enum class DatasetSplit { kTraining, kTest };

// The dataset's name is "Fashion-MNIST, DIRECTORY".
absl::StatusOr<Dataset> LoadFashionMnist(const std::string& directory,
                                         DatasetSplit split);

// The pixels of a file of 28x28 images, and the labels of a file of labels, all
// below kClasses. `file` is the content of the file, gzipped or not.
absl::StatusOr<std::vector<std::uint8_t>> ParseIdxImages(std::string_view file);
absl::StatusOr<std::vector<std::uint8_t>> ParseIdxLabels(std::string_view file);

}  // namespace d2l

#endif  // D2L_COMMON_DATA_DATASET_H_
