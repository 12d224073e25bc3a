#include "common/kernels/cuda/fake/check.h"

#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/kernels/cuda/fake/grid.h"

namespace d2l::kernels::cuda {
namespace {

constexpr std::size_t kSector = kSectorBytes;
constexpr std::size_t kGuard = 256;
constexpr unsigned kCountedBlocks = 16;
constexpr int kExitCode = 66;

// Addresses of code, from the program's beginning: what addr2line takes. A call
// returns behind itself.
using Site = std::uint32_t;

// Where this program's code begins, and its thread-local variables are large.
struct Program {
  std::uintptr_t code = 0;
  const char* shared = nullptr;  // of this thread
  std::size_t shared_bytes = 0;
};

Program ThisProgram() {
  Program program;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        auto& program = *static_cast<Program*>(to);
        program.code = info->dlpi_addr;
        program.shared = static_cast<const char*>(info->dlpi_tls_data);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          if (info->dlpi_phdr[i].p_type == PT_TLS) {
            program.shared_bytes = info->dlpi_phdr[i].p_memsz;
          }
        }
        return 1;  // the program itself comes first
      },
      &program);
  return program;
}

std::uintptr_t CodeBegin() {
  static const std::uintptr_t begin = ThisProgram().code;
  return begin;
}

Site SiteOf(const void* address) {
  return static_cast<Site>(reinterpret_cast<std::uintptr_t>(address) -
                           CodeBegin());
}

// ---- Shadows.

// Who used a word, and when: `epoch` is how many barriers its block had passed.
struct Use {
  Site site = 0;  // 0: nobody
  std::uint32_t block = 0;
  std::uint16_t thread = 0;
  std::uint16_t epoch = 0;
  bool atomic = false;

  bool SameThread(const Use& b) const {
    return block == b.block && thread == b.thread;
  }
  // Whether nothing orders the two.
  bool Unordered(const Use& b) const {
    if (site == 0 || SameThread(b)) return false;
    return block != b.block || epoch == b.epoch;
  }
};

struct Cell {
  Use write;
  // Two suffice to find a read by another thread, and by another block.
  Use read[2];
};

constexpr std::size_t kPage = 256;

// The words of some memory: of four bytes until one is used in parts.
struct Page {
  std::uint32_t generation = 0;
  std::size_t granule = 4;
  std::vector<Cell> cells;
  // Of each byte: whether it was written, and in the first run; what was there
  // before, and after the first run.
  std::array<bool, kPage> written, written_first;
  std::array<char, kPage> before, after;

  void Clear(std::uint32_t to) {
    generation = to;
    granule = 4;
    cells.assign(kPage / granule, Cell());
    written.fill(false);
    written_first.fill(false);
  }
  void Split() {
    std::vector<Cell> bytes(kPage);
    for (std::size_t i = 0; i < kPage; ++i) bytes[i] = cells[i / granule];
    cells = std::move(bytes);
    granule = 1;
  }
};

class Shadow {
 public:
  void Clear() { ++generation_; }
  // Also gives the memory back.
  void Drop() {
    pages_.clear();
    known_.fill({0, nullptr});
  }

  Page& At(std::uintptr_t address) {
    const std::uintptr_t number = address / kPage;
    auto& [known, page] = known_[number % known_.size()];
    if (page == nullptr || known != number) {
      std::unique_ptr<Page>& owned = pages_[number];
      if (owned == nullptr) owned = std::make_unique<Page>();
      known = number;
      page = owned.get();
    }
    if (page->generation != generation_) page->Clear(generation_);
    return *page;
  }

  // Before a write.
  void KeepBefore(std::uintptr_t begin, std::size_t bytes) {
    while (bytes > 0) {
      Page& page = At(begin);
      const std::size_t first = begin % kPage;
      const std::size_t count = std::min(bytes, kPage - first);
      const char* const data = reinterpret_cast<const char*>(begin);
      for (std::size_t i = 0; i < count; ++i) {
        if (page.written[first + i]) continue;
        page.written[first + i] = true;
        page.before[first + i] = data[i];
      }
      begin += count;
      bytes -= count;
    }
  }

  // Calls f(page, byte of it, the byte) for each that was written.
  template <typename F>
  void ForEachWritten(F f) {
    for (auto& [number, page] : pages_) {
      if (page->generation != generation_) continue;
      for (std::size_t i = 0; i < kPage; ++i) {
        if (page->written[i]) {
          f(*page, i, reinterpret_cast<char*>(number * kPage + i));
        }
      }
    }
  }

