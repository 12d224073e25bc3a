// Uniform, normal and whole random numbers on the CPU.
//
//   std::vector<float> x(n);
//   NormalFill(x.data(), 0, n, seed, offset);
//   offset += RandomBlocks<float>(n);   // common/kernels/philox.h
//
// Two workers share one call, and the result is the same bits:
//
//   NormalFill(x.data(), 0, n / 3, seed, offset);
//   NormalFill(x.data(), n / 3, n, seed, offset);
//
// Each writes elements [begin, end) of a call whose element 0 is at `out`,
// which needs no more alignment than its type. philox.h says which number each
// element is. Uniforms are in [0, 1) and the same bits on every machine.
// Normals are the same bits as philox.h's with AVX2, AVX-512 and NEON; older
// processors round twice where those fuse, and are within 4e-6 (double: 1e-14)
// of them.
//
// The instructions are chosen when first called, for the machine at hand.
// Thread-safe: nothing is kept between calls. `out` stays the caller's.
// Nothing fails; begin >= end writes nothing.

#ifndef D2L_COMMON_KERNELS_CPU_RANDOM_H_
#define D2L_COMMON_KERNELS_CPU_RANDOM_H_

#include <cstdint>

namespace d2l::kernels::cpu {

void UniformFill(float* out, std::int64_t begin, std::int64_t end,
                 std::uint64_t seed, std::uint64_t offset);
void UniformFill(double* out, std::int64_t begin, std::int64_t end,
                 std::uint64_t seed, std::uint64_t offset);

// Mean 0, standard deviation 1.
void NormalFill(float* out, std::int64_t begin, std::int64_t end,
                std::uint64_t seed, std::uint64_t offset);
void NormalFill(double* out, std::int64_t begin, std::int64_t end,
                std::uint64_t seed, std::uint64_t offset);

// Whole numbers low + k, k in [0, range); range is at least 1, and the sum
// wraps around. Element i is made of
//   range <= 2^32  word i mod 4 of block offset + i / 4: k is the upper half
//                  of word * range (64 bits)
//   range > 2^32   words 2 (i mod 2) and 2 (i mod 2) + 1 of block
//                  offset + i / 2, the first of them the upper half of a
//                  number u: k is the upper half of u * range (128 bits)
// whatever the type; then the number is converted to it. Some numbers
// are likelier than others, by one part in 2^32 / range (2^64 / range), rounded
// down.
template <typename T>  // float, double, std::int64_t, std::uint8_t
void IntegerFill(T* out, std::int64_t begin, std::int64_t end, std::int64_t low,
                 std::uint64_t range, std::uint64_t seed, std::uint64_t offset);

}  // namespace d2l::kernels::cpu

#endif  // D2L_COMMON_KERNELS_CPU_RANDOM_H_
