// Runs grids: the order of blocks, warps and lanes, and what they wait for.

#include <cxxabi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/ptx/kernel.h"
#include "tests/ptx/lanes.h"
#include "tests/ptx/report.h"

namespace d2l::ptx {
namespace {

constexpr int kLaunchTimeout = 702;  // cudaErrorLaunchTimeout
constexpr std::size_t kAlignment = 64;

using Group = Warp::Group;

// Groups at the same place become one.
void Add(std::vector<Group>& groups, Group group) {
  if (group.lanes == 0) return;
  for (Group& each : groups) {
    if (each.place == group.place) {
      each.lanes |= group.lanes;
      return;
    }
  }
  groups.push_back(group);
}

Group Take(std::vector<Group>& groups, std::size_t i) {
  const Group taken = groups[i];
  groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(i));
  return taken;
}

std::string Text(const unsigned* index) {
  return "(" + std::to_string(index[0]) + ", " + std::to_string(index[1]) +
         ", " + std::to_string(index[2]) + ")";
}
std::string Text(Dim dim) {
  const unsigned index[] = {dim.x, dim.y, dim.z};
  return Text(index);
}

class GridRun {
 public:
  explicit GridRun(const Launch& launch)
      : launch_(launch),
        kernel_(*launch.kernel),
        settings_(TheSettings()),
        threads_(launch.block.x * launch.block.y * launch.block.z),
        random_(static_cast<unsigned>(settings_.seed)) {
    const std::size_t warps = (threads_ + kLanes - 1) / kLanes;
    block_.launch = &launch;
    block_.shared.resize(kernel_.shared_bytes + launch.dynamic_shared);
    block_.uses.resize(block_.shared.size() / 4 + 1);
    block_.last_range.resize(kernel_.code.size());
    block_.warps.resize(warps);
    // Kept for the thread's next grid: new memory costs more than a small grid.
    thread_local std::vector<char> registers;
    const std::size_t bytes = warps * kernel_.register_bytes + kAlignment;
    if (registers.size() < bytes) registers.resize(bytes);
    locals_.resize(warps * kLanes * kernel_.local_bytes);
    const auto start = reinterpret_cast<std::uintptr_t>(registers.data());
    char* const aligned = registers.data() + (kAlignment - start % kAlignment);
    for (std::size_t i = 0; i < warps; ++i) {
      Warp& warp = block_.warps[i];
      warp.block = &block_;
      warp.number = static_cast<unsigned>(i);
      warp.registers = aligned + i * kernel_.register_bytes;
      warp.local = locals_.data() + i * kLanes * kernel_.local_bytes;
      FillConstants(warp);
      order_.push_back(&warp);
    }
    for (unsigned axis = 0; axis < 3; ++axis) {
      const auto special = kernel_.specials.find(std::string("%ctaid.") +
                                                 static_cast<char>('x' + axis));
      if (special == kernel_.specials.end()) continue;
      block_indices_.emplace_back(special->second, axis);
    }
  }

  void Run() {
    const Dim& grid = launch_.grid;
    const std::uint64_t blocks = std::uint64_t{grid.x} * grid.y * grid.z;
    // With a seed: from a random block on, backwards.
    const std::uint64_t first = settings_.seed == 0 ? 0 : random_() % blocks;
    for (std::uint64_t n = 0; n < blocks; ++n) {
      const std::uint64_t i =
          settings_.seed == 0 ? n : (first + blocks - n) % blocks;
      block_.index[0] = static_cast<unsigned>(i % grid.x);
      block_.index[1] = static_cast<unsigned>(i / grid.x % grid.y);
      block_.index[2] = static_cast<unsigned>(i / grid.x / grid.y);
      RunBlock();
    }
    if (settings_.counts.empty()) return;
    block_.counts.instructions = instructions_;
    AddCounts(kernel_.text.name, block_.counts);
  }

 private:
  enum class State { kRunnable, kWaits };
  static constexpr std::uint32_t kNoPlace =
      std::numeric_limits<std::uint32_t>::max();

  // ---- Blocks.

  // What all blocks have in common.
  void FillConstants(Warp& warp) {
    for (const Kernel::Constant& constant : kernel_.constants) {
      if (constant.bytes == 0) {
        Predicate(warp, constant.place) =
            static_cast<std::uint32_t>(constant.bits);
        continue;
      }
      for (int lane = 0; lane < kLanes; ++lane) {
        std::memcpy(warp.registers + constant.place + lane * constant.bytes,
                    &constant.bits, static_cast<std::size_t>(constant.bytes));
      }
    }
    for (const auto& [name, place] : kernel_.specials) {
      auto* const values = Register<std::uint32_t>(warp, place);
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        values[lane] = SpecialValue(name, warp, lane);
      }
    }
  }