 private:
  std::unordered_map<std::uintptr_t, std::unique_ptr<Page>> pages_;
  std::uint32_t generation_ = 1;
  std::array<std::pair<std::uintptr_t, Page*>, 1024> known_{};
};

// ---- Requests.

struct Request {
  std::uint32_t lanes = 0;
  std::array<std::uintptr_t, warpSize> addresses;
};

// A site, and what is done there: the bytes of an access, whether it writes,
// whether it is of shared memory.
using Place = std::uint64_t;

// What the lanes of a warp have asked for at one place.
struct Asked {
  std::array<std::uint32_t, warpSize> times{};
  std::vector<Request> requests;
};

// How many different numbers there are; sorts them.
template <typename List>
std::int64_t CountDistinct(List& list) {
  std::sort(list.begin(), list.end());
  return std::unique(list.begin(), list.end()) - list.begin();
}

// The words, by bank, that do not fit into one pass. Lanes with 8 bytes pass in
// halves of a warp, with 16 in quarters.
std::int64_t Conflicts(const Request& request, int bytes) {
  const int lanes = bytes <= 4 ? warpSize : std::max(1, warpSize * 4 / bytes);
  std::int64_t conflicts = 0;
  std::vector<std::uintptr_t> words;
  for (int begin = 0; begin < warpSize; begin += lanes) {
    words.clear();
    for (int lane = begin; lane < begin + lanes; ++lane) {
      if ((request.lanes >> lane & 1) == 0) continue;
      const std::uintptr_t address = request.addresses[lane];
      for (std::uintptr_t word = address / 4; word <= (address + bytes - 1) / 4;
           ++word) {
        words.push_back(word);
      }
    }
    words.resize(CountDistinct(words));
    std::array<int, kBanks> of_bank{};
    int most = 1;
    for (const std::uintptr_t word : words) {
      most = std::max(most, ++of_bank[word % kBanks]);
    }
    conflicts += most - 1;
  }
  return conflicts;
}

void Count(const Request& request, Requests& to) {
  std::vector<std::uintptr_t> sectors, starts;
  for (int lane = 0; lane < warpSize; ++lane) {
    if ((request.lanes >> lane & 1) == 0) continue;
    const std::uintptr_t address = request.addresses[lane];
    starts.push_back(address);
    for (std::uintptr_t s = address / kSector;
         s <= (address + to.bytes - 1) / kSector; ++s) {
      sectors.push_back(s);
    }
  }
  to.lanes += static_cast<std::int64_t>(starts.size());
  const std::int64_t distinct = CountDistinct(starts);
  if (++to.requests == 1) {
    const std::uintptr_t unit =
        to.shared ? std::size_t{kBanks} * kWordBytes : kSector;
    const std::uintptr_t begin = starts[0] / unit * unit;
    for (int lane = 0; lane < warpSize; ++lane) {
      to.first.push_back(
          (request.lanes >> lane & 1) == 0
              ? -1
              : static_cast<std::int64_t>(request.addresses[lane] - begin));
    }
  }
  if (to.shared) {
    to.conflicts += Conflicts(request, to.bytes);
    return;
  }
  to.sectors += CountDistinct(sectors);
  to.ideal_sectors += (distinct * to.bytes + kSector - 1) / kSector;
}

// ---- The checker.

class Checker final : public GridObserver {
 public:
  void Run(const void* kernel, const Grid& grid, FindMemory find);

  void BeginBlock(std::uint32_t block) override {
    block_ = block;
    ++blocks_begun_;
    epoch_ = 0;
    shared_.Clear();
  }
  void Resume(unsigned thread, const char* stack, std::size_t bytes) override {
    thread_ = thread;
    stack_ = stack;
    stack_bytes_ = bytes;
    active = this;
  }
  void Pause() override { active = nullptr; }
  void Barrier(const void* site, unsigned absent) override {
    ++epoch_;
    if (absent == 0 || repeated_) return;
    Find(FindingKind::kBarrier, SiteOf(site) - 1);
  }
  void StrandedLane(const void* site) override {
    if (!repeated_) Find(FindingKind::kStrandedLane, SiteOf(site) - 1);
  }
  void Atomic(const void* address, std::size_t bytes,
              const void* site) override {
    // The read counts for whether the word was written.
    if (IsShared(address)) Access(address, bytes, false, true, site);
    Access(address, bytes, /*writes=*/true, /*atomic=*/true, site);
  }
  void EndBlock() override;

