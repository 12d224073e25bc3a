// What the memory gives to one core: the bound of operations on large arrays.
//
//   CopyPastCaches(from.data(), to.data(), n);
//   float sum = ReadAll(from.data(), n);
//
// With the widest vectors that the processor has. Thread-safe.

#ifndef D2L_TESTS_PEERS_BANDWIDTH_H_
#define D2L_TESTS_PEERS_BANDWIDTH_H_

#include <cstddef>

namespace d2l {

// Writes without first reading what was there (non-temporal stores). Both
// arrays are aligned to 64 bytes and do not overlap; n is a multiple of 64.
void CopyPastCaches(const float* from, float* to, std::size_t n);

// A sum, so that all elements are read, in no useful order of addition.
// Aligned, and n a multiple, as above.
float ReadAll(const float* from, std::size_t n);

}  // namespace d2l

#endif  // D2L_TESTS_PEERS_BANDWIDTH_H_
