#include "chapters/profiling/machine_files.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace d2l {

std::optional<std::string> ReadTextFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  // A folder can be opened, but not read.
  if (!file || !(text << file.rdbuf())) return std::nullopt;
  return text.str();
}

std::optional<std::string> ReadWord(const std::string& path) {
  const std::optional<std::string> text = ReadTextFile(path);
  if (!text) return std::nullopt;
  const std::string word(absl::StripAsciiWhitespace(*text));
  if (word.empty()) return std::nullopt;
  return word;
}

std::optional<std::int64_t> ReadInt(const std::string& path) {
  const std::optional<std::string> word = ReadWord(path);
  std::int64_t value = 0;
  if (!word || !absl::SimpleAtoi(*word, &value)) return std::nullopt;
  return value;
}

std::optional<std::int64_t> FieldOf(const std::string& text,
                                    const std::string& name) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    std::int64_t value = 0;
    if (words.size() >= 2 && absl::StripSuffix(words[0], ":") == name &&
        absl::SimpleAtoi(words[1], &value)) {
      return value;
    }
  }
  return std::nullopt;
}

std::optional<std::int64_t> AvailableMemoryBytes(const std::string& root) {
  std::optional<std::int64_t> available;
  const auto at_most = [&](std::int64_t bytes) {
    available = std::min(available.value_or(bytes), bytes);
  };
  const std::optional<std::string> meminfo =
      ReadTextFile(root + "/proc/meminfo");
  if (meminfo) {
    const std::optional<std::int64_t> kib = FieldOf(*meminfo, "MemAvailable");
    if (kib) at_most(*kib * 1024);
  }
  // cgroup v2, then v1. Without a limit, v2 says "max" and v1 a huge number.
  const std::string v2 = root + "/sys/fs/cgroup/memory.";
  const std::string v1 = root + "/sys/fs/cgroup/memory/memory.";
  const struct {
    std::string limit, used;
  } kFiles[] = {{v2 + "max", v2 + "current"},
                {v1 + "limit_in_bytes", v1 + "usage_in_bytes"}};
  for (const auto& files : kFiles) {
    const std::optional<std::int64_t> limit = ReadInt(files.limit);
    const std::optional<std::int64_t> used = ReadInt(files.used);
    if (limit && used) at_most(std::max<std::int64_t>(*limit - *used, 0));
  }
  return available;
}

}  // namespace d2l