  // Of "%tid.y", "%laneid" and so on; that of %ctaid is set for each block.
  std::uint32_t SpecialValue(const std::string& name, const Warp& warp,
                             unsigned lane) const {
    const Dim& block = launch_.block;
    const Dim& grid = launch_.grid;
    const unsigned thread = warp.number * kLanes + lane;
    const std::size_t dot = std::min(name.find('.'), name.size());
    const std::string base = name.substr(0, dot);
    const auto axis = [&](unsigned x, unsigned y, unsigned z) {
      return name.back() == 'x' ? x : name.back() == 'y' ? y : z;
    };
    if (base == "%tid") {
      return axis(thread % block.x, thread / block.x % block.y,
                  thread / block.x / block.y);
    }
    if (base == "%ntid") return axis(block.x, block.y, block.z);
    if (base == "%nctaid") return axis(grid.x, grid.y, grid.z);
    if (base == "%ctaid") return 0;
    if (name == "%laneid") return lane;
    if (name == "%lanemask_eq") return 1u << lane;
    if (name == "%lanemask_lt") return (1u << lane) - 1;
    if (name == "%lanemask_le") return (2u << lane) - 1;
    if (name == "%lanemask_gt") return ~((2u << lane) - 1);
    if (name == "%lanemask_ge") return ~((1u << lane) - 1);
    throw Unsupported(NameOf(kernel_) + ": the register " + name);
  }

  void RunBlock() {
    std::fill(block_.shared.begin(), block_.shared.end(), '\xff');
    block_.written.assign(block_.shared.size(), 0);
    ++block_.time;
    steps_left_ = settings_.most_steps;
    for (Warp& warp : block_.warps) {
      for (const auto& [place, axis] : block_indices_) {
        auto* const values = Register<std::uint32_t>(warp, place);
        std::fill(values, values + kLanes, block_.index[axis]);
      }
      const unsigned lanes =
          std::min<unsigned>(kLanes, threads_ - warp.number * kLanes);
      warp.alive = lanes == kLanes ? kAllLanes : (1u << lanes) - 1;
      warp.ready = {{0, warp.alive}};
    }
    if (settings_.seed != 0) {
      std::shuffle(order_.begin(), order_.end(), random_);
    }
    bool done = false;
    while (!done) {
      bool runnable = false;
      done = true;
      for (Warp* const warp : order_) {
        runnable |= RunWarp(*warp) == State::kRunnable;
        done = done && warp->alive == 0;
      }
      if (!done && !runnable) PassBarrier();
    }
  }

  // All threads that live wait at a barrier: there is no other reason to wait.
  void PassBarrier() {
    std::uint32_t place = kNoPlace;
    for (Warp& warp : block_.warps) {
      for (const Group& group : warp.at_barrier) {
        if (place != kNoPlace && group.place != place) {
          ReportAt(
              "threads of a block wait at different barriers, at " +
                  kernel_.module->Where(kernel_.code[place - 1]) + " and here",
              warp, kernel_.code[group.place - 1], __builtin_ctz(group.lanes));
        }
        place = group.place;
        Add(warp.ready, group);
      }
      warp.at_barrier.clear();
    }
    ++block_.time;
  }

  // ---- Warps.

  // Takes the group to run next; `limit` is where it must stop, since other
  // lanes are there.
  Group Next(Warp& warp, std::uint32_t* limit) {
    std::vector<Group>& ready = warp.ready;
    *limit = kNoPlace;
    if (settings_.diverge) return Take(ready, random_() % ready.size());
    const auto lowest = std::min_element(
        ready.begin(), ready.end(),
        [](const Group& a, const Group& b) { return a.place < b.place; });
    const Group taken = Take(ready, lowest - ready.begin());
    for (const Group& each : ready) *limit = std::min(*limit, each.place);
    return taken;
  }

  State RunWarp(Warp& warp) {
    slice_left_ =
        settings_.slice == 0
            ? std::numeric_limits<std::int64_t>::max()
            : 1 + static_cast<std::int64_t>(random_()) % settings_.slice;
    while (slice_left_ > 0) {
      if (!warp.ready.empty()) {
        RunGroup(warp);
      } else if (!warp.at_sync.empty()) {
        Desynchronize(warp);
      } else {
        return State::kWaits;
      }
    }
    return State::kRunnable;
  }

  // Lets lanes go on that wait for others in vain.
  void Desynchronize(Warp& warp) {
    const Group group = Take(warp.at_sync, 0);
    const Instruction& i = kernel_.code[group.place];
    ReportAt("a .sync instruction waits for lanes that do not come", warp, i,
             __builtin_ctz(group.lanes));
    warp.active = group.lanes;
    i.run(warp, i);
    Add(warp.ready, {group.place + 1, group.lanes});
  }

