// What the kernel says about this machine in files under /proc and /sys.
//
//   std::optional<std::string> text = ReadTextFile("/proc/stat");
//   std::int64_t bytes = AvailableMemoryBytes("/").value_or(0);
//
// `root` is "/", or in tests a folder with made-up files. Containers and
// virtual machines leave files out: every answer is optional. All functions
// are thread-safe.

#ifndef D2L_CHAPTERS_PROFILING_MACHINE_FILES_H_
#define D2L_CHAPTERS_PROFILING_MACHINE_FILES_H_

#include <cstdint>
#include <optional>
#include <string>

namespace d2l {

// The whole file; nothing if it cannot be read.
std::optional<std::string> ReadTextFile(const std::string& path);

// The file's text without space at its ends; nothing if that is empty.
std::optional<std::string> ReadWord(const std::string& path);

// The integer that the file begins with: ReadInt("…/memory.max").
std::optional<std::int64_t> ReadInt(const std::string& path);

// The value of a line such as "MemTotal:   24684 kB" or "pswpin 12", without
// its unit.
std::optional<std::int64_t> FieldOf(const std::string& text,
                                    const std::string& name);

// What can still be allocated before the machine swaps, or the cgroup of this
// container is full.
std::optional<std::int64_t> AvailableMemoryBytes(const std::string& root);

}  // namespace d2l

#endif  // D2L_CHAPTERS_PROFILING_MACHINE_FILES_H_
