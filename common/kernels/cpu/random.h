// Uniform, normal and whole random numbers on the CPU.
//
//   RandomArgs args = {RandomOp::kNormal, DType::kFloat32, n, out, state};
//   FillRandom(args, 0, n);
//   args.state.offset += RandomBlocks<float>(n);  // common/kernels/philox.h
//
// Two workers share one call, and the result is the same bits:
//
//   FillRandom(args, 0, n / 3);
//   FillRandom(args, n / 3, n);
//
// Each call writes elements [begin, end) of a draw whose element 0 is at
// args.out, which needs no more alignment than its type; args.numel is not
// read. philox.h says which number each element is. Uniforms are in [0, 1) and
// the same bits on every machine. Normals are the same bits as philox.h's with
// AVX2, AVX-512 and NEON; older processors, which round twice where those fuse,
// are within 4e-6 (double: 1e-14) of them.
//
// The first call chooses the instructions for the machine. Thread-safe: nothing
// is kept between calls. `out` stays the caller's. Nothing fails if OpTakes(op,
// dtype); begin >= end writes nothing.

#ifndef D2L_COMMON_KERNELS_CPU_RANDOM_H_
#define D2L_COMMON_KERNELS_CPU_RANDOM_H_

#include <cstdint>

#include "common/kernels/kernels.h"

namespace d2l::kernels::cpu {

void FillRandom(const RandomArgs& args, std::int64_t begin, std::int64_t end);

}  // namespace d2l::kernels::cpu

#endif  // D2L_COMMON_KERNELS_CPU_RANDOM_H_
