#include "common/kernels/cuda/fake/check.h"

#include <link.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

#include "common/kernels/cuda/fake/grid.h"
#include "common/kernels/cuda/fake/shadow.h"
#include "common/kernels/cuda/fake/warp_requests.h"

namespace d2l::kernels::cuda {
namespace {

constexpr int kCountedBlocks = 16;

class Checker final : public GridObserver {
 public:
  void Run(const void* kernel, const Grid& grid, FindMemory find) {
    std::lock_guard<std::recursive_mutex> lock(mutex_);
    dl_iterate_phdr(FindProgram, this);
    find_ = find;
    found_memory_.fill({});
    kernel_ = SiteOf(kernel) + 1;  // undoes its - 1: no return address
    counted_blocks_ = 0;
    dynamic_shared_ = grid.dynamic_shared;
    RunGrid(grid, TurnOrder::kForward, this);
    const Words first = Written();
    repeated_ = true;
    for (const TurnOrder order : {TurnOrder::kBackward, TurnOrder::kShuffled}) {
      std::for_each(overwritten_.rbegin(), overwritten_.rend(),
                    [](const auto& w) { *w.first = w.second; });
      overwritten_.clear();
      RunGrid(grid, order, this);
      if (Written() != first) Find(FindingKind::kOrder, UseAt(kernel_));
    }
    repeated_ = false;
    overwritten_.clear();
    global_.Clear();
    order_.Clear();
  }

  CheckReport Take() {
    std::lock_guard<std::recursive_mutex> lock(mutex_);
    CheckReport report = internal::Named(std::exchange(found_, {}),
                                         std::exchange(requests_, {}));
    report.longest_thread = std::exchange(longest_thread_, 0);
    report.atomics = std::exchange(atomics_, 0);
    return report;
  }

  void BeginBlock(std::uint32_t block) override {
    block_ = block;
    epoch_ = 0;
    accesses_.clear();
    shared_.Clear();
    order_.BeginBlock(block);
  }
  void Resume(unsigned thread, const char* stack, std::size_t bytes) override {
    thread_ = thread;
    stack_ = {stack, bytes};
  }
  void Barrier() override {
    ++epoch_;
    order_.Barrier();
  }
  void JoinLanes(unsigned first, unsigned lanes) override {
    if (!repeated_) order_.JoinLanes(first, lanes);
  }
  void Fence() override {
    if (!repeated_) order_.Fence(thread_);
  }
  void EndBlock() override {
    ++counted_blocks_;
    warps_.AddTo(kernel_, requests_);
  }

  void Fault(FindingKind kind, const void* site, const void* address,
             const void* other) override {
    Find(kind, UseAt(SiteOf(site)),
         other == nullptr ? Use{} : UseAt(SiteOf(other)),
         shared_memory_.Contains(address, 1));
  }

  void Access(const void* address, std::size_t bytes, bool writes, bool atomic,
              const void* site) override {
    if (stack_.Contains(address, 1)) return;
    if (repeated_ && !writes) return;
    const auto data = reinterpret_cast<std::uintptr_t>(address);
    const bool shared = shared_memory_.Contains(address, 1);
    if (shared) {
      // A thread reads its own coordinates: on a GPU they are registers.
      for (const dim3* index : {&threadIdx, &blockIdx, &blockDim, &gridDim}) {
        if (address >= index && address < index + 1) return;
      }
      const Memory dynamic = {DynamicShared(), kMostDynamicShared};
      if (dynamic.Contains(address, 1) &&
          !Memory{DynamicShared(), dynamic_shared_}.Contains(address, bytes)) {
        return Fault(FindingKind::kOutOfBounds, site, nullptr, nullptr);
      }
    } else {
      // Allocations may begin and end within a sector, but never share one.
      const std::uintptr_t sector = data / kSectorBytes;
      auto& [known, memory] = found_memory_[sector % found_memory_.size()];
      if (known != sector) memory = MemoryOf(address);
      known = sector;
      if (memory.begin == nullptr) return;  // the launch's captures
      if (!memory.Contains(address, bytes)) {
        return Fault(FindingKind::kOutOfBounds, site, nullptr, nullptr);
      }
      for (auto w = data / 4; writes && w <= (data + bytes - 1) / 4; ++w) {
        auto* const word = reinterpret_cast<std::uint32_t*>(w * 4);
        overwritten_.emplace_back(word, *word);
      }
    }
    if (repeated_) return;
    if (accesses_.size() <= thread_) accesses_.resize(thread_ + 1);
    longest_thread_ = std::max(longest_thread_, ++accesses_[thread_]);
    if (atomic) {
      ++atomics_;
      order_.Atomic(thread_, address);
    }
    const Use use = UseAt(SiteOf(site), writes, atomic);
    const bool written =
        (shared ? shared_ : global_)
            .Mark(data, bytes, use, order_, [&](const Use& before) {
              Find(FindingKind::kRace, use, before, shared);
            });
    // An atomic operation reads, too.
    if (shared && !written && (atomic || !writes)) {
      Find(FindingKind::kUninitialised, use, {}, shared);
    }
    if (counted_blocks_ < kCountedBlocks && bytes <= 16) {
      warps_.Add(thread_, {use.site, shared, writes, bytes}, address);
    }
  }