  void RunGroup(Warp& warp) {
    using Kind = Instruction::Kind;
    std::uint32_t limit = kNoPlace;
    Group group = Next(warp, &limit);
    // Until no lanes are left, others are at the same place, or the slice ends.
    while (group.lanes != 0) {
      if (group.place >= limit || slice_left_ <= 0) {
        return Add(warp.ready, group);
      }
      const Instruction& i = kernel_.code[group.place];
      std::uint32_t lanes = group.lanes;
      if (i.guard >= 0) {
        const std::uint32_t guard =
            Predicate(warp, static_cast<std::uint32_t>(i.guard));
        lanes &= i.guard_negated ? ~guard : guard;
      }
      --slice_left_;
      --steps_left_;
      ++instructions_;
      const std::uint32_t others = group.lanes & ~lanes;
      const std::uint32_t after = group.place + 1;
      if (lanes == 0 || i.kind == Kind::kPlain) {
        if (lanes != 0) {
          warp.active = lanes;
          i.run(warp, i);
        }
        group.place = after;
        continue;
      }
      switch (i.kind) {
        case Kind::kBranch:
          if (steps_left_ < 0) {
            ThrowFault(kLaunchTimeout, "does not end", warp, i,
                       __builtin_ctz(lanes));
          }
          if (others != 0) {
            Add(warp.ready, {i.target, lanes});
            Add(warp.ready, {after, others});
            return;
          }
          group.place = i.target;
          break;
        case Kind::kExit:
          warp.alive &= ~lanes;
          group = {after, others};
          break;
        case Kind::kBarrier:
          Add(warp.at_barrier, {after, lanes});
          group = {after, others};
          break;
        default:
          if (!Synchronize(warp, i, {group.place, lanes})) {
            group = {after, others};
            break;
          }
          // The lanes that came earlier go on with these.
          Add(warp.ready, {after, warp.active | others});
          return;
      }
    }
  }

  // Runs the instruction for the group and the lanes that wait there, if all
  // have come that its mask names; else the group waits. Returns whether it
  // ran.
  bool Synchronize(Warp& warp, const Instruction& i, Group group) {
    Add(warp.at_sync, group);
    const auto here = std::find_if(
        warp.at_sync.begin(), warp.at_sync.end(),
        [&](const Group& each) { return each.place == group.place; });
    const std::uint32_t lanes = here->lanes;
    const auto* const members = Register<std::uint32_t>(warp, i.in[3]);
    const std::uint32_t asked = members[__builtin_ctz(lanes)];
    ForLanes(lanes, [&](int lane) {
      if (members[lane] == asked && (asked >> lane & 1) != 0) return;
      ReportAt(
          "the mask of a .sync instruction differs between lanes, or does not "
          "name its lane",
          warp, i, lane);
    });
    if ((asked & warp.alive & ~lanes) != 0) return false;
    Take(warp.at_sync, here - warp.at_sync.begin());
    ++warp.syncs;
    warp.active = lanes;
    i.run(warp, i);
    return true;
  }

  const Launch& launch_;
  const Kernel& kernel_;
  const Settings& settings_;
  const unsigned threads_;
  Block block_;
  std::vector<std::pair<std::uint32_t, unsigned>> block_indices_;  // %ctaid
  std::vector<char> locals_;
  std::vector<Warp*> order_;
  std::minstd_rand random_;
  std::int64_t steps_left_ = 0;
  std::int64_t slice_left_ = 0;
  std::int64_t instructions_ = 0;
};

}  // namespace

void RunGrid(const Launch& launch) { GridRun(launch).Run(); }

std::string NameOf(const Kernel& kernel) {
  const std::string& mangled = kernel.text.name;
  if (mangled.compare(0, 2, "_Z") != 0) return mangled;
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> demangled(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status),
      std::free);
  if (demangled == nullptr) return mangled;
  const std::string name = demangled.get();
  // The last name outside of <> and of "(anonymous namespace)".
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (c == '(' && depth == 0 && name.compare(i, 11, "(anonymous ") != 0) {
      return name.substr(begin, i - begin);
    }
    depth += (c == '<' || c == '(') - (c == '>' || c == ')');
    if (depth == 0 && (c == ':' || c == ' ')) begin = i + 1;
  }
  return name.substr(begin);
}

std::string ThreadOf(const Warp& warp, int lane) {
  const Launch& launch = *warp.block->launch;
  return "kernel " + NameOf(*launch.kernel) + ", block " +
         Text(warp.block->index) + " of " + Text(launch.grid) + ", thread " +
         std::to_string(warp.number * kLanes + static_cast<unsigned>(lane)) +
         " of " + Text(launch.block);
}

void ThrowFault(int error, const std::string& what, const Warp& warp,
                const Instruction& instruction, int lane) {
  const std::string text = "fault " + std::to_string(error) + ": " + what;
  ReportAt(text, warp, instruction, lane);
  const Module& module = *warp.block->launch->kernel->module;
  throw Fault(error, text + ", " + module.Where(instruction) + ", " +
                         ThreadOf(warp, lane));
}

}  // namespace d2l::ptx
