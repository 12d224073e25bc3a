// CUPTI, loaded when it is first used, as cuBLAS is (blas_library.h): a program
// is not linked with it, and runs without.
//
//   const CuptiLibrary cupti = LoadCupti(CuptiFolders());
//   cupti.enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
//
// Built with CUPTI's headers, the program takes the library of their major
// version or of another one, 12 or 13: what is used below is the same in both.
//
// Thread-safe. A library that is loaded stays.

#ifndef D2L_COMMON_DEVICE_CUDA_CUPTI_LIBRARY_H_
#define D2L_COMMON_DEVICE_CUDA_CUPTI_LIBRARY_H_

#include <cupti.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/device/cuda/cupti_api.h"

namespace d2l {

// The functions used, each with its type in CUPTI's headers.
struct CuptiLibrary {
  decltype(&cuptiSubscribe) subscribe;
  decltype(&cuptiUnsubscribe) unsubscribe;
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks;
  decltype(&cuptiActivityEnable) enable;
  decltype(&cuptiActivityDisable) disable;
  decltype(&cuptiActivityPushExternalCorrelationId) push_id;
  decltype(&cuptiActivityPopExternalCorrelationId) pop_id;
  decltype(&cuptiActivityFlushAll) flush_all;
  decltype(&cuptiActivityGetNextRecord) next_record;
  decltype(&cuptiActivityGetNumDroppedRecords) dropped_records;
  decltype(&cuptiGetTimestamp) timestamp;
  decltype(&cuptiGetResultString) result_string;
};

// Of the ids that this program pushes.
inline constexpr CUpti_ExternalCorrelationKind kCuptiIdKind =
    CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;

// Where it is looked for: see LoadLibrary.
std::vector<std::string> CuptiFolders();

// Throws std::runtime_error, which says where it looked, if there is no library
// of which all functions can be loaded.
CuptiLibrary LoadCupti(const std::vector<std::string>& folders);

// The records in the first `bytes` of a buffer of CUPTI's, in that order,
// without those of other kinds.
std::vector<CuptiRecord> RecordsIn(const CuptiLibrary& cupti,
                                   std::uint8_t* buffer, std::size_t bytes);

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_CUDA_CUPTI_LIBRARY_H_
