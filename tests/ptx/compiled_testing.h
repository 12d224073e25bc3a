// For compiled_test.cc: kernels that nvcc compiles. Each function launches one
// on stream 0 and does not wait for it.

#ifndef D2L_TESTS_PTX_COMPILED_TESTING_H_
#define D2L_TESTS_PTX_COMPILED_TESTING_H_

#include <cstdint>

namespace d2l::ptx {

struct Mixed {
  int numbers[5];
  double number;
  char letter;
};
// out: numbers[which], 2 * number, letter + small + medium, in[which].
void LaunchParameters(int* out, const Mixed& mixed, char small, short medium,
                      const int* in, int which);
// For 64 threads: a sum over the warp by shuffles; the lane three below in
// segments of eight; a ballot; a shuffle among the even lanes.
void LaunchWarpFunctions(unsigned* out);
// out[i] = Slow(in[i], i % 8), a function that is not inlined.
void LaunchCalls(double* out, const double* in, int n);
double Slow(double x, int power);
// For 1000 numbers: how many have which lowest four bits, half their number,
// and the largest times 2^33.
void LaunchAtomics(int* counts, float* sum, unsigned long long* largest,
                   const int* in, int n);
// Eight rows of 32 results each: see the kernel.
void LaunchMath(double* out, double x, std::int64_t z);
// Reverses 64 numbers in dynamic shared memory.
void LaunchReverse(int* data);

// ---- With faults.

void LaunchMisaligned(float* data);    // loads a float4 at data + 1
void LaunchBeyond(int* data, int at);  // data[at] = 1
void LaunchSharedBeyond(int* data, int at);
void LaunchMissingBarrier(int* data);
void LaunchUnwritten(int* data);
void LaunchLostBarrier(int* data);  // not all threads reach the same one
void LaunchWrongMask(int* data);    // asks for lanes that do not come
void LaunchAbsentLane(int* data);   // reads a lane that its mask leaves out
void LaunchEndless(int* data);      // until data[0] changes
void LaunchTrap();
void LaunchNull();
void LaunchTooLarge(int* data, int threads);  // the kernel's bound is 64
void LaunchEmptyGrid(int* data);
void LaunchTooMuchShared(int* data);  // 4 bytes more than a block can have

}  // namespace d2l::ptx

#endif  // D2L_TESTS_PTX_COMPILED_TESTING_H_
