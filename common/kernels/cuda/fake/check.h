// The check of kernels: what is wrong with a kernel that computes the right
// bits, and what its warps ask of memory.
//
//   CheckedRun(kernel, {blocks, threads, [=] { Double(x, n); }}, FindMemory);
//   const CheckReport report = TakeCheckReport();
//   // report.findings[0]: {kRace, "Double", {"double.cu", 12}, …}
//
// Kernels are compiled with -fsanitize=thread, by which the C++ compiler puts a
// call before every load and store; check_hooks.cc defines these calls, and
// ThreadSanitizer's own library is not linked. Registers are not seen. Memory
// is known by its address: __shared__ is the thread's static TLS, global memory
// what FindMemory finds; the rest, such as a thread's own arrays, is not looked
// at.
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

// What global memory moves at once, and how many banks shared memory has, each
// of which serves a word of four bytes.
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
// An allocation in which an address lies, or before or behind which it lies in
// bytes that nothing else uses; null if there is none. An access outside of it
// is out of bounds, also up to 256 bytes away from where one is found.
using FindMemory = Memory (*)(const void* address);

// A line of a kernel, and the function whose code it is; line 0: not known.
struct SourceLine {
  std::string file;
  int line = 0;
  std::string function;

  std::string ToString() const { return file + ":" + std::to_string(line); }
};

// An address of code, from the program's beginning: what addr2line takes.
using Site = std::uint32_t;

// What a thread does where; `epoch` is how many barriers its block had passed.
struct Use {
  Site site = 0;  // 0: nobody
  std::uint32_t block = 0;
  std::uint16_t thread = 0, epoch = 0;
  bool writes = false, atomic = false;
};
struct Event : SourceLine, Use {};

enum class FindingKind {
  // Two threads use a byte of shared memory between the same barriers, or a
  // byte of global memory between the same barriers of a block or in two blocks
  // of a launch; one of them writes, and not both are atomic.
  kRace,
  kBarrier,        // some threads of a block never reach it
  kStrandedLane,   // waits for others of its warp in vain
  kUninitialised,  // shared memory is read that nobody wrote
  kOutOfBounds,    // of an array or an allocation
  kMisaligned,     // an address, for the type of the access
  // Other bits when the threads run in another order: a grid runs three times,
  // forward, backward and shuffled.
  kOrder,
};

struct Finding {
  FindingKind kind;
  std::string kernel;
  bool shared = false;  // memory
  Event at, before;     // what happens second; of a race what came before it

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
  // Of global memory: sectors of 32 bytes that were touched, and as many as the
  // distinct bytes would fill.
  std::int64_t sectors = 0, ideal_sectors = 0;
  // Of shared memory: how often a request had to be repeated because two words
  // lie in one of the 32 banks.
  std::int64_t conflicts = 0;
  // Of the first request: what its lanes, from 0 on, address, from where the
  // sector of the lowest address begins, or in shared memory the 128 bytes of
  // all banks; -1 for a lane that took no part.
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
};

// Runs the grid and adds what it finds to the report.
void CheckedRun(const void* kernel, const Grid& grid, FindMemory find);

// What was found since the last call. Runs addr2line for the lines.
CheckReport TakeCheckReport();

// In a kernel: whether the grid ran before, as it does in another order.
bool IsRepeated();

// Prints the report when the program ends, which then fails if there is a
// finding; $D2L_CHECK_CUDA_TABLE names a file that gets the requests, a line
// each, as tools/kernel_table.py reads them.
void ReportAtExit();

namespace internal {
inline bool instrumented = false;  // set by check_hooks.cc

// What the check keeps by addresses of code: of each finding the kernel, where
// it is, and of a race where what came before is; of each kernel's places the
// requests. A place is a site, whether shared memory is used there, whether it
// writes, and how many bytes.
using AllFindings =
    std::map<std::pair<FindingKind, std::array<Site, 3>>, Finding>;
using Place = std::tuple<Site, bool, bool, int>;
using AllRequests = std::map<std::pair<Site, Place>, Requests>;
// In report.cc: names kernels and lines, and makes one of what is on one line;
// prints it for ReportAtExit.
CheckReport Named(AllFindings&& findings, AllRequests&& requests);
void Print(const CheckReport& report);
}  // namespace internal

// Whether kernels of this program are compiled for the check.
inline bool ChecksKernels() { return internal::instrumented; }

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_FAKE_CHECK_H_
