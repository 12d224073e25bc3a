// ErrorRecord: how a kernel reports an invalid element.
//
//   // in a kernel, with an ErrorReporter among its parameters
//   if (index < 0 || index >= size) {
//     errors.Report(DeviceError::kIndexOutOfRange, i, index, size);
//     return;
//   }
//
// Each stream has a record in host memory that its GPU can access. A kernel
// that finds an error writes it there and goes on; it never traps, which would
// cost the whole program its GPU. Only the first error to claim the record is
// reported; which one of several that is, is not determined. The host reads the
// record once the operation is known to be done (see StreamLog).
//
// For .cu and .cc files. Report is for kernels; an ErrorReporter is a plain
// value of two words.

#ifndef D2L_COMMON_DEVICE_CUDA_STREAM_ERROR_RECORD_H_
#define D2L_COMMON_DEVICE_CUDA_STREAM_ERROR_RECORD_H_

#include <cstdint>

#ifndef __CUDACC__
#include <string>
#endif

namespace d2l {

enum class DeviceError : std::int64_t {
  kIndexOutOfRange,   // a: the index, b: how many elements there are
  kDivisionByZero,    // of integers
  kNegativeExponent,  // of integers; a: the exponent
  kLabelOutOfRange,   // a: the label, b: how many classes there are
};

// 64 bytes, so that two streams' records never share a cache line.
struct alignas(64) ErrorRecord {
  // The failed operation's number in its stream plus one; 0 for none.
  unsigned long long claimed_by;
  DeviceError code;
  std::int64_t position;  // of the element, in row-major order
  std::int64_t a;
  std::int64_t b;
};

struct ErrorReporter {
  ErrorRecord* record;   // as the GPU sees it
  std::uint64_t number;  // of the operation

#ifdef __CUDACC__
  // Any number of threads may call it.
  __device__ void Report(DeviceError code, std::int64_t position,
                         std::int64_t a = 0, std::int64_t b = 0) const {
    if (atomicCAS_system(&record->claimed_by, 0ull, number + 1ull) != 0) return;
    record->code = code;
    record->position = position;
    record->a = a;
    record->b = b;
    __threadfence_system();
  }
#endif
};

#ifndef __CUDACC__
// "index 7 at position 3 is out of range; valid are 0..5", as on the CPU.
std::string DeviceErrorText(const ErrorRecord& record);

// Report for kernels that run on the CPU (fake_cuda.h).
void ReportFromHost(const ErrorReporter& errors, DeviceError code,
                    std::int64_t position, std::int64_t a = 0,
                    std::int64_t b = 0);
#endif

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_CUDA_STREAM_ERROR_RECORD_H_
