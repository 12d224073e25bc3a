// Draws the parts of this machine, as the system names them: sockets with their
// cores and caches, memory, GPUs, disks and networks.
//
//   cell.Show(DrawMachine(FindMachineParts()));
//
// `root` is the directory that has proc and sys, for tests. What the system
// does not name is left out. Thread-safe.

#ifndef D2L_CHAPTERS_PROFILING_MACHINE_DRAWING_H_
#define D2L_CHAPTERS_PROFILING_MACHINE_DRAWING_H_

#include <string>
#include <vector>

#include "common/drawing/drawing.h"

namespace d2l {

struct MachineParts {
  std::vector<int> cores;              // of each socket
  std::vector<std::string> caches;     // of each core: "L1 48.0 KiB"
  std::string last_cache;              // of all cores of a socket, or ""
  std::vector<std::string> connected;  // "memory 15.6 GiB", "disk vda"
};

MachineParts FindMachineParts(const std::string& root = "");

Drawing DrawMachine(const MachineParts& parts);

}  // namespace d2l

#endif  // D2L_CHAPTERS_PROFILING_MACHINE_DRAWING_H_
