#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ext/stdio_filebuf.h>
#include <fstream>
#include <istream>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/strings/substitute.h"
#include "common/kernels/cuda/fake/check.h"

namespace d2l::kernels::cuda {
namespace {

// By kind. $0: the kernel; $1: which memory; $2, $3, $4: the thread, what it
// does, and the line; $5, $6, $7: the same of the earlier access.
constexpr const char* kSentences[] = {
    "$0: a race in $1: $2 $3 ($4) what $5 $6 ($7), and nothing orders the two",
    "$0: not all threads of a block reach the barrier ($4)",
    "$0: threads of a block wait at two different barriers ($4 and $7)",
    "$0: a lane waits for others of its warp that do not come ($4)",
    "$0: $2 is not in the mask that it gives ($4)",
    "$0: lanes of a warp wait for each other with different masks or words "
    "($4 and $7)",
    "$0: $2 reads $1 that nobody wrote ($4)",
    "$0: $2 goes beyond the end of an array ($4)",
    "$0: $2 uses $1 that is not aligned to the access ($4)",
    "$0: the result depends on the order of the threads ($4)"};

// "void d2l::(anonymous namespace)::Double<float>(float*, int)" is Double.
std::string ShortName(std::string name) {
  absl::StrReplaceAll({{"(anonymous namespace)::", ""}}, &name);
  name.resize(std::min(name.size(), name.find_first_of("<(")));
  return name.substr(name.find_last_of(": ") + 1);
}

bool IsOfWords(const std::string& file) {
  return absl::StrContains(file, "common/kernels/cuda/fake/") &&
         absl::EndsWith(file, ".h");
}

std::map<Site, SourceLine> LinesOf(const std::set<Site>& sites) {
  std::map<Site, SourceLine> lines;
  // The length of a command line is limited.
  for (auto named = sites.begin(), next = named; next != sites.end();) {
    std::string command =
        absl::StrCat("addr2line -a -i -f -C -e /proc/", getpid(), "/exe");
    for (int i = 0; i < 500 && next != sites.end(); ++i, ++next) {
      absl::StrAppendFormat(&command, " 0x%x", *next);
    }
    command += " 2> /dev/null";  // without addr2line there are no lines
    std::FILE* const pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) break;
    __gnu_cxx::stdio_filebuf<char> output(pipe, std::ios::in);
    std::istream in(&output);
    // After the address, a function and a place for each inlined call, from
    // the inside out. CUDA's words are inlined: their caller has the line.
    SourceLine* line = nullptr;
    for (std::string function, place; std::getline(in, function);) {
      if (absl::StartsWith(function, "0x")) {
        line = &lines[*named++];
        continue;
      }
      if (!std::getline(in, place)) break;
      const std::pair<std::string, std::string> at =
          absl::StrSplit(absl::StripPrefix(place, "/proc/self/cwd/"), ':');
      if (!line->file.empty() && !IsOfWords(line->file)) continue;
      *line = {at.first, std::atoi(at.second.c_str()), ShortName(function)};
    }
    pclose(pipe);
  }
  return lines;
}

}  // namespace

CheckReport internal::Named(AllFindings&& findings, AllRequests&& requests) {
  std::set<Site> sites;
  for (const auto& [key, unused] : findings) {
    sites.insert(key.second.begin(), key.second.end());
  }
  for (const auto& [key, unused] : requests) {
    sites.insert({key.first, std::get<Site>(key.second)});
  }
  std::map<Site, SourceLine> lines = LinesOf(sites);
  CheckReport report;
  // A line may have several sites, a kernel several instances.
  std::set<std::string> reported;
  for (auto& [key, finding] : findings) {
    finding.kernel = lines[key.second[0]].function;
    for (Event* const e : {&finding.at, &finding.before}) {
      static_cast<SourceLine&>(*e) = lines[e->site];
    }
    // The compiler may have made several calls of one.
    if (finding.kind == FindingKind::kTwoBarriers &&
        finding.at.ToString() == finding.before.ToString()) {
      continue;
    }
    Finding same = finding;
    for (Event* const e : {&same.at, &same.before}) e->block = e->thread = 0;
    if (reported.insert(same.ToString()).second)
      report.findings.push_back(finding);
  }
  std::map<std::tuple<std::string, std::string, int, AccessKind>, Requests>
      rows;
  for (auto& [key, r] : requests) {
    r.kernel = lines[key.first].function;
    r.at = lines[std::get<Site>(key.second)];
    const auto [row, is_new] = rows.try_emplace(
        {r.kernel, r.at.file, r.at.line, {0, r.shared, r.writes, r.bytes}}, r);
    if (!is_new) row->second.Add(r);
  }
  for (const auto& [key, row] : rows) report.requests.push_back(row);
  return report;
}

void internal::Print(const CheckReport& report) {
  if (const char* const file = std::getenv("D2L_CHECK_CUDA_TABLE")) {
    std::ofstream out(file, std::ios::app);
    for (const Requests& r : report.requests) {
      const auto row =
          std::tie(r.kernel, r.shared, r.writes, r.requests, r.lanes, r.sectors,
                   r.ideal_sectors, r.conflicts);
      out << absl::StrJoin(row, " ") << '\n';
    }
  }
  if (report.findings.empty()) return;
  for (const Finding& finding : report.findings) {
    std::fprintf(stderr, "%s\n", finding.ToString().c_str());
  }
  std::fprintf(stderr, "%zu findings in CUDA kernels\n",
               report.findings.size());
  std::fflush(nullptr);
  _exit(66);
}

std::string Finding::ToString() const {
  const auto thread = [](const Event& e) {
    return absl::StrCat("thread ", e.thread, " of block ", e.block);
  };
  const auto does = [](const Event& e) {
    return e.writes ? "writes" : "reads";
  };
  return absl::Substitute(kSentences[static_cast<int>(kind)], kernel,
                          shared ? "shared memory" : "global memory",
                          thread(at), does(at), at.ToString(), thread(before),
                          does(before), before.ToString());
}

}  // namespace d2l::kernels::cuda
