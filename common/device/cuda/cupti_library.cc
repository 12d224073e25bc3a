#include "common/device/cuda/cupti_library.h"

#include <cuda.h>
#include <cupti.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/device/cuda/cupti_api.h"
#include "common/device/cuda/dynamic_library.h"

namespace d2l {
namespace {

CuptiLibrary FunctionsOf(void* library) {
  CuptiLibrary cupti;
  FindFunction(library, "cuptiSubscribe", &cupti.subscribe);
  FindFunction(library, "cuptiUnsubscribe", &cupti.unsubscribe);
  FindFunction(library, "cuptiActivityRegisterCallbacks",
               &cupti.register_callbacks);
  FindFunction(library, "cuptiActivityEnable", &cupti.enable);
  FindFunction(library, "cuptiActivityDisable", &cupti.disable);
  FindFunction(library, "cuptiActivityPushExternalCorrelationId",
               &cupti.push_id);
  FindFunction(library, "cuptiActivityPopExternalCorrelationId", &cupti.pop_id);
  FindFunction(library, "cuptiActivityFlushAll", &cupti.flush_all);
  FindFunction(library, "cuptiActivityGetNextRecord", &cupti.next_record);
  FindFunction(library, "cuptiActivityGetNumDroppedRecords",
               &cupti.dropped_records);
  FindFunction(library, "cuptiGetTimestamp", &cupti.timestamp);
  FindFunction(library, "cuptiGetResultString", &cupti.result_string);
  return cupti;
}

// Versions of CUPTI have added fields behind those that are read here, and
// nothing before them: the oldest structures with them do for all.
template <typename Activity>
CuptiRecord Work(const CUpti_Activity& record) {
  const auto& activity = reinterpret_cast<const Activity&>(record);
  CuptiRecord work;
  work.call = activity.correlationId;
  work.begin = activity.start;
  work.end = activity.end;
  return work;
}

}  // namespace

std::vector<std::string> CuptiFolders() {
  // The toolkit's folder is that of the machine where this was compiled.
  return {"", D2L_CUPTI_LIBRARY_FOLDER, "/usr/local/cuda/extras/CUPTI/lib64",
          "/usr/local/cuda/lib64"};
}

CuptiLibrary LoadCupti(const std::vector<std::string>& folders) {
  CuptiLibrary cupti;
  LoadLibrary(CudaLibraryNames("libcupti.so.", CUDA_VERSION / 1000), folders,
              [&](void* library) { cupti = FunctionsOf(library); });
  return cupti;
}

std::vector<CuptiRecord> RecordsIn(const CuptiLibrary& cupti,
                                   std::uint8_t* buffer, std::size_t bytes) {
  std::vector<CuptiRecord> records;
  CUpti_Activity* record = nullptr;
  while (cupti.next_record(buffer, bytes, &record) == CUPTI_SUCCESS) {
    switch (record->kind) {
      case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
        const auto& pushed =
            reinterpret_cast<const CUpti_ActivityExternalCorrelation&>(*record);
        CuptiRecord id;
        id.kind = CuptiRecord::Kind::kPushedId;
        id.call = pushed.correlationId;
        id.id = pushed.externalId;
        // Others may push ids of their own kind.
        if (pushed.externalKind == kCuptiIdKind) records.push_back(id);
        break;
      }
      case CUPTI_ACTIVITY_KIND_KERNEL:
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        records.push_back(Work<CUpti_ActivityKernel4>(*record));
        break;
      case CUPTI_ACTIVITY_KIND_MEMCPY:
        records.push_back(Work<CUpti_ActivityMemcpy>(*record));
        break;
      case CUPTI_ACTIVITY_KIND_MEMCPY2:
        records.push_back(Work<CUpti_ActivityMemcpyPtoP>(*record));
        break;
      case CUPTI_ACTIVITY_KIND_MEMSET:
        records.push_back(Work<CUpti_ActivityMemset>(*record));
        break;
      default:
        break;
    }
  }
  return records;
}

}  // namespace d2l
