// The sum of arrays on several GPUs by NVIDIA's NCCL, within one process.
//
//   AllReduce(gradients, AllReduceAlgorithm::kNccl);  // is built on this
//
// NCCL chooses how it adds: the same machine gives the same bits each time, but
// not those of the ordered sum. Each device needs a GPU of its own, and
// processes add by MPI (mpi_world.h).
//
// The first call that needs the library loads it; neither it nor its headers
// are needed to build. Thread-safe.

#ifndef D2L_COMMON_PARALLEL_NCCL_NCCL_H_
#define D2L_COMMON_PARALLEL_NCCL_NCCL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/source_location.h"
#include "common/device/cuda/cuda_api.h"
#include "common/device/cuda/stream/cuda_stream.h"
#include "common/device/device.h"
#include "common/device/op_label.h"
#include "common/parallel/collective/collective.h"
#include "common/tensor/dtype.h"

// NCCL's name for what its handles point to.
struct ncclComm;

namespace d2l {

using NcclComm = ncclComm*;

// The functions used, of NCCL's C interface. Each int returned is an
// ncclResult_t, which is 0 for success.
struct NcclLibrary {
  int (*comm_init_all)(NcclComm* comms, int count, const int* gpus);
  int (*all_reduce)(const void* send, void* receive, std::size_t count,
                    int dtype, int operation, NcclComm comm,
                    CudaStreamHandle stream);
  int (*group_start)();
  int (*group_end)();
  const char* (*get_error_string)(int result);
};

// NotFound, with what to install, if there is no such library or it lacks a
// function.
absl::StatusOr<NcclLibrary> LoadNccl(const std::string& name = "libnccl.so.2");
// The library of this program, loaded by the first call.
absl::StatusOr<const NcclLibrary*> Nccl();
// Nccl() returns this instead from now on; null for the library.
void ReplaceNcclForTesting(const NcclLibrary* nccl);

// InvalidArgument if NCCL cannot add on these devices; Nccl()'s error.
absl::Status CheckNccl(absl::Span<const Device> devices);

// In place, as one operation on each stream, with its label; the streams are on
// GPUs of their own. Returns the operations' numbers. Throws std::runtime_error
// if NCCL cannot connect the GPUs; what it refuses later fails the operation on
// every stream (AsyncError).
std::vector<std::uint64_t> EnqueueNcclSum(
    const std::vector<CudaStream*>& streams, absl::Span<const OpLabel> labels,
    absl::Span<void* const> data, std::int64_t numel, DType dtype);

// AllReduceAsync with kNccl. CheckNccl's errors are thrown, as
// std::invalid_argument and std::runtime_error.
Work AllReduceByNccl(Replicas replicas, SourceLocation at);

}  // namespace d2l

#endif  // D2L_COMMON_PARALLEL_NCCL_NCCL_H_
