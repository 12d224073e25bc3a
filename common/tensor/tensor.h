// Tensor: an array on a device. A small value that shares its memory.
//
//   Tensor x = Ones({2, 3}, device);  // common/ops
//   x.shape();                        // (2, 3)
//   Tensor same = x;                  // a second handle, the same memory
//
// A handle is metadata: shared storage, offset, shape, strides, dtype. It
// launches nothing and waits for nothing; the operations of common/ops do. A
// tensor's values may not have been computed yet: reading them (Item, ToVector,
// printing) waits.
//
// Ownership: the memory is returned when the last handle is released, at once,
// even if queued work still uses it: see common/device/memory/memory.h.
//
// Thread-safety: as for a std::shared_ptr. Different threads may use different
// handles to one tensor; order writes to it yourself.

#ifndef D2L_COMMON_TENSOR_TENSOR_H_
#define D2L_COMMON_TENSOR_TENSOR_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include "common/device/device.h"
#include "common/device/memory/memory.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"

namespace d2l {

class Index;
class TensorSlice;

class Tensor {
 public:
  // No tensor; defined() is false, and every operation refuses it.
  Tensor() = default;

  // For operations: a contiguous tensor in `storage`, which is large enough.
  Tensor(StorageRef storage, Device device, DType dtype, const Shape& shape)
      : storage_(std::move(storage)),
        id_(NextValueId()),
        device_(device),
        dtype_(dtype),
        contiguous_(true),
        shape_(shape),
        strides_(ContiguousStrides(shape)) {}

  // For operations: another view of the memory of `base`, with an identity of
  // its own. offset: where its first element is, in elements from the start of
  // the storage.
  static Tensor View(const Tensor& base, std::int64_t offset,
                     const Shape& shape, const Shape& strides) {
    return Tensor(base, offset, shape, strides);
  }

  bool defined() const { return static_cast<bool>(storage_); }
  const Shape& shape() const { return shape_; }
  // In elements, not bytes.
  const Shape& strides() const { return strides_; }
  int dim() const { return shape_.rank(); }
  std::int64_t size(int dim) const { return shape_[dim]; }
  std::int64_t numel() const { return shape_.numel(); }
  DType dtype() const { return dtype_; }
  Device device() const { return device_; }
  // True if the elements lie in memory row by row, without gaps.
  bool is_contiguous() const { return contiguous_; }
  std::int64_t offset() const { return offset_; }
  // The number of elements in memory from the first to the last, including
  // those that a view skips; 0 for an empty tensor. Strides are not negative.
  std::int64_t span() const;

  // The value's unique id, for recording programs.
  std::uint64_t id() const { return id_; }
  // Counts the writes to the memory, through this handle or another.
  std::uint64_t version() const { return storage_->version(); }

  const StorageRef& storage() const { return storage_; }
  // The device's address of the first element: for kernels.
  void* data() const {
    return static_cast<char*>(storage_->data()) + offset_ * DTypeSize(dtype_);
  }

  // x[3], x[{0, kAll, Range{1, 4}}]: a view that can be assigned to. Include
  // common/ops/indexing.h.
  TensorSlice operator[](const Index& index) const;
  TensorSlice operator[](std::initializer_list<Index> indices) const;

  // "a float32 tensor of shape (2, 3) on cpu:0", for messages.
  std::string Describe() const;

 private:
  Tensor(const Tensor& base, std::int64_t offset, const Shape& shape,
         const Shape& strides)
      : storage_(base.storage_),
        offset_(offset),
        id_(NextValueId()),
        device_(base.device_),
        dtype_(base.dtype_),
        contiguous_(AreContiguous(shape, strides)),
        shape_(shape),
        strides_(strides) {}

  static std::uint64_t NextValueId();
  static bool AreContiguous(const Shape& shape, const Shape& strides);

  StorageRef storage_;
  std::int64_t offset_ = 0;
  std::uint64_t id_ = 0;
  Device device_;
  DType dtype_ = DType::kFloat32;
  bool contiguous_ = true;
  Shape shape_;
  Shape strides_;
};

namespace internal {

// The ids this thread may still assign. Blocks of ids come from a shared
// counter, so that an id costs no atomic operation.
struct ValueIds {
  std::uint64_t next = 0;
  std::uint64_t end = 0;
};
inline thread_local ValueIds value_ids;
void TakeValueIds();

}  // namespace internal

inline std::uint64_t Tensor::NextValueId() {
  internal::ValueIds& ids = internal::value_ids;
  if (ids.next == ids.end) internal::TakeValueIds();
  return ids.next++;
}

}  // namespace d2l

#endif  // D2L_COMMON_TENSOR_TENSOR_H_
