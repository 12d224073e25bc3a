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
#include <thread>
#include <utility>
#include <vector>

#include "common/lesson/cell/cell.h"

namespace d2l::profiling {

// hardware.cc

// `count` numbers of x, in bursts of so many side by side.
std::uint64_t SumBursts(const std::vector<std::uint64_t>& x, int burst,
                        int count);
// The product of all; the size is a multiple of 8. chains: 1, 2, 4 or 8.
float Product(const std::vector<float>& x, int chains);
// Two threads, each with a counter; the other's is so many numbers further. On
// the first and the last of these CPUs.
void CountInTwo(std::atomic<std::int64_t>* counters, int apart, int times,
                const std::vector<int>& cpus);
// The sum of the numbers from 128 on, with a branch for each and without.
std::int64_t SumOfLarge(const std::vector<std::uint8_t>& x);
std::int64_t SumOfLargeUnbranched(const std::vector<std::uint8_t>& x);

// vectors.cc

// How many floats the widest vector of this machine has.
int WidestVector();
// y += a * x, with vectors of 1, 2, 4, 8 or 16 floats, at most the widest. n is
// a multiple of 16.
void AddScaled(int lanes, float a, const float* x, float* y, std::size_t n);
// The sums of n numbers from the first on, in a thread for each of x; so many
// times, with so many operations for each number. n is a multiple of 64.
void SumInThreads(const std::vector<std::vector<float>>& x, std::size_t first,
                  std::size_t n, int times, int operations);

// storage.cc and packets.cc

// An open file or socket, which it closes.
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

// A file in the folder for temporary files, whose name is removed already.
struct TemporaryFile {
  std::int64_t bytes;
  bool in_memory;     // on a tmpfs
  Descriptor cached;  // reads through the page cache
  Descriptor direct;  // and past it; -1 if that is refused
};

// Of so many bytes, a multiple of 1 MiB. Throws std::system_error or, if the
// disk has less than twice as much free, std::runtime_error.
TemporaryFile MakeTemporaryFile(std::int64_t bytes);

// Reads 4 KiB at random places of the first `bytes`, so many at a time. Throws
// std::runtime_error if one could not be read.
void ReadBlocks(int file, std::int64_t bytes, int reads, int at_a_time);

// A connection to a thread of this program, over 127.0.0.1. The thread answers
// with a byte when it has all bytes of a message. Throws std::system_error,
// also where an answer does not come within five seconds.
class Loopback {
 public:
  enum class Protocol { kTcp, kUdp };

  explicit Loopback(Protocol protocol);
  ~Loopback();
  Loopback(const Loopback&) = delete;
  Loopback& operator=(const Loopback&) = delete;

  // Sends a message of so many bytes in pieces of at most `piece`, and waits
  // for the answer.
  void Exchange(int bytes, int piece);

  static constexpr int kLargest = 1 << 16;

 private:
  void Answer();

  const std::pair<Descriptor, Descriptor> ends_;  // ours, the thread's
  const std::vector<char> message_;
  std::atomic<int> expected_{0};  // bytes of the message; 0: the end
  std::thread answering_;
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

// Of these cells: bytes that no cache holds for long, or what a quarter of the
// free memory allows; and a line for a place of a sweep: how long each of
// `count` took that were timed there.
std::int64_t LargeBytes(const Cell& cell);
void PrintAt(const std::string& place, const Timings& timings, int count);

}  // namespace d2l::profiling

#endif  // D2L_CHAPTERS_PROFILING_HARDWARE_H_
