// NVIDIA's NCCL, loaded when it is first asked for.
//
//   absl::StatusOr<NcclLibrary> nccl = LoadNccl();
//   if (!nccl.ok()) std::cerr << nccl.status().message() << "\n";
//
// Neither its headers nor the library are needed to build: the types below are
// those of its C interface, which is the same from 2.14 on, the first with
// calls that do not block (ncclCommInitRankConfig). Thread-safe. A library that
// is loaded stays.

#ifndef D2L_COMMON_PARALLEL_NCCL_NCCL_LIBRARY_H_
#define D2L_COMMON_PARALLEL_NCCL_NCCL_LIBRARY_H_

#include <array>
#include <cstddef>
#include <limits>
#include <string>

#include "absl/status/statusor.h"
#include "common/device/cuda/cuda_api.h"

// As NCCL calls what its handles point to.
struct ncclComm;

namespace d2l {

using NcclComm = ncclComm*;  // ncclComm_t

// ncclUniqueId: what the ranks of a communicator know each other by. Bytes that
// one of them makes and the others are given.
struct NcclId {
  std::array<char, 128> bytes;
};

// Which of all processes' ranks a group has: from `first` on.
struct NcclRanks {
  NcclId id;  // made by one process (NcclLibrary::get_unique_id)
  int first;
  int all;
  // How long another process may not answer.
  double timeout_seconds = std::numeric_limits<double>::infinity();
};

// ncclConfig_t of 2.14. Newer versions take the rest to be their defaults.
struct NcclConfig {
  std::size_t size = sizeof(NcclConfig);
  unsigned int magic = 0xcafebeef;
  unsigned int version = 21400;
  int blocking = 0;
};

// Codes of NCCL's, which do not change.
inline constexpr int kNcclSuccess = 0;
inline constexpr int kNcclInvalidUsage = 5;
inline constexpr int kNcclInProgress = 7;
inline constexpr int kNcclUint8 = 1;
inline constexpr int kNcclInt64 = 4;
inline constexpr int kNcclFloat32 = 7;
inline constexpr int kNcclFloat64 = 8;
inline constexpr int kNcclSum = 0;

// The functions used, without "nccl". Each int returned is an ncclResult_t.
struct NcclLibrary {
  int (*get_unique_id)(NcclId* id);
  int (*comm_init_rank_config)(NcclComm* comm, int ranks, NcclId id, int rank,
                               NcclConfig* config);
  int (*comm_abort)(NcclComm comm);
  int (*comm_get_async_error)(NcclComm comm, int* error);
  int (*all_reduce)(const void* send, void* receive, std::size_t count,
                    int dtype, int operation, NcclComm comm,
                    CudaStreamHandle stream);
  int (*group_start)();
  int (*group_end)();
  const char* (*get_error_string)(int result);
};

// NotFound, with what to install, if there is no such library;
// FailedPrecondition if it lacks a function, as one older than 2.14 does.
absl::StatusOr<NcclLibrary> LoadNccl(const std::string& name = "libnccl.so.2");

// The library of this program, loaded by the first call.
absl::StatusOr<const NcclLibrary*> Nccl();
// What Nccl() returns instead, from now on; null for the library.
void ReplaceNcclForTesting(const NcclLibrary* nccl);

}  // namespace d2l

#endif  // D2L_COMMON_PARALLEL_NCCL_NCCL_LIBRARY_H_
