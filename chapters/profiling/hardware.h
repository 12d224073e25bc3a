// What the files of the cells d2l/hw-* share. Each cell shows one thing that a
// processor, its memory, a disk or a network does.
//
// For one thread: cells that run at once spoil each other's times.

#ifndef D2L_CHAPTERS_PROFILING_HARDWARE_H_
#define D2L_CHAPTERS_PROFILING_HARDWARE_H_

#include <cstdint>
#include <string>
#include <utility>

#include "common/lesson/cell/cell.h"

namespace d2l::profiling {

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

// More bytes than a cache holds for long, but at most a quarter of the free
// memory.
std::int64_t LargeBytes(const Cell& cell);
// Prints a table: a line for each place of the sweep, with the time of one of
// the `count` operations that were timed there. what: "time of a number".
void PrintSweep(const std::vector<Timings>& sweep, int count,
                const Phrase& what);

}  // namespace d2l::profiling

#endif  // D2L_CHAPTERS_PROFILING_HARDWARE_H_
