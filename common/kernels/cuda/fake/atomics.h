// CUDA's atomics: what two threads do to one word, both is done.
//
//   atomicAdd(&counts[value], 1);
//   const float before = atomicExch(&x, 2.5f);
//
// Each returns the value before. Included by words.h.

#ifndef D2L_COMMON_KERNELS_CUDA_FAKE_ATOMICS_H_
#define D2L_COMMON_KERNELS_CUDA_FAKE_ATOMICS_H_

namespace d2l::kernels::cuda::internal {

enum class Change {
  kAdd,
  kSub,
  kMin,
  kMax,
  kAnd,
  kOr,
  kXor,
  kExchange,
  kIncrement,      // 0 follows `value`
  kDecrement,      // `value` follows 0
  kCompareAndSwap  // `value` if it was `compare`
};

// In atomics.cc, for int, unsigned, the same of 64 bits, float and double.
template <typename T>
T Atomic(Change change, T* to, T value, T compare = T{});

}  // namespace d2l::kernels::cuda::internal

// NOLINTBEGIN(google-runtime-int): as CUDA's
// As a function for each type that CUDA has, so that arguments are converted.
#define D2L_ATOMIC_OF_SCOPE(word, scope, change, T)               \
  inline __attribute__((always_inline))                           \
  T atomic##word##scope(T* to, T value) {                         \
    return d2l::kernels::cuda::internal::Atomic(                  \
        d2l::kernels::cuda::internal::Change::change, to, value); \
  }
#define D2L_ATOMIC(word, change, T)            \
  D2L_ATOMIC_OF_SCOPE(word, , change, T)       \
  D2L_ATOMIC_OF_SCOPE(word, _block, change, T) \
  D2L_ATOMIC_OF_SCOPE(word, _system, change, T)
#define D2L_ATOMICS_OF_INTEGERS(T) \
  D2L_ATOMIC(Min, kMin, T)         \
  D2L_ATOMIC(Max, kMax, T)         \
  D2L_ATOMIC(And, kAnd, T)         \
  D2L_ATOMIC(Or, kOr, T)           \
  D2L_ATOMIC(Xor, kXor, T)

D2L_ATOMIC(Add, kAdd, int)
D2L_ATOMIC(Add, kAdd, unsigned)
D2L_ATOMIC(Add, kAdd, unsigned long long)
D2L_ATOMIC(Add, kAdd, float)
D2L_ATOMIC(Add, kAdd, double)
D2L_ATOMIC(Sub, kSub, int)
D2L_ATOMIC(Sub, kSub, unsigned)
D2L_ATOMICS_OF_INTEGERS(int)
D2L_ATOMICS_OF_INTEGERS(unsigned)
D2L_ATOMICS_OF_INTEGERS(long long)
D2L_ATOMICS_OF_INTEGERS(unsigned long long)
D2L_ATOMIC(Exch, kExchange, int)
D2L_ATOMIC(Exch, kExchange, unsigned)
D2L_ATOMIC(Exch, kExchange, unsigned long long)
D2L_ATOMIC(Exch, kExchange, float)
D2L_ATOMIC(Inc, kIncrement, unsigned)
D2L_ATOMIC(Dec, kDecrement, unsigned)
#undef D2L_ATOMICS_OF_INTEGERS
#undef D2L_ATOMIC
#undef D2L_ATOMIC_OF_SCOPE

#define D2L_ATOMIC_CAS_OF_SCOPE(scope, T)                                 \
  inline __attribute__((always_inline))                                   \
  T atomicCAS##scope(T* to, T compare, T value) {                         \
    return d2l::kernels::cuda::internal::Atomic(                          \
        d2l::kernels::cuda::internal::Change::kCompareAndSwap, to, value, \
        compare);                                                         \
  }
#define D2L_ATOMIC_CAS(T)            \
  D2L_ATOMIC_CAS_OF_SCOPE(, T)       \
  D2L_ATOMIC_CAS_OF_SCOPE(_block, T) \
  D2L_ATOMIC_CAS_OF_SCOPE(_system, T)
D2L_ATOMIC_CAS(int)
D2L_ATOMIC_CAS(unsigned)
D2L_ATOMIC_CAS(unsigned long long)
#undef D2L_ATOMIC_CAS
#undef D2L_ATOMIC_CAS_OF_SCOPE
// NOLINTEND(google-runtime-int)

#endif  // D2L_COMMON_KERNELS_CUDA_FAKE_ATOMICS_H_
