// Where a lane of a reduction finds its elements, if these are rows that lie
// apart: one division for all of them.
//
//   // On the host: elements `step` apart, of rows of 49.
//   const RowPlaces rows(49, /*n=*/490, /*row_stride=*/2000, /*stride=*/1,
//                        /*step=*/32);
//   // On the device.
//   RowPlaces::Walk walk = rows.From(40);
//   walk.Next();  // 40
//   walk.Next();  // 2023: of element 72, which is number 23 in row 1
//
// A trivially copyable value. Thread-safe, cannot fail.

#ifndef D2L_COMMON_KERNELS_CUDA_INDEX_ROW_PLACES_H_
#define D2L_COMMON_KERNELS_CUDA_INDEX_ROW_PLACES_H_

#include <algorithm>
#include <cstdint>

#include "common/kernels/cuda/index/divider.h"
#include "common/kernels/host_device.h"

namespace d2l::kernels::cuda {

class RowPlaces {
 public:
  // n elements in rows of `size`.
  RowPlaces(std::int64_t size, std::int64_t n, std::int64_t row_stride,
            std::int64_t stride, std::int64_t step)
      : size_(std::max<std::int64_t>(size, 1)),
        by_size_(size_, n),
        row_stride_(row_stride),
        stride_(stride),
        step_(step % size_),
        offset_(step / size_ * row_stride + step_ * stride),
        next_row_(row_stride - size_ * stride) {}

  // The places of an element and of those that follow it.
  class Walk {
   public:
    D2L_HOST_DEVICE std::int64_t Next() {
      const std::int64_t place = place_;
      in_row_ += rows_.step_;
      place_ += rows_.offset_;
      if (in_row_ >= rows_.size_) {
        in_row_ -= rows_.size_;
        place_ += rows_.next_row_;
      }
      return place;
    }

   private:
    friend class RowPlaces;
    D2L_HOST_DEVICE Walk(const RowPlaces& rows, std::int64_t element)
        : rows_(rows) {
      const std::int64_t row = rows.by_size_.Split(element, &in_row_);
      place_ = row * rows.row_stride_ + in_row_ * rows.stride_;
    }

    const RowPlaces& rows_;
    std::int64_t in_row_, place_;
  };
  D2L_HOST_DEVICE Walk From(std::int64_t element) const {
    return Walk(*this, element);
  }

 private:
  std::int64_t size_;
  Splitter by_size_;
  std::int64_t row_stride_, stride_;
  // From an element to the next: in a row, and in memory, before the row ends.
  std::int64_t step_, offset_;
  std::int64_t next_row_;  // from behind a row to the next one
};

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_INDEX_ROW_PLACES_H_
