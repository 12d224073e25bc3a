// CuptiApi: the part of CUPTI, NVIDIA's interface for profilers, that
// CuptiTimer uses. There are two: the library (RealCuptiApi) and a model of it
// for tests (fake_cupti.h).
//
// CUPTI records *activities*: kernels, copies and memsets, each with its times,
// and the CUDA call that requested them. It delivers the records late, in
// buffers, on any thread, and in no order. To attribute a call, an id is pushed
// around it on the calling thread.
//
// All functions but Load return CUPTI's error, 0 for none. Thread-safe.

#ifndef D2L_COMMON_DEVICE_CUDA_CUPTI_API_H_
#define D2L_COMMON_DEVICE_CUDA_CUPTI_API_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"

namespace d2l {

inline constexpr int kCuptiInsufficientPrivileges = 35;
inline constexpr int kCuptiMultipleSubscribers = 39;
inline constexpr int kCuptiVirtualizedInsufficientPrivileges = 40;

// The kinds of records.
enum class CuptiKind {
  kPushedIds,  // for which call an id was pushed; needs the two kinds of calls
  kRuntimeCalls,  // of CUDA, as the next
  kDriverCalls,
  kKernels,
  kCopies,
  kPeerCopies,
  kMemsets,
};

struct CuptiRecord {
  enum class Kind {
    kWork,      // a kernel, a copy or a memset has run
    kPushedId,  // the call was made when `id` was the one pushed last
  };
  Kind kind = Kind::kWork;
  std::uint32_t call = 0;  // the number that CUPTI gave the call
  std::uint64_t id = 0;    // kPushedId
  // kWork: on CUPTI's clock; 0 if CUPTI does not know.
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// Called by CUPTI on any thread, also within the calls below. Must not call
// them.
class CuptiReceiver {
 public:
  virtual ~CuptiReceiver() = default;

  virtual void OnRecords(absl::Span<const CuptiRecord> records) = 0;
  // `records` records are lost, because CUPTI had no room for them.
  virtual void OnDropped(std::int64_t records) = 0;
};

class CuptiApi {
 public:
  virtual ~CuptiApi() = default;

  // To be called before the others, with the same receiver each time. Returns
  // why CUPTI cannot be used, without a full stop; "" if it can.
  virtual std::string Load(CuptiReceiver* receiver) = 0;

  // Makes this program the one who uses CUPTI, which is only given to one: to
  // be called before, and after, what follows.
  virtual int Subscribe() = 0;
  virtual int Unsubscribe() = 0;

  virtual int Enable(CuptiKind kind) = 0;
  virtual int Disable(CuptiKind kind) = 0;
  virtual int Push(std::uint64_t id) = 0;
  virtual int Pop() = 0;

  // Delivers what is complete before it returns. Without `forced` a buffer is
  // kept back that has a record of something that is still running. With it
  // such a record is delivered without its times, and not again.
  virtual int Flush(bool forced) = 0;

  // CUPTI's clock, in nanoseconds.
  virtual int Now(std::uint64_t* nanos) = 0;

  // "CUPTI_ERROR_NOT_INITIALIZED".
  virtual std::string ErrorText(int error) = 0;
};

// The library; lives as long as the process. In real_cupti.cc, which is there
// only with --config=cuda.
CuptiApi& RealCuptiApi();

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_CUDA_CUPTI_API_H_
