// The check of kernels: it finds errors in kernels that compute the right bits,
// and counts the memory requests of their warps.
//
//   CheckedRun(kernel, {blocks, threads, [=] { Double(x, n); }}, FindMemory);
//   const CheckReport report = TakeCheckReport();
//   // report.findings[0]: {kRace, "Double", {"double.cu", 12}, …}
//
// Kernels are compiled with -fsanitize=thread, so that the C++ compiler inserts
// a call before every load and store; check_hooks.cc defines the called
// functions, and ThreadSanitizer's own library is not linked. Registers are not
// seen. The address tells the kind of memory: __shared__ is the thread's static
// TLS; global memory is what FindMemory finds, and the program's variables,
// which __device__, __constant__ and `static` ones are; the rest, such as a
// thread's own arrays, is not checked.
//
// Thread-safe; one grid is checked at a time.

#ifndef D2L_COMMON_KERNELS_CUDA_FAKE_CHECK_H_
#define D2L_COMMON_KERNELS_CUDA_FAKE_CHECK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/kernels/cuda/fake/grid.h"

namespace d2l::kernels::cuda {

// The bytes that global memory moves at once; the number of shared memory's
// banks, and the bytes of the word that each bank serves.
inline constexpr int kSectorBytes = 32, kBanks = 32, kWordBytes = 4;

struct Memory {
  const void* begin = nullptr;
  std::size_t bytes = 0;

  bool Contains(const void* address, std::size_t count) const {
    const std::size_t offset =
        static_cast<const char*>(address) - static_cast<const char*>(begin);
    return offset < bytes && count <= bytes - offset;
  }
};
// Returns the allocation that an address belongs to; null if there is none. The
// unused bytes before and behind an allocation, 256 or more, belong to it, so
// that an access there is found to be out of bounds.
using FindMemory = Memory (*)(const void* address);

// A line of a kernel, and the function that contains it; 0: unknown line.
struct SourceLine {
  std::string file;
  int line = 0;
  std::string function;

  std::string ToString() const { return file + ":" + std::to_string(line); }
};

// An address of code, relative to the program's beginning, for addr2line.
using Site = std::uint32_t;

// A thread's access; `epoch` is how many barriers its block had passed, `time`
// how often the thread had met other lanes of its warp, or fenced.
struct Use {
  Site site = 0;  // 0: no access
  std::uint32_t block = 0, time = 0;
  std::uint16_t thread = 0, epoch = 0;
  bool writes = false, atomic = false;
};
struct Event : SourceLine, Use {};

enum class FindingKind {
  // Two threads use a byte, one of them writes, not both are atomic, and
  // nothing orders the two (order.h).
  kRace,
  kBarrier,         // some threads of a block never reach it
  kTwoBarriers,     // threads of a block wait at two different barriers
  kStrandedLane,    // a lane waits in vain for others of its warp
  kOutsideMask,     // a lane uses a word of its warp, and is not in the mask
  kDifferentMasks,  // lanes wait for each other with other words, or masks
  kUninitialised,   // reads shared memory that nobody wrote
  kOutOfBounds,     // outside of an array or an allocation
  kMisaligned,      // the address is not aligned to the type
  // The result has other bits when the threads run in another order: a grid
  // runs three times, forward, backward and shuffled.
  kOrder,
};

struct Finding {
  FindingKind kind;
  std::string kernel;
  bool shared = false;  // in shared memory
  Event at, before;     // the access; in a race, the earlier one

  // A sentence with the kernel and the lines.
  std::string ToString() const;
};

// The requests of one line of a kernel, for one kind of access, over the first
// 16 blocks of each launch (warp_requests.h).
struct Requests {
  std::string kernel;
  SourceLine at;
  bool shared = false, writes = false;
  int bytes = 0;  // of a lane's access
  std::int64_t requests = 0;
  std::int64_t lanes = 0;  // active, summed
  // For global memory: sectors of 32 bytes that were touched, and the number
  // that the distinct bytes would fill.
  std::int64_t sectors = 0, ideal_sectors = 0;
  // For shared memory: how often a request had to be repeated because two words
  // lie in one of the 32 banks.
  std::int64_t conflicts = 0;
  // The first request: each lane's address, relative to the sector of the
  // lowest address or, in shared memory, to the 128 bytes of all banks; -1 for
  // a lane that took no part.
  std::vector<std::int64_t> first;

  // Adds the counts.
  void Add(const Requests& more) {
    requests += more.requests;
    lanes += more.lanes;
    sectors += more.sectors;
    ideal_sectors += more.ideal_sectors;
    conflicts += more.conflicts;
  }
};

struct CheckReport {
  std::vector<Finding> findings;  // each once
  std::vector<Requests> requests;
  // The most accesses of one thread, to shared and global memory.
  std::int64_t longest_thread = 0;
  std::int64_t atomics = 0;  // of all threads, on shared and global memory
};

// Runs the grid and adds what it finds to the report.
void CheckedRun(const void* kernel, const Grid& grid, FindMemory find);

// Returns what was found since the last call. Runs addr2line for the lines.
CheckReport TakeCheckReport();

// In a kernel: true if the grid has run, and is repeated in another order.
bool IsRepeated();

// Prints the report when the program ends, which then fails if there is a
// finding; $D2L_CHECK_CUDA_TABLE names a file that gets the requests, a line
// each, as tools/kernel_table.py reads them.
void ReportAtExit();

namespace internal {
inline bool instrumented = false;  // set by check_hooks.cc

// The results by addresses of code: findings by the kernel, the site and, for a
// race, the site of the earlier access; requests by the kernel and the kind of
// access: its site, whether it uses shared memory, whether it writes, and how
// many bytes.
using AllFindings =
    std::map<std::pair<FindingKind, std::array<Site, 3>>, Finding>;
using AccessKind = std::tuple<Site, bool, bool, int>;
using AllRequests = std::map<std::pair<Site, AccessKind>, Requests>;
// In report.cc. Named adds the names and lines, and joins the results of one
// line; Print is for ReportAtExit.
CheckReport Named(AllFindings&& findings, AllRequests&& requests);
void Print(const CheckReport& report);
}  // namespace internal

// Whether kernels of this program are compiled for the check.
inline bool ChecksKernels() { return internal::instrumented; }

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_FAKE_CHECK_H_
