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
// Found are
//  - races: two threads use a byte of shared memory between the same barriers,
//    or a byte of global memory between the same barriers of a block or in two
//    blocks of a launch, one of them writes, and not both are atomic;
//  - barriers that some threads of a block never reach, lanes that wait in
//  vain;
//  - shared memory that is read and nobody wrote, indices outside of an array,
//    accesses outside of an allocation or not aligned as their type asks;
//  - bits that depend on the order of the threads: a grid runs three times,
//    forward, backward and shuffled.
//
// Counted, over the first 16 blocks of each launch, are a warp's requests: the
// accesses of its lanes at one place of the source, each lane's first together,
// each lane's second, and so on. In a loop that lanes run different numbers of
// times, or leave out, this is an approximation.
//
// Thread-safe; one grid is checked at a time.

#ifndef D2L_COMMON_KERNELS_CUDA_FAKE_CHECK_H_
#define D2L_COMMON_KERNELS_CUDA_FAKE_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/kernels/cuda/fake/grid.h"

namespace d2l::kernels::cuda {

// What global memory moves at once, and how many banks shared memory has, each
// of which serves a word of four bytes.
inline constexpr int kSectorBytes = 32, kBanks = 32, kWordBytes = 4;

// An allocation in which an address lies, or before or behind which it lies in
// bytes that nothing else uses; null if there is none. An access outside of it
// is out of bounds, also up to 256 bytes away from where one is found.
struct Memory {
  const void* begin;
  std::size_t bytes;
};
using FindMemory = Memory (*)(const void* address);

// A line of a kernel; line 0: not known.
struct SourceLine {
  std::string file;
  int line = 0;

  std::string ToString() const;
};

enum class FindingKind {
  kRace,
  kBarrier,
  kStrandedLane,
  kUninitialised,
  kOutOfBounds,
  kMisaligned,
  kOrder,
};

struct Finding {
  FindingKind kind;
  std::string kernel;
  bool shared = false;  // memory
  // What happens second; of a race what happened before it.
  SourceLine at, before;
  bool at_writes = false, before_writes = false;
  // Of the two lines.
  std::uint32_t block = 0, thread = 0, before_block = 0, before_thread = 0;

  // A sentence with the kernel and the lines.
  std::string ToString() const;
};

// The requests of one line of a kernel, for one kind of access.
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
};

struct CheckReport {
  std::vector<Finding> findings;  // each once
  std::vector<Requests> requests;
};

// Runs the grid and adds what it finds to the report.
void CheckedRun(const void* kernel, const Grid& grid, FindMemory find);

// What was found since the last call. Runs addr2line for the lines.
CheckReport TakeCheckReport();

// Whether kernels of this program are compiled for the check.
bool ChecksKernels();
// In a kernel: whether the grid ran before, as it does in another order.
bool IsRepeated();

// Prints the report when the program ends, which then fails if there is a
// finding; $D2L_CHECK_CUDA_TABLE names a file that gets the requests, a line
// each, as tools/kernel_table.py reads them.
void ReportAtExit();

// What check_hooks.cc calls.
namespace internal {
void OnAccess(const void* address, std::size_t bytes, bool writes,
              const void* site);
void OnIndexOutOfBounds(const void* site);
void OnMisaligned(const void* address, const void* site);
void FoundInstrumentation();
}  // namespace internal

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_FAKE_CHECK_H_
