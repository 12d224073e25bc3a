// The measurements behind the rows of latencies.h.
//
//   const Measurement mutex = MeasureMutex(Budget());
//
// Each runs on the calling thread and takes about the budget. What is in the
// way of a measurement is its reason, or a std::exception that says it. The
// functions are thread-safe, but two at once spoil each other's figures.

#ifndef D2L_CHAPTERS_PROFILING_LATENCIES_MEASURE_H_
#define D2L_CHAPTERS_PROFILING_LATENCIES_MEASURE_H_

#include <cstdint>
#include <string>

#include "chapters/profiling/latencies/sampling.h"
#include "common/device/device.h"

namespace d2l {

// core.cc: one core, and the kernel.

// An addition of doubles that needs the result of the one before.
Measurement MeasureAddition(const Budget& budget);
// What a wrongly predicted branch costs more than a rightly predicted one.
Measurement MeasureMispredict(const Budget& budget);
// A std::mutex that no other thread wants, locked and unlocked. The program
// must have a second thread: the C library may leave out the atomic
// instructions of a program that has none.
Measurement MeasureMutex(const Budget& budget);
// An addition to a std::atomic that no other thread uses.
Measurement MeasureAtomic(const Budget& budget);
// The cheapest call into the kernel, getppid.
Measurement MeasureSystemCall(const Budget& budget);

// memory.cc: a load, by where the data lie.

struct MemoryLatencies {
  Measurement l1, l2, l3;
  Measurement mib64;   // of 64 MiB, wherever they lie
  Measurement beyond;  // of memory larger than the caches
};
// max_bytes bounds the memory that is used.
MemoryLatencies MeasureMemory(std::int64_t max_bytes, const Budget& budget);

// threads.cc: threads on pinned cores; half of a round trip is one way.

// To a thread on another core that watches a flag.
Measurement MeasureCacheLine(const Budget& budget);
// To a thread on another core that sleeps on a condition variable.
Measurement MeasureWakeUp(const Budget& budget);
// To a thread on the same core that sleeps on a condition variable.
Measurement MeasureContextSwitch(const Budget& budget);
// A thread that does nothing, created and joined.
Measurement MeasureThread(const Budget& budget);

// device.cc: the device is idle before and after.

// x + y of one element, until the call has returned.
Measurement MeasureEnqueue(Device device, const Budget& budget);
// The same, until the device has done it.
Measurement MeasureCompletion(Device device, const Budget& budget);

struct CopyLatencies {
  Measurement to_device, from_device;
};
// 1 MiB between pinned host memory and the device, until it is done.
CopyLatencies MeasureCopies(Device device, const Budget& budget);

// disk.cc and loopback.cc.

struct DiskLatencies {
  Measurement random_read;       // 4 KiB
  Measurement random_write;      // 4 KiB, until the disk has it
  Measurement sequential_read;   // 1 MiB
  Measurement sequential_write;  // 1 MiB
};
// Of a file of about file_bytes, at least 8 MiB, in an existing directory. Its
// name is removed before it is written, so that none is left whatever happens
// to the program. The page cache is avoided where the file system allows it.
// The budget is for each of the four; a slow disk gets a smaller file.
DiskLatencies MeasureDisk(const std::string& directory, std::int64_t file_bytes,
                          const Budget& budget);

// One byte over TCP to a thread of this program, on 127.0.0.1, and back.
Measurement MeasureLoopback(const Budget& budget);

}  // namespace d2l

#endif  // D2L_CHAPTERS_PROFILING_LATENCIES_MEASURE_H_
