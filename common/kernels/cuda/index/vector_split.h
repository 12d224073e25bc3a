// Cuts a contiguous range for loads and stores of whole vectors: a few elements
// up to the first address that is a multiple of the vector, vectors, and the
// remaining elements.
//
//   Alignment alignment(/*vector=*/4);
//   alignment.Add(out, sizeof(float));
//   alignment.Add(in, sizeof(float));
//   const VectorSplit split = SplitVectors(n, alignment);
//
// A vector is a number of *elements*, the same for every array, so arrays of
// different types are processed side by side. Where the alignments of the
// arrays differ, all elements are processed one by one. Pure functions.

#ifndef D2L_COMMON_KERNELS_CUDA_INDEX_VECTOR_SPLIT_H_
#define D2L_COMMON_KERNELS_CUDA_INDEX_VECTOR_SPLIT_H_

#include <cstddef>
#include <cstdint>

#include "common/kernels/host_device.h"

namespace d2l::kernels::cuda {

// The widest load or store of a thread.
inline constexpr int kVectorBytes = 16;

// Elements [0, head) and the last `tail` are processed one by one; `vectors`
// vectors lie between them.
struct VectorSplit {
  std::int64_t head;
  std::int64_t vectors;
  std::int64_t tail;
  int vector;  // elements

  // The first element of vector v.
  D2L_HOST_DEVICE std::int64_t VectorBegin(std::int64_t v) const {
    return head + v * vector;
  }
  // The index of element e of the head + tail that are processed one by one.
  D2L_HOST_DEVICE std::int64_t SingleElement(std::int64_t e) const {
    return e < head ? e : e + vectors * vector;
  }
};

// Where the arrays' first elements lie within a vector.
class Alignment {
 public:
  explicit Alignment(int vector) : vector_(vector) {}

  void Add(const void* address, std::size_t element_size) {
    const std::size_t place = reinterpret_cast<std::uintptr_t>(address) /
                              element_size % static_cast<std::size_t>(vector_);
    const int head = place == 0 ? 0 : vector_ - static_cast<int>(place);
    fits_ = fits_ && (head_ < 0 || head_ == head);
    head_ = head;
  }

  // Elements before the first whole vector; negative if no element is at the
  // start of a vector in every array.
  int head() const { return !fits_ ? -1 : head_ < 0 ? 0 : head_; }
  int vector() const { return vector_; }

 private:
  int vector_;
  int head_ = -1;  // none added yet
  bool fits_ = true;
};

inline VectorSplit SplitVectors(std::int64_t n, const Alignment& alignment) {
  const int vector = alignment.vector();
  const std::int64_t head = alignment.head();
  if (head < 0 || n - head < vector) return {n, 0, 0, vector};
  const std::int64_t vectors = (n - head) / vector;
  return {head, vectors, n - head - vectors * vector, vector};
}

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_INDEX_VECTOR_SPLIT_H_
