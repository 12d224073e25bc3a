// CollectiveSchedule: a collective operation of several devices as data, a list
// of moves from memory to memory.
//
//   const auto ring = AllReduceSchedule(AllReduceAlgorithm::kRing, 4);
//   ring.ForEach([](const Move& move) {
//     std::cout << move.to << " adds part " << move.chunk << " of "
//               << move.from << "\n";
//   });
//   AddendsAfter(ring)->at(2);  // of rank 0, chunk 2: {2, 3, 0, 1}
//
// The waits with which streams execute it, one stream for each rank:
//
//   const CollectivePlan plan = MakePlan(ring);
//   for (const PlannedMove& planned : plan.moves) {
//     // rank planned.move.to waits for plan.moves[w], for each w of
//     // planned.waits, and then makes the move
//   }
//
// One list serves all that deals with collectives: devices execute it
// (collective.h), AddendsAfter proves it with symbols instead of numbers, and
// the simulator times it on hardware that need not exist (simulator.h).
//
// Every device, or rank, holds an array of the same length, cut into the same
// chunks. A move writes one chunk of one rank, and is made by that rank, which
// pulls from the others: a device's memory has one writer. The moves can be
// made one after the other in their order; their reads and writes determine
// which of them may happen at the same time (CollectivePlan).
//
// Values; immutable, so any thread may use them. The moves are generated each
// time: a ring of 4,096 ranks has 33 million of them.

#ifndef D2L_COMMON_PARALLEL_COLLECTIVE_SCHEDULE_H_
#define D2L_COMMON_PARALLEL_COLLECTIVE_SCHEDULE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace d2l {

enum class MoveOp : std::uint8_t {
  kCopy,  // to = from
  kAdd,   // to = to + from
  kSum,   // to = rank 0 + rank 1 + …, in this order; `from` is unused
  // In plans only, for all chunks of rank `to`: the work before the collective
  // is done, and the work behind it may begin.
  kBegin,
  kEnd,
};

struct Move {
  int step;  // moves of one step do not depend on each other
  int to;
  int from;
  int chunk;
  MoveOp op;
};

// The ranks that the move reads, besides what it overwrites; a sum reads all of
// `ranks`, in their order.
std::vector<int> Sources(const Move& move, int ranks);

// How the sum for every rank is computed.
enum class AllReduceAlgorithm : std::uint8_t {
  kSplit,  // rank r adds chunk r of all, in the ranks' order; all copy it
  kStar,   // rank 0 adds everything; all copy it
  kHost,   // the same in the CPU's memory
  kRing,   // sums go round a ring, chunk by chunk, then the results do
  kBidirectionalRing,  // two rings in opposite directions, half of it each
  kNccl,  // no schedule: NVIDIA's library, on GPUs, in its own order
};

// The algorithms that have a schedule.
inline constexpr AllReduceAlgorithm kAllReduceAlgorithms[] = {
    AllReduceAlgorithm::kSplit, AllReduceAlgorithm::kStar,
    AllReduceAlgorithm::kHost, AllReduceAlgorithm::kRing,
    AllReduceAlgorithm::kBidirectionalRing};

// "split", "star", "host", "ring", "bidirectional_ring", "nccl".
const char* AllReduceAlgorithmName(AllReduceAlgorithm algorithm);
// The reverse; for other texts InvalidArgument, which lists the names.
absl::StatusOr<AllReduceAlgorithm> ParseAllReduceAlgorithm(
    absl::string_view name);

class CollectiveSchedule {
 public:
  using Visitor = absl::FunctionRef<void(const Move&)>;

  // generate calls the visitor for each move in order, the same each time.
  CollectiveSchedule(std::string name, int ranks, int chunks,
                     std::function<void(Visitor)> generate,
                     bool uses_host = false)
      : name_(std::move(name)),
        ranks_(ranks),
        chunks_(chunks),
        uses_host_(uses_host),
        generate_(std::move(generate)) {}

