#include "common/base/cgroup.h"

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace d2l {

std::vector<Cgroup> Cgroups(const std::string& controller,
                            const std::string& root) {
  std::vector<Cgroup> groups;
  std::ifstream lines(root + "/proc/self/cgroup");
  std::string line;
  // "0::/user.slice" for version 2, "4:cpu,cpuacct:/docker/1f" for version 1.
  while (std::getline(lines, line)) {
    const std::vector<std::string> fields =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    const bool v2 = fields[1].empty();
    const std::vector<std::string> controllers = absl::StrSplit(fields[1], ',');
    if (!v2 && !absl::c_linear_search(controllers, controller)) continue;
    const std::string mounted =
        root + "/sys/fs/cgroup" + (v2 ? "" : "/" + controller);
    // In a container the path may be one of the host's, of which only the end
    // is mounted, at the root: then only the last round finds a file.
    for (std::string path = fields[2];; path.erase(path.rfind('/'))) {
      if (path == "/") path.clear();
      groups.push_back({absl::StrCat(mounted, path, "/"), v2});
      if (path.rfind('/') == std::string::npos) break;
    }
  }
  return groups;
}

std::vector<std::string> CgroupValues(const std::string& controller,
                                      const std::string& v1_file,
                                      const std::string& v2_file,
                                      const std::string& root) {
  std::vector<std::string> values;
  for (const Cgroup& group : Cgroups(controller, root)) {
    std::ifstream file(group.folder + (group.v2 ? v2_file : v1_file));
    std::string value;
    if (std::getline(file, value)) values.push_back(std::move(value));
  }
  return values;
}

}  // namespace d2l
