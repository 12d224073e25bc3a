#include "common/profiler/race_checker.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/ops/primitive/primitive.h"

namespace d2l {
namespace {

constexpr std::size_t kMostRaces = 100;
// For each block. Only a program that reads it in hundreds of parts has more.
constexpr std::size_t kMostUses = 256;
// Far more than are recorded between an event and the wait for it.
constexpr std::size_t kMostEvents = 100'000;

void Join(std::vector<std::uint64_t>& clock,
          const std::vector<std::uint64_t>& other) {
  if (clock.size() < other.size()) clock.resize(other.size());
  for (std::size_t i = 0; i < other.size(); ++i) {
    clock[i] = std::max(clock[i], other[i]);
  }
}

void Advance(std::vector<std::uint64_t>& clock, std::size_t stream,
             std::uint64_t number) {
  if (clock.size() <= stream) clock.resize(stream + 1);
  clock[stream] = std::max(clock[stream], number);
}

bool SameLines(const Race::Use& a, const Race::Use& b) {
  return a.at == b.at && a.operation == b.operation;
}

}  // namespace

std::string Race::ToText() const {
  const std::string from = first.at.ToString(), to = second.at.ToString();
  std::string text =
      !second.writes
          ? Say("%s (%s, stream %s) reads what %s (%s, stream %s) writes, and "
                "no event orders them.",
                second.operation, to, second.stream, first.operation, from,
                first.stream)
      : first.writes
          ? Say("%s (%s, stream %s) overwrites what %s (%s, stream %s) writes, "
                "and no event orders them.",
                second.operation, to, second.stream, first.operation, from,
                first.stream)
          : Say("%s (%s, stream %s) overwrites what %s (%s, stream %s) reads, "
                "and no event orders them.",
                second.operation, to, second.stream, first.operation, from,
                first.stream);
  const bool in_order = std::string(first.at.file()) == second.at.file() &&
                        first.at.line() < second.at.line();
  const std::string missing =
      in_order
          ? Say("Missing: %s.Wait(%s.Record()) between lines %d and %d.",
                second.stream, first.stream, first.at.line(), second.at.line())
          : Say("Missing: an event that %s records behind %s, and %s "
                "waits for before %s.",
                first.stream, from, second.stream, to);
  return Wrap(text, "RACE  ") + Wrap(missing, "      ");
}

RaceChecker::RaceChecker() {
  AddProcessOpListener(this);
  AddDeviceListener(this, kStreams | kOrder);
}

RaceChecker::~RaceChecker() {
  RemoveDeviceListener(this, kStreams | kOrder);
  RemoveProcessOpListener(this);
}

std::vector<Race> RaceChecker::races() const {
  const MutexLock lock(mutex_);
  return races_;
}

std::string RaceChecker::Report() const {
  const MutexLock lock(mutex_);
  std::string text;
  for (const Race& race : races_) text += race.ToText();
  return absl::StrCat(text,
                      races_.size() == 1
                          ? Say("1 race in %d operations on %d streams.",
                                operations_, streams_.size())
                          : Say("%d races in %d operations on %d streams.",
                                races_.size(), operations_, streams_.size()),
                      "\n");
}

std::size_t RaceChecker::IndexOf(const Stream* stream) {
  const auto found = std::find(streams_.begin(), streams_.end(), stream);
  if (found != streams_.end()) return found - streams_.begin();
  streams_.push_back(stream);
  clocks_.emplace_back();
  return streams_.size() - 1;
}

RaceChecker::Clock& RaceChecker::ClockOf(std::size_t stream) {
  Join(clocks_[stream], host_);
  return clocks_[stream];
}

std::size_t RaceChecker::Enter(const Stream* on, std::uint64_t number) {
  ++operations_;
  const std::size_t stream = IndexOf(on);
  Advance(ClockOf(stream), stream, number + 1);
  return stream;
}

RaceChecker::Block& RaceChecker::BlockOf(const Tensor& x) {
  const Storage& storage = *x.storage();
  const auto begin = reinterpret_cast<std::uintptr_t>(storage.data());
  const std::uintptr_t end = begin + std::max<std::size_t>(storage.bytes(), 1);
  auto next = blocks_.lower_bound(begin);
  if (next != blocks_.end() && next->first == begin &&
      next->second.storage == storage.id()) {
    return next->second;
  }
  // The allocator orders the reuse of memory correctly: old uses are dropped.
  if (next != blocks_.begin() && std::prev(next)->second.end > begin) --next;
  while (next != blocks_.end() && next->first < end) next = blocks_.erase(next);
  return blocks_[begin] = {end, storage.id(), {}};
}

void RaceChecker::Check(Block& block, const Use& use, bool keep) {
  const Clock& clock = clocks_[use.stream];
  const auto is_before = [&](const Use& other) {
    return other.stream == use.stream ||
           (other.stream < clock.size() && other.number < clock[other.stream]);
  };
  // A copy beside a stream needs that stream's waits.
  const auto name = [&](std::size_t stream) {
    return streams_[stream]->receiver().name();
  };
  std::size_t kept = 0;
  for (const Use& other : block.uses) {
    const bool overlap = other.begin < use.end && use.begin < other.end;
    if (overlap && (other.writes || use.writes) && !is_before(other)) {
      const Race race = {
          {other.operation, other.at, name(other.stream), other.writes},
          {use.operation, use.at, name(use.stream), use.writes}};
      const bool known =
          std::any_of(races_.begin(), races_.end(), [&](const Race& r) {
            return SameLines(r.first, race.first) &&
                   SameLines(r.second, race.second);
          });
      if (!known && races_.size() < kMostRaces) races_.push_back(race);
    }
    // A later use that races with an earlier use that this one covers also
    // races with this one.
    const bool covered = use.begin <= other.begin && other.end <= use.end &&
                         (use.writes || !other.writes) && is_before(other);
    if (!(keep && covered)) block.uses[kept++] = other;
  }
  block.uses.resize(kept);
  if (keep && block.uses.size() < kMostUses) block.uses.push_back(use);
}

void RaceChecker::OnOp(const OpRecord& record) {
  if (record.stream == nullptr) return;
  const MutexLock lock(mutex_);
  const std::size_t stream = Enter(record.stream, record.number);
  for (std::size_t i = 0; i < record.inputs.size(); ++i) {
    if (!record.primitive->ReadsInput(static_cast<int>(i))) continue;
    Check(record, stream, *record.inputs[i], false);
  }
  Check(record, stream, record.output, true);
}

void RaceChecker::Check(const OpRecord& record, std::size_t stream,
                        const Tensor& x, bool writes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(x.data());
  // Between a CPU and a GPU the source's stream copies x first.
  const bool keep =
      writes || x.device().type() == record.stream->device().type();
  Check(
      BlockOf(x),
      {record.primitive->name(),
       record.requested_by.known() ? record.requested_by : record.requested_at,
       stream, record.number, writes, begin,
       begin + x.span() * DTypeSize(x.dtype())},
      keep);
}

void RaceChecker::OnStream(const StreamRecord& record) {
  if (record.kind != StreamRecord::Kind::kCopy) return;
  const MutexLock lock(mutex_);
  const std::size_t stream = Enter(record.stream, record.number);
  for (const auto& [data, writes] :
       {std::pair<const void*, bool>{record.src, false}, {record.dst, true}}) {
    // Host memory is in no block.
    const auto begin = reinterpret_cast<std::uintptr_t>(data);
    auto block = blocks_.upper_bound(begin);
    if (block == blocks_.begin() || (--block)->second.end <= begin) continue;
    Check(block->second,
          {"copy", record.requested_at, stream, record.number, writes, begin,
           begin + record.bytes},
          /*keep=*/true);
  }
}

void RaceChecker::OnOrder(const OrderRecord& record) noexcept {
  const MutexLock lock(mutex_);
  if (record.kind == OrderRecord::Kind::kHostWait) {
    if (record.stream == nullptr) {
      Join(host_, events_[record.event]);
      return;
    }
    // When these operations are done, so is all that the stream has waited for.
    // Its waits behind them count as done as well.
    const std::size_t stream = IndexOf(record.stream);
    Clock done = clocks_[stream];
    Advance(done, stream, record.number);
    done[stream] = record.number;
    Join(host_, done);
    return;
  }
  const std::size_t stream = IndexOf(record.stream);
  if (record.kind == OrderRecord::Kind::kWait) {
    Join(ClockOf(stream), events_[record.event]);
  } else {
    if (events_.size() >= kMostEvents) events_.erase(events_.begin());
    Clock& event = events_[record.event];
    event = ClockOf(stream);
    Advance(event, stream, record.number);
  }
}

}  // namespace d2l
