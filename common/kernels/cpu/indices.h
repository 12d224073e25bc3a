// What kernels that take indices have in common.

#ifndef D2L_COMMON_KERNELS_CPU_INDICES_H_
#define D2L_COMMON_KERNELS_CPU_INDICES_H_

#include <cstdint>

namespace d2l::kernels::cpu {

// Throws std::out_of_range if one of index[begin, end) is not in [0, size).
void CheckIndices(const std::int64_t* index, std::int64_t size,
                  std::int64_t begin, std::int64_t end);

}  // namespace d2l::kernels::cpu

#endif  // D2L_COMMON_KERNELS_CPU_INDICES_H_
