// The host library: synchronous arithmetic on the calling thread, in the role
// of NumPy in the course's notebooks.
//
//   std::vector<float> a = HostRandn(n * n);       // numpy.random.normal
//   std::vector<float> b = HostMatMul(a, a, n);    // numpy.dot
//
// The library uses no device, stream or queue; tensors on devices are compared
// with it. Single precision and one thread, whereas a virtual device computes
// with all of its cores: the only device of a program has all of the machine's.
// (NumPy: double, and as many threads as its BLAS takes.)
//
// A program with it ends at its start, with a message, if it may not map the
// addresses that BLAS's threads need.
//
// Thread-safe. Matrices are row-major. Sizes that do not match throw
// std::invalid_argument.

#ifndef D2L_COMMON_LESSON_CELL_HOST_LIBRARY_H_
#define D2L_COMMON_LESSON_CELL_HOST_LIBRARY_H_

#include <cstdint>
#include <vector>

namespace d2l {

// `count` standard normal numbers: Marsaglia's polar method over a Mersenne
// twister, the method of numpy.random.normal. Each thread has its own
// generator, with the same seed.
std::vector<float> HostRandn(std::int64_t count);

// The product of two n x n matrices, by BLAS. Throws std::runtime_error if the
// process may not map the addresses that BLAS needs.
std::vector<float> HostMatMul(const std::vector<float>& a,
                              const std::vector<float>& b, int n);

}  // namespace d2l

#endif  // D2L_COMMON_LESSON_CELL_HOST_LIBRARY_H_