  void Access(const void* address, std::size_t bytes, bool writes, bool atomic,
              const void* site);
  void OutOfBounds(const void* site) {
    if (!repeated_) Find(FindingKind::kOutOfBounds, SiteOf(site) - 1);
  }
  void Misaligned(const void* address, const void* site) {
    if (repeated_) return;
    Find(FindingKind::kMisaligned, SiteOf(site) - 1, nullptr,
         IsShared(address));
  }
  bool repeated() const { return repeated_; }
  CheckReport Take();
  CheckReport TakeLocked();  // on the thread whose grid runs

  // The one whose kernel's thread runs on this thread.
  static thread_local Checker* active;

 private:
  bool IsShared(const void* address) const {
    const char* const a = static_cast<const char*>(address);
    return a >= program_.shared && a < program_.shared + program_.shared_bytes;
  }
  static bool IsIndex(const void* address);
  Memory MemoryOf(const char* address);
  void Mark(Shadow& shadow, std::uintptr_t begin, std::size_t bytes,
            bool writes, bool is_shared, const Use& use);
  void Find(FindingKind kind, Site at, const Use* before = nullptr,
            bool shared = false, bool writes = false,
            bool before_writes = false);
  void AddToRequest(const void* address, std::size_t bytes, bool writes,
                    bool shared, Site site);
  void Repeat(const Grid& grid, TurnOrder order);

  std::mutex mutex_;  // held while a grid runs
  Program program_;
  FindMemory find_ = nullptr;
  // What was found of each sector, so that it is asked for once in a grid.
  std::array<std::pair<std::uintptr_t, Memory>, 1024> found_;
  Shadow shared_, global_;
  Site kernel_ = 0;
  std::uint32_t block_ = 0;
  unsigned blocks_begun_ = 0;
  unsigned thread_ = 0;
  const char* stack_ = nullptr;
  std::size_t stack_bytes_ = 0;
  std::uint16_t epoch_ = 0;
  bool repeated_ = false;
  // By warp of the block.
  std::array<std::unordered_map<Place, Asked>, 1024 / warpSize> asked_;

  // By kernel, the site and the one before it.
  std::map<std::tuple<FindingKind, Site, Site, Site>, Finding> findings_;
  std::map<std::pair<Site, Place>, Requests> requests_;  // by kernel
};

thread_local Checker* Checker::active = nullptr;

Checker& TheChecker() {
  static auto& checker = *new Checker;
  return checker;
}

// A thread reads its own coordinates: on a GPU they are registers.
bool Checker::IsIndex(const void* address) {
  for (const dim3* index : {&threadIdx, &blockIdx, &blockDim, &gridDim}) {
    if (address >= index && address < index + 1) return true;
  }
  return false;
}

void Checker::Find(FindingKind kind, Site at, const Use* before, bool shared,
                   bool writes, bool before_writes) {
  const auto [found, is_new] = findings_.try_emplace(
      {kind, kernel_, at, before == nullptr ? 0 : before->site});
  if (!is_new) return;
  Finding& finding = found->second;
  finding.kind = kind;
  finding.shared = shared;
  finding.at_writes = writes;
  finding.block = block_;
  finding.thread = thread_;
  if (before == nullptr) return;
  finding.before_writes = before_writes;
  finding.before_block = before->block;
  finding.before_thread = before->thread;
}

void Checker::Mark(Shadow& shadow, std::uintptr_t begin, std::size_t bytes,
                   bool writes, bool is_shared, const Use& use) {
  for (std::uintptr_t a = begin; a < begin + bytes;) {
    Page& page = shadow.At(a);
    const bool whole = a % 4 == 0 && begin + bytes - a >= 4;
    if (page.granule > 1 && !whole) page.Split();
    Cell& cell = page.cells[a % kPage / page.granule];
    const auto conflict = [&](const Use& before, bool before_writes) {
      if (before.Unordered(use) && !(before.atomic && use.atomic)) {
        Find(FindingKind::kRace, use.site, &before, is_shared, writes,
             before_writes);
      }
    };
    conflict(cell.write, true);
    if (writes) {
      for (const Use& read : cell.read) conflict(read, false);
      cell.write = use;
    } else {
      if (is_shared && cell.write.site == 0) {
        Find(FindingKind::kUninitialised, use.site, nullptr, is_shared);
      }
      // Of a block's own reads the last ones count, and of two slots one is for
      // another thread, or better another block.
      Use& first = cell.read[0];
      Use& second = cell.read[1];
      if (first.site == 0 || first.SameThread(use) ||
          (first.block == use.block && first.epoch != use.epoch)) {
        first = use;
      } else if (second.site == 0 || second.block == first.block ||
                 second.block == use.block) {
        second = use;
      }
    }
    a += page.granule;
  }
}