  const std::string& name() const { return name_; }
  int ranks() const { return ranks_; }
  int chunks() const { return chunks_; }
  // Whether the CPU's memory takes part, as number ranks().
  bool uses_host() const { return uses_host_; }
  int participants() const { return ranks_ + (uses_host_ ? 1 : 0); }

  void ForEach(Visitor visitor) const { generate_(visitor); }
  std::vector<Move> Moves() const;

 private:
  std::string name_;
  int ranks_;
  int chunks_;
  bool uses_host_;
  std::function<void(Visitor)> generate_;
};

// Throws std::invalid_argument for fewer ranks than one, and for an algorithm
// that is no schedule.
CollectiveSchedule AllReduceSchedule(AllReduceAlgorithm algorithm, int ranks);

// The halves of kSplit. First, chunk r of rank r becomes the sum of all ranks'
// chunks r, in their order; second, every chunk r becomes that of rank r.
CollectiveSchedule ReduceScatterSchedule(int ranks);
CollectiveSchedule AllGatherSchedule(int ranks);

// The busbw of an allreduce of `bytes` a rank, in bytes per second, as NVIDIA's
// nccl-tests define it (doc/PERFORMANCE.md there). algbw is the bytes divided
// by the time. busbw is what each rank must send, whatever the algorithm,
// divided by the time; compare it with the speed of a link. It is 2 (n - 1) / n
// of algbw here, (n - 1) / n for a reduce-scatter or an all-gather, and all of
// algbw for a broadcast or a reduce.
double BusBandwidth(int ranks, double bytes, double seconds);
// algbw and busbw: "    20.6    36.0 GB/s", for a table below kBandwidthsHead.
std::string FormatBandwidths(int ranks, double bytes, double seconds);
inline constexpr char kBandwidthsHead[] = "   algbw   busbw";

// The ranks whose initial values add up to a chunk, in the order of the
// additions: {2, 3, 0} is (2 + 3) + 0. Since a + b is b + a, the lower of the
// first two comes first. Empty for memory that was never written.
using Addends = std::vector<int>;

// Makes all moves one after the other; returns the addends of chunk c of rank r
// at r * chunks + c. FailedPrecondition, naming the move, if one reads memory
// that was never written, or adds two sums.
absl::StatusOr<std::vector<Addends>> AddendsAfter(
    const CollectiveSchedule& schedule);

// The first element of chunk number `chunk` of an array that is cut into
// `chunks`; the array's end for number `chunks`. Sizes differ by at most one.
inline std::int64_t ChunkBegin(std::int64_t length, int chunks, int chunk) {
  return length / chunks * chunk + length % chunks * chunk / chunks;
}

struct PlannedMove {
  Move move;
  std::vector<int> waits;  // for moves of other ranks; numbers in the plan
  bool awaited = false;    // some move waits for it
};

// A schedule with the waits that streams need to execute it, one stream for
// each rank.
//
// A rank's moves are made in order, each after those that it waits for. The
// waits are derived from what the moves read and write: a read follows the last
// write, a write follows the last write and all reads of it. No wait is
// redundant: without any one of them two moves could conflict.
//
// A plan begins with a kBegin for each rank and ends with a kEnd for each:
// these stand for the work before and after the collective, which may write
// everything.
struct CollectivePlan {
  int ranks;  // without the CPU's memory
  int participants;
  int chunks;
  std::vector<PlannedMove> moves;
};

CollectivePlan MakePlan(const CollectiveSchedule& schedule);

// Calls f(rank, chunk, is_write) for each chunk that the move touches. A chunk
// that is read and written counts as written.
void ForEachAccess(const CollectivePlan& plan, const Move& move,
                   absl::FunctionRef<void(int, int, bool)> f);

}  // namespace d2l

#endif  // D2L_COMMON_PARALLEL_COLLECTIVE_SCHEDULE_H_
