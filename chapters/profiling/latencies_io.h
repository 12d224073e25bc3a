// Latencies of a disk and of the network inside this machine.
//
//   DiskLatencies disk = MeasureDisk("/tmp", 64 << 20, Budget());
//   Measurement tcp = MeasureLoopback(Budget());
//
// What cannot be measured (no room, not writable, a sandbox without sockets)
// says why. Thread-safe.

#ifndef D2L_CHAPTERS_PROFILING_LATENCIES_IO_H_
#define D2L_CHAPTERS_PROFILING_LATENCIES_IO_H_

#include <cstdint>
#include <string>

#include "chapters/profiling/latencies_sampling.h"

namespace d2l {

struct DiskLatencies {
  Measurement random_read;       // 4 KiB
  Measurement random_write;      // 4 KiB, and until the disk has it
  Measurement sequential_read;   // 1 MiB
  Measurement sequential_write;  // 1 MiB
};

// Of a file of about file_bytes, at least 8 MiB, in an existing directory. It
// has no name there, except for a moment before it is written: whatever happens
// to the program, none is left. Past the page cache where the file system
// allows it; `how` says which, and what file system it is. The budget is for
// each of the four; a slow disk gets a smaller file.
DiskLatencies MeasureDisk(const std::string& directory, std::int64_t file_bytes,
                          const Budget& budget);

// TMPDIR, or /tmp.
std::string TemporaryDirectory();

// One byte over TCP to a thread of this program, on 127.0.0.1, and back.
Measurement MeasureLoopback(const Budget& budget);

}  // namespace d2l

#endif  // D2L_CHAPTERS_PROFILING_LATENCIES_IO_H_
