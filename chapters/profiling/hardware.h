// The programs of the cells d2l/hw-*: each shows one thing that a processor,
// its memory, a disk or a network does. For the lesson and its benchmarks.
//
// The functions return when all is done; those that need threads start them.
// Thread-safe for different arguments, but two at once spoil each other's
// times.

#ifndef D2L_CHAPTERS_PROFILING_HARDWARE_H_
#define D2L_CHAPTERS_PROFILING_HARDWARE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/lesson/cell/cell.h"

namespace d2l::profiling {

// hardware.cc

// The sum of `count` numbers of x, in bursts of `burst` adjacent numbers.
std::uint64_t SumBursts(const std::vector<std::uint64_t>& x, int burst,
                        int count);
// The product of all; x.size() is a multiple of 8. chains: 1, 2, 4 or 8.
float Product(const std::vector<float>& x, int chains);
// Two threads, on the first and last of these CPUs, each increment a counter
// `times` times; the second counter is `apart` numbers behind the first.
void CountInTwo(std::atomic<std::int64_t>* counters, int apart, int times,
                const std::vector<int>& cpus);
// The sum of the numbers of at least 128, with a branch for each and without.
std::int64_t SumOfLarge(const std::vector<std::uint8_t>& x);
std::int64_t SumOfLargeUnbranched(const std::vector<std::uint8_t>& x);

// vectors.cc

// How many floats the widest vector of this machine has.
int WidestVector();
// y += a * x, with vectors of 1, 2, 4, 8 or 16 floats, at most the widest. n is
// a multiple of 16.
void AddScaled(int lanes, float a, const float* x, float* y, std::size_t n);
// A thread for each vector of x adds up its n numbers from `first` on, `times`
// times, with `operations` operations per number. n is a multiple of 64.
void SumInThreads(const std::vector<std::vector<float>>& x, std::size_t first,
                  std::size_t n, int times, int operations);

// storage.cc and packets.cc

// Owns an open file or socket: the destructor closes it.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;

  int get() const { return fd_; }

 private:
  int fd_;
};

// A file in the folder for temporary files, whose name is already removed.
struct TemporaryFile {
  std::int64_t bytes;
  Descriptor cached;  // reads through the page cache
  Descriptor direct;  // reads past it; -1 if that is refused
};

// bytes is a multiple of 1 MiB. Throws std::system_error.
TemporaryFile MakeTemporaryFile(std::int64_t bytes);

// Reads 4 KiB at random places of the first `bytes`, `at_a_time` at a time.
// Throws std::runtime_error if one could not be read.
void ReadBlocks(int file, std::int64_t bytes, int reads, int at_a_time);

// Two connected ends on 127.0.0.1. Throws std::system_error, also if a message
// does not arrive within five seconds.
class Loopback {
 public:
  enum class Protocol { kTcp, kUdp };

  explicit Loopback(Protocol protocol);

  // Sends a message of `bytes` bytes, at most kLargest, in pieces of at most
  // `piece` from one end to the other, and then a byte back.
  void Exchange(int bytes, int piece);

  static constexpr int kLargest = 1 << 16;

 private:
  const std::pair<Descriptor, Descriptor> ends_;
  char message_[kLargest] = {};
};

// Cells
void Bandwidth(Cell& cell);
void Chains(Cell& cell);
void Branches(Cell& cell);
void Vectors(Cell& cell);
void CacheStarvation(Cell& cell);
void FalseSharing(Cell& cell);
void Precision(Cell& cell);
void Packets(Cell& cell);
void StorageQueue(Cell& cell);

// For these cells. LargeBytes: more than a cache holds for long, but at most a
// quarter of the free memory. PrintAt: a line for a place of a sweep, with the
// time of each of the `count` operations that were timed there.
std::int64_t LargeBytes(const Cell& cell);
void PrintAt(const std::string& place, const Timings& timings, int count);

}  // namespace d2l::profiling

#endif  // D2L_CHAPTERS_PROFILING_HARDWARE_H_
