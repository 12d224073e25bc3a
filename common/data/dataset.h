// Dataset: labelled images of 28x28 bytes in the host's memory, as
// Fashion-MNIST has them.
//
//   Dataset data = GenerateImages(1000);  // or LoadFashionMnist: idx.h
//   data.name;                            // "generated data, seed 0"
//
// The name is for all that reports an accuracy. A value; where it comes from:
// generated.h, idx.h; how it becomes minibatches: loader.h.

#ifndef D2L_COMMON_DATA_DATASET_H_
#define D2L_COMMON_DATA_DATASET_H_

#include <cstdint>
#include <string>
#include <vector>

namespace d2l {

inline constexpr int kImageSide = 28;
inline constexpr int kImagePixels = kImageSide * kImageSide;
inline constexpr int kClasses = 10;

struct Dataset {
  std::string name;
  std::vector<std::uint8_t> images;  // row by row, 0 is black
  std::vector<std::uint8_t> labels;  // below kClasses

  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
};

}  // namespace d2l

#endif  // D2L_COMMON_DATA_DATASET_H_