void Checker::AddToRequest(const void* address, std::size_t bytes, bool writes,
                           bool shared, Site site) {
  Asked& asked = asked_[thread_ / warpSize]
                       [Place{site} << 8 | bytes << 2 | writes << 1 | shared];
  const unsigned lane = thread_ % warpSize;
  const std::uint32_t time = asked.times[lane]++;
  if (asked.requests.size() <= time) asked.requests.resize(time + 1);
  asked.requests[time].lanes |= 1u << lane;
  asked.requests[time].addresses[lane] =
      reinterpret_cast<std::uintptr_t>(address);
}

// Allocations begin and end anywhere in a sector, but no two share one.
Memory Checker::MemoryOf(const char* address) {
  const auto a = reinterpret_cast<std::uintptr_t>(address);
  auto& [sector, memory] = found_[a / kSector % found_.size()];
  if (sector != a / kSector) {
    sector = a / kSector;
    memory = find_(address);
  }
  return memory;
}

void Checker::Access(const void* address, std::size_t bytes, bool writes,
                     bool atomic, const void* return_address) {
  const char* const a = static_cast<const char*>(address);
  if (a >= stack_ && a < stack_ + stack_bytes_) return;
  const bool shared = IsShared(address);
  if (shared && IsIndex(address)) return;
  if (!shared) {
    const Memory memory = MemoryOf(a);
    if (memory.begin == nullptr) {
      // The rest is what the launch has captured.
      if (MemoryOf(a - kGuard).begin != nullptr ||
          MemoryOf(a + kGuard).begin != nullptr) {
        OutOfBounds(return_address);
      }
      return;
    }
    const char* const begin = static_cast<const char*>(memory.begin);
    if (a < begin || a + bytes > begin + memory.bytes) {
      return OutOfBounds(return_address);
    }
  }
  const Site site = SiteOf(return_address) - 1;
  const auto where = reinterpret_cast<std::uintptr_t>(address);
  const Use use = {site, block_, static_cast<std::uint16_t>(thread_), epoch_,
                   atomic};
  if (writes && !shared) global_.KeepBefore(where, bytes);
  if (repeated_) return;
  Mark(shared ? shared_ : global_, where, bytes, writes, shared, use);
  if (blocks_begun_ <= kCountedBlocks && bytes <= 16) {
    AddToRequest(address, bytes, writes, shared, site);
  }
}

void Checker::EndBlock() {
  for (auto& sites : asked_) {
    for (const auto& [place, asked] : sites) {
      Requests& to = requests_[{kernel_, place}];
      to.shared = (place & 1) != 0;
      to.writes = (place >> 1 & 1) != 0;
      to.bytes = static_cast<int>(place >> 2 & 63);
      for (const Request& request : asked.requests) Count(request, to);
    }
    sites.clear();
  }
}

// Runs the grid on what it began with, and compares the bytes.
void Checker::Repeat(const Grid& grid, TurnOrder order) {
  global_.ForEachWritten(
      [](Page& page, std::size_t i, char* byte) { *byte = page.before[i]; });
  RunGrid(grid, order, this);
  bool same = true;
  global_.ForEachWritten([&](Page& page, std::size_t i, char* byte) {
    same = same && page.written_first[i] && page.after[i] == *byte;
  });
  if (!same) Find(FindingKind::kOrder, kernel_);
}

void Checker::Run(const void* kernel, const Grid& grid, FindMemory find) {
  std::lock_guard<std::mutex> lock(mutex_);
  program_ = ThisProgram();
  find_ = find;
  found_.fill({0, {nullptr, 0}});
  kernel_ = SiteOf(kernel);
  blocks_begun_ = 0;
  RunGrid(grid, TurnOrder::kForward, this);
  global_.ForEachWritten([](Page& page, std::size_t i, char* byte) {
    page.written_first[i] = true;
    page.after[i] = *byte;
  });
  repeated_ = true;
  Repeat(grid, TurnOrder::kBackward);
  Repeat(grid, TurnOrder::kShuffled);
  repeated_ = false;
  global_.Drop();
}

