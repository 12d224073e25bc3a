// Scratch: memory of the calling thread that lasts until its next call.
//
//   T* patches = Scratch<T>(Borrower::kPart, rows * columns);

#ifndef D2L_COMMON_KERNELS_CPU_NN_SCRATCH_H_
#define D2L_COMMON_KERNELS_CPU_NN_SCRATCH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace d2l::kernels::cpu {

// Whom memory is lent to: a part of an operation (parallel_for.h) runs on the
// thread of the operation, too.
enum class Borrower { kOperation, kPart };

// At least `count` elements, aligned to cache lines, of any content. Throws
// std::bad_alloc.
template <typename T>
T* Scratch(Borrower borrower, std::int64_t count) {
  struct Delete {
    void operator()(std::byte* p) const {
      ::operator delete (p, std::align_val_t{64});
    }
  };
  struct Memory {
    std::unique_ptr<std::byte, Delete> data;
    std::size_t bytes = 0;
  };
  thread_local Memory memories[2];
  Memory& memory = memories[static_cast<int>(borrower)];
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
  if (memory.bytes < bytes) {
    memory.data.reset();
    memory.bytes = 0;
    memory.data.reset(
        static_cast<std::byte*>(::operator new (bytes, std::align_val_t{64})));
    memory.bytes = bytes;
  }
  return reinterpret_cast<T*>(memory.data.get());
}

}  // namespace d2l::kernels::cpu

#endif  // D2L_COMMON_KERNELS_CPU_NN_SCRATCH_H_
