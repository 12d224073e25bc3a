// The limits of this process's control groups, such as a container's.
//
//   for (const std::string& max : CgroupValues("pids", "pids.max", "pids.max"))
//     …  // "max" or a number, for the innermost group first
//
// Reads both versions of the interface. Thread-safe.

#ifndef D2L_COMMON_BASE_CGROUP_H_
#define D2L_COMMON_BASE_CGROUP_H_

#include <string>
#include <vector>

namespace d2l {

// A group that the process is in.
struct Cgroup {
  std::string folder;  // of its files; ends in a slash
  bool v2;             // the version of the interface
};

// The groups from the innermost one up, including folders that are not there:
// a container may not see its group's own. controller: "cpu", "memory", "pids".
// root: the directory that has proc and sys; for tests.
std::vector<Cgroup> Cgroups(const std::string& controller,
                            const std::string& root = "");

// The contents, without the line's end, of a file of each of them; groups
// without the file are left out. v1_file, v2_file: the file's name in either
// version.
std::vector<std::string> CgroupValues(const std::string& controller,
                                      const std::string& v1_file,
                                      const std::string& v2_file,
                                      const std::string& root = "");

}  // namespace d2l

#endif  // D2L_COMMON_BASE_CGROUP_H_