// ---- Names.

// The function and the line of each site, by addr2line.
struct Named {
  std::string function;
  SourceLine line;
};

std::map<Site, Named> NamesOf(const std::set<Site>& sites) {
  std::map<Site, Named> names;
  if (sites.empty()) return names;
  std::array<char, 4096> path{};
  if (readlink("/proc/self/exe", path.data(), path.size() - 1) < 0) {
    return names;
  }
  // A command line has its limit.
  for (auto it = sites.begin(); it != sites.end();) {
    std::string command =
        absl::StrCat("addr2line -a -f -C -i -e '", path.data(), "'");
    for (int i = 0; i < 500 && it != sites.end(); ++i, ++it) {
      absl::StrAppendFormat(&command, " 0x%x", *it);
    }
    command += " 2> /dev/null";  // without it there are no lines
    std::FILE* const pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) return names;
    std::string text;
    std::array<char, 4096> part;
    for (std::size_t n; (n = fread(part.data(), 1, part.size(), pipe)) > 0;) {
      text.append(part.data(), n);
    }
    pclose(pipe);
    // 0x…, and then pairs of a function and a line, the innermost first.
    Named* named = nullptr;
    std::vector<std::string> lines = absl::StrSplit(text, '\n');
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (absl::StartsWith(lines[i], "0x")) {
        named = &names[static_cast<Site>(
            std::strtoull(lines[i].c_str(), nullptr, 16))];
        continue;
      }
      if (named == nullptr || i + 1 >= lines.size()) break;
      const std::string function = lines[i++];
      if (!named->line.file.empty()) continue;
      const std::vector<std::string> place = absl::StrSplit(lines[i], ':');
      named->function = function;
      named->line.file = place[0];
      if (place.size() > 1) named->line.line = std::atoi(place[1].c_str());
      if (absl::StartsWith(named->line.file, "/proc/self/cwd/")) {
        named->line.file.erase(0, std::strlen("/proc/self/cwd/"));
      }
    }
  }
  return names;
}

// "void d2l::(anonymous namespace)::Double<float>(float*, int)" is Double.
std::string ShortName(std::string name) {
  int depth = 0;
  std::string flat;  // without what stands in brackets
  for (const char c : name) {
    if (c == '<' || c == '(') ++depth;
    if (depth == 0) flat += c;
    if (c == '>' || c == ')') --depth;
  }
  const std::size_t colon = flat.rfind("::");
  if (colon != std::string::npos) flat.erase(0, colon + 2);
  const std::size_t space = flat.rfind(' ');
  return space == std::string::npos ? flat : flat.substr(space + 1);
}

CheckReport Checker::Take() {
  std::lock_guard<std::mutex> lock(mutex_);
  return TakeLocked();
}

CheckReport Checker::TakeLocked() {
  std::set<Site> sites;
  for (const auto& [key, finding] : findings_) {
    const auto& [kind, kernel, at, before] = key;
    sites.insert({kernel, at, before});
  }
  for (const auto& [key, requests] : requests_) {
    sites.insert({key.first, static_cast<Site>(key.second >> 8)});
  }
  std::map<Site, Named> names = NamesOf(sites);
  CheckReport report;
  std::set<std::string> said;
  for (auto& [key, finding] : findings_) {
    const auto& [kind, kernel, at, before] = key;
    finding.kernel = ShortName(names[kernel].function);
    finding.at = names[at].line;
    if (before != 0) finding.before = names[before].line;
    // A line may have several sites, a kernel several types.
    Finding same = finding;
    same.block = same.thread = same.before_block = same.before_thread = 0;
    if (said.insert(same.ToString()).second) report.findings.push_back(finding);
  }
  std::map<std::string, std::size_t> rows;
  for (auto& [key, requests] : requests_) {
    requests.kernel = ShortName(names[key.first].function);
    requests.at = names[static_cast<Site>(key.second >> 8)].line;
    const auto [row, is_new] =
        rows.emplace(absl::StrCat(requests.kernel, requests.at.ToString(), "/",
                                  key.second & 0xff),
                     report.requests.size());
    if (is_new) {
      report.requests.push_back(requests);
      continue;
    }
    Requests& to = report.requests[row->second];
    to.requests += requests.requests;
    to.lanes += requests.lanes;
    to.sectors += requests.sectors;
    to.ideal_sectors += requests.ideal_sectors;
    to.conflicts += requests.conflicts;
  }
  findings_.clear();
  requests_.clear();
  return report;
}

