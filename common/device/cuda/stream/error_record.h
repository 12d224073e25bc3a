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
// A kernel in a CUDA graph runs with the arguments of the recording, whichever
// operation launches the graph. So it finds that operation's number, and which
// of the stream's two records is in use, in a word that the stream writes
// before the graph; its own arguments say which kernel of the graph it is.
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
  std::uint64_t reported_by;  // ErrorReporter::number
  // Of the stream's first record: the operation that launches the graph which
  // runs now, as ErrorReporter::WordOf.
  std::uint64_t graph_launch;
};

struct ErrorReporter {
  // From here on, numbers are those of a graph's operations.
  static constexpr std::uint64_t kInGraph = std::uint64_t{1} << 63;

  ErrorRecord* record;   // as the GPU sees it; in a graph the stream's first
  std::uint64_t number;  // of the operation

  // This reporter, which is no graph's, for the graph that it launches.
  // records: the stream's two.
  std::uint64_t WordOf(const ErrorRecord* records) const {
    return 2 * number + static_cast<std::uint64_t>(record - records);
  }
#ifdef __CUDACC__
  __device__
#endif
      ErrorReporter
      OfLaunch() const {
    if (number < kInGraph) return *this;
    const std::uint64_t word = record->graph_launch;
    return {record + word % 2, word / 2};
  }

#ifdef __CUDACC__
  // Any number of threads may call it.
  __device__ void Report(DeviceError code, std::int64_t position,
                         std::int64_t a = 0, std::int64_t b = 0) const {
    const ErrorReporter to = OfLaunch();
    if (atomicCAS_system(&to.record->claimed_by, 0ull, to.number + 1ull) != 0) {
      return;
    }
    to.record->code = code;
    to.record->position = position;
    to.record->a = a;
    to.record->b = b;
    to.record->reported_by = number;
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