  bool repeated() const { return repeated_; }

 private:
  using Words = std::vector<std::pair<std::uint32_t*, std::uint32_t>>;

  static int FindProgram(dl_phdr_info* info, std::size_t, void* checker) {
    auto& to = *static_cast<Checker*>(checker);
    to.code_ = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const auto& part = info->dlpi_phdr[i];
      if (part.p_type == PT_TLS) {
        to.shared_memory_ = {info->dlpi_tls_data, part.p_memsz};
      } else if (part.p_type == PT_LOAD && (part.p_flags & PF_W) != 0) {
        to.variables_ = {
            reinterpret_cast<const void*>(info->dlpi_addr + part.p_vaddr),
            part.p_memsz};
      }
    }
    return 1;  // the program itself comes first
  }
  Memory MemoryOf(const void* address) const {
    return variables_.Contains(address, 1) ? variables_ : find_(address);
  }
  // The words that the grid has written, each once, with their new values.
  Words Written() const {
    Words words;
    for (const auto& [word, before] : overwritten_) {
      words.emplace_back(word, *word);
    }
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    return words;
  }
  // A call is known by its return address, which is behind it.
  Site SiteOf(const void* code) const {
    return static_cast<Site>(reinterpret_cast<std::uintptr_t>(code) - code_) -
           1;
  }
  Use UseAt(Site site, bool writes = false, bool atomic = false) {
    return {site,
            block_,
            order_.TimeOf(thread_),
            static_cast<std::uint16_t>(thread_),
            epoch_,
            writes,
            atomic};
  }
  // `before` is the earlier access of a race.
  void Find(FindingKind kind, const Use& at, const Use& before = {},
            bool shared = false) {
    if (repeated_ && kind != FindingKind::kOrder) return;
    found_.try_emplace({kind, {kernel_, at.site, before.site}},
                       Finding{kind, "", shared, {{}, at}, {{}, before}});
  }

  std::recursive_mutex mutex_;  // held while a grid runs
  // Where this program's code begins; this thread's variables in it.
  std::uintptr_t code_ = 0;
  Memory shared_memory_;
  std::size_t dynamic_shared_ = 0;
  Memory variables_;  // of the program, in global memory
  FindMemory find_ = nullptr;
  // A cache of what `find_` returns, for some sectors.
  std::array<std::pair<std::uintptr_t, Memory>, 1024> found_memory_;
  internal::Shadow shared_, global_;
  internal::Order order_;
  internal::WarpRequests warps_;
  // The words that the grid has written, in order, with their old values.
  Words overwritten_;
  Site kernel_ = 0;
  std::uint32_t block_ = 0;
  unsigned thread_ = 0;
  std::uint16_t epoch_ = 0;
  Memory stack_;
  int counted_blocks_ = 0;
  std::vector<std::int64_t> accesses_;  // of each thread of the block
  std::int64_t longest_thread_ = 0;
  std::int64_t atomics_ = 0;
  bool repeated_ = false;
  internal::AllFindings found_;
  internal::AllRequests requests_;
};

Checker& TheChecker() {
  static auto& checker = *new Checker;
  return checker;
}

// The CPU raises a signal at an access that it cannot do, such as one of a
// misaligned vector. The findings up to then give the reason.
void OnSignal(int signal) {
  std::signal(signal, SIG_DFL);
  if (ObserverOfThread() != nullptr) internal::Print(TakeCheckReport());
}

}  // namespace

void CheckedRun(const void* kernel, const Grid& grid, FindMemory find) {
  TheChecker().Run(kernel, grid, find);
}

CheckReport TakeCheckReport() { return TheChecker().Take(); }

bool IsRepeated() {
  return ObserverOfThread() != nullptr && TheChecker().repeated();
}

void ReportAtExit() {
  [[maybe_unused]] static const int once = [] {
    std::signal(SIGSEGV, OnSignal);
    return std::atexit([] { internal::Print(TakeCheckReport()); });
  }();
}

}  // namespace d2l::kernels::cuda