bool instrumented = false;

void WriteTable(const std::vector<Requests>& requests, const char* file) {
  std::ofstream out(file, std::ios::app);
  for (const Requests& r : requests) {
    out << absl::StrJoin(std::make_tuple(r.kernel, r.shared, r.writes,
                                         r.requests, r.lanes, r.sectors,
                                         r.ideal_sectors, r.conflicts),
                         " ")
        << '\n';
  }
}

void Print(const CheckReport& report) {
  if (const char* const file = std::getenv("D2L_CHECK_CUDA_TABLE")) {
    WriteTable(report.requests, file);
  }
  for (const Finding& finding : report.findings) {
    std::fprintf(stderr, "%s\n", finding.ToString().c_str());
  }
  if (report.findings.empty()) return;
  std::fprintf(stderr, "%zu findings in CUDA kernels\n",
               report.findings.size());
  std::fflush(nullptr);
  _exit(kExitCode);
}

// The CPU stops at what it cannot do, such as a vector that is not aligned:
// what was found before says why.
void OnFault(int signal) {
  std::signal(signal, SIG_DFL);
  if (Checker::active != nullptr) Print(Checker::active->TakeLocked());
}

}  // namespace

std::string SourceLine::ToString() const {
  return absl::StrCat(file, ":", line);
}

std::string Finding::ToString() const {
  const auto thread_of = [](std::uint32_t thread, std::uint32_t block) {
    return absl::StrCat("thread ", thread, " of block ", block);
  };
  const std::string memory = shared ? "shared memory" : "global memory";
  const std::string own = thread_of(thread, block);
  std::string what;
  switch (kind) {
    case FindingKind::kRace:
      return absl::StrCat(kernel, ": a race in ", memory, ": ", own,
                          at_writes ? " writes (" : " reads (", at.ToString(),
                          ") what ", thread_of(before_thread, before_block),
                          before_writes ? " writes (" : " reads (",
                          before.ToString(), "), and nothing orders the two");
    case FindingKind::kBarrier:
      what = "not all threads of a block reach the barrier";
      break;
    case FindingKind::kStrandedLane:
      what = "a lane waits for others of its warp that do not come";
      break;
    case FindingKind::kUninitialised:
      what = absl::StrCat(own, " reads ", memory, " that nobody wrote");
      break;
    case FindingKind::kOutOfBounds:
      what = absl::StrCat(own, " goes beyond the end of an array");
      break;
    case FindingKind::kMisaligned:
      what = absl::StrCat(own, " uses ", memory,
                          " that is not aligned to the access");
      break;
    case FindingKind::kOrder:
      what = "the result depends on the order of the threads";
      break;
  }
  return absl::StrCat(kernel, ": ", what, " (", at.ToString(), ")");
}

void CheckedRun(const void* kernel, const Grid& grid, FindMemory find) {
  TheChecker().Run(kernel, grid, find);
}

CheckReport TakeCheckReport() { return TheChecker().Take(); }

bool ChecksKernels() { return instrumented; }

bool IsRepeated() {
  return Checker::active != nullptr && Checker::active->repeated();
}

void ReportAtExit() {
  static const bool once = [] {
    std::signal(SIGSEGV, OnFault);
    return std::atexit([] { Print(TakeCheckReport()); }) == 0;
  }();
  static_cast<void>(once);
}

namespace internal {

void OnAccess(const void* address, std::size_t bytes, bool writes,
              const void* site) {
  if (Checker::active == nullptr) return;
  Checker::active->Access(address, bytes, writes, /*atomic=*/false, site);
}

void OnIndexOutOfBounds(const void* site) {
  if (Checker::active != nullptr) Checker::active->OutOfBounds(site);
}

void OnMisaligned(const void* address, const void* site) {
  if (Checker::active != nullptr) Checker::active->Misaligned(address, site);
}

void FoundInstrumentation() { instrumented = true; }

}  // namespace internal
}  // namespace d2l::kernels::cuda
