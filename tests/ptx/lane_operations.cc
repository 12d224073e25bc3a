// Instructions that are no arithmetic: between the lanes of a warp, between
// registers of different widths, and of addresses.

#include <cstdint>
#include <cstring>
#include <string>
#include <unordered_map>

#include "tests/ptx/kernel.h"
#include "tests/ptx/lanes.h"
#include "tests/ptx/report.h"

namespace d2l::ptx {
namespace {

// cudaErrorAssert and cudaErrorLaunchFailure.
constexpr int kAssert = 710;
constexpr int kLaunchFailure = 719;

// ---- Shuffles and votes; the active lanes are those that take part.

enum class From { kUp, kDown, kXor, kIndex };

// out[0] = the in[0] of another lane, by in[1], within the segments of in[2];
// out[1], if it has_result, whether there is that lane.
template <From kFrom>
void Shuffle(Warp& warp, const Instruction& i) {
  auto* const out = Register<std::uint32_t>(warp, i.out[0]);
  const auto* const by = Register<std::uint32_t>(warp, i.in[1]);
  const auto* const clamp = Register<std::uint32_t>(warp, i.in[2]);
  std::uint32_t values[kLanes];
  std::memcpy(values, Register<std::uint32_t>(warp, i.in[0]), sizeof(values));
  std::uint32_t inside = 0;
  ForLanes(warp.active, [&](int lane) {
    const int b = static_cast<int>(by[lane] & 31);
    const int segment = static_cast<int>(clamp[lane] >> 8 & 31);
    const int last =
        (lane & segment) | (static_cast<int>(clamp[lane] & 31) & ~segment);
    int from = lane;
    if (kFrom == From::kUp) from = lane - b;
    if (kFrom == From::kDown) from = lane + b;
    if (kFrom == From::kXor) from = lane ^ b;
    if (kFrom == From::kIndex) from = (lane & segment) | (b & ~segment);
    const bool is_inside = kFrom == From::kUp ? from >= last : from <= last;
    if (!is_inside) from = lane;
    inside |= std::uint32_t{is_inside} << lane;
    if ((warp.active >> from & 1) == 0) {
      ReportAt("reads a lane that takes no part", warp, i, lane);
    }
    out[lane] = values[from];
  });
  if (i.has_result) SetPredicate(warp, i.out[1], inside);
}

void VoteAll(Warp& warp, const Instruction& i) {
  const bool all = (warp.active & ~Predicate(warp, i.in[0])) == 0;
  SetPredicate(warp, i.out[0], all ? kAllLanes : 0);
}
void VoteAny(Warp& warp, const Instruction& i) {
  const bool any = (warp.active & Predicate(warp, i.in[0])) != 0;
  SetPredicate(warp, i.out[0], any ? kAllLanes : 0);
}
void Ballot(Warp& warp, const Instruction& i) {
  const std::uint32_t votes = warp.active & Predicate(warp, i.in[0]);
  WriteLanes(warp, Register<std::uint32_t>(warp, i.out[0]),
             [=](int) { return votes; });
}
void ActiveMask(Warp& warp, const Instruction& i) {
  const std::uint32_t lanes = warp.active;
  WriteLanes(warp, Register<std::uint32_t>(warp, i.out[0]),
             [=](int) { return lanes; });
}

// ---- mov between a register and several narrower ones.

void Pack(Warp& warp, const Instruction& i) {
  ForLanes(warp.active, [&](int lane) {
    for (int k = 0; k < i.count; ++k) {
      std::memcpy(warp.registers + i.out[0] + lane * i.out_size + k * i.in_size,
                  warp.registers + i.in[k] + lane * i.in_size, i.in_size);
    }
  });
}
void Unpack(Warp& warp, const Instruction& i) {
  ForLanes(warp.active, [&](int lane) {
    for (int k = 0; k < i.count; ++k) {
      std::memcpy(warp.registers + i.out[k] + lane * i.out_size,
                  warp.registers + i.in[0] + lane * i.in_size + k * i.out_size,
                  i.out_size);
    }
  });
}

// ---- Addresses; `immediate` is the window of the space.

void ToGeneric(Warp& warp, const Instruction& i) {
  const auto* const a = Register<std::uint64_t>(warp, i.in[0]);
  const auto window = static_cast<std::uint64_t>(i.immediate);
  WriteLanes(warp, Register<std::uint64_t>(warp, i.out[0]),
             [=](int l) { return a[l] | window; });
}
void FromGeneric(Warp& warp, const Instruction& i) {
  const auto* const a = Register<std::uint64_t>(warp, i.in[0]);
  const auto window = static_cast<std::uint64_t>(i.immediate);
  WriteLanes(warp, Register<std::uint64_t>(warp, i.out[0]),
             [=](int l) { return window == 0 ? a[l] : a[l] & ~kWindowMask; });
}

void Nothing(Warp&, const Instruction&) {}
// With a flag in shared memory it orders threads, so none of them race.
void Fence(Warp& warp, const Instruction&) {
  ++warp.block->time;
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
void Trap(Warp& warp, const Instruction& i) {
  ThrowFault(kLaunchFailure, "executes a trap", warp, i,
             __builtin_ctz(warp.active));
}
void FailAssertion(Warp& warp, const Instruction& i) {
  ThrowFault(kAssert, "an assertion failed", warp, i,
             __builtin_ctz(warp.active));
}

}  // namespace

std::uint64_t WindowOf(Space space) {
  return space == Space::kShared  ? kSharedWindow
         : space == Space::kLocal ? kLocalWindow
                                  : 0;
}

Handler LaneHandler(const std::string& name) {
  static const auto& handlers = *new std::unordered_map<std::string, Handler>{
      {"shfl.up", Shuffle<From::kUp>},
      {"shfl.down", Shuffle<From::kDown>},
      {"shfl.bfly", Shuffle<From::kXor>},
      {"shfl.idx", Shuffle<From::kIndex>},
      {"vote.all", VoteAll},
      {"vote.any", VoteAny},
      {"vote.ballot", Ballot},
      {"activemask", ActiveMask},
      {"pack", Pack},
      {"unpack", Unpack},
      {"cvta", ToGeneric},
      {"cvta.to", FromGeneric},
      {"nothing", Nothing},
      {"membar", Fence},
      {"fence", Fence},
      {"trap", Trap},
      {"assert", FailAssertion},
  };
  const auto it = handlers.find(name);
  return it == handlers.end() ? nullptr : it->second;
}

}  // namespace d2l::ptx
