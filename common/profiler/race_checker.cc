#include "common/profiler/race_checker.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
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

// Whether all that `clock` has comes before what `other` has.
bool IsWithin(const std::vector<std::uint64_t>& clock,
              const std::vector<std::uint64_t>& other) {
  for (std::size_t i = 0; i < clock.size(); ++i) {
    if (clock[i] > (i < other.size() ? other[i] : 0)) return false;
  }
  return true;
}

std::uintptr_t AddressOf(const void* data) {
  return reinterpret_cast<std::uintptr_t>(data);
}

bool SameLines(const Race::Use& a, const Race::Use& b) {
  return a.at == b.at && a.operation == b.operation;
}

}  // namespace

std::string Race::Conflict() const {
  const std::string from = first.at.ToString(), to = second.at.ToString();
  if (!second.writes) {
    return Say(
        "%s (%s, stream %s) reads what %s (%s, stream %s) writes, and "
        "no event orders them.",
        second.operation, to, second.stream, first.operation, from,
        first.stream);
  }
  if (first.writes) {
    return Say(
        "%s (%s, stream %s) overwrites what %s (%s, stream %s) writes, "
        "and no event orders them.",
        second.operation, to, second.stream, first.operation, from,
        first.stream);
  }
  return Say(
      "%s (%s, stream %s) overwrites what %s (%s, stream %s) reads, "
      "and no event orders them.",
      second.operation, to, second.stream, first.operation, from, first.stream);
}

std::string Race::ToText() const {
  const std::string from = first.at.ToString(), to = second.at.ToString();
  const bool in_order = std::string(first.at.file()) == second.at.file() &&
                        first.at.line() < second.at.line();
  const std::string missing =
      in_order
          ? Say("Missing: %s.Wait(%s.Record()) between lines %d and %d.",
                second.stream, first.stream, first.at.line(), second.at.line())
          : Say("Missing: an event that %s records behind %s, and %s "
                "waits for before %s.",
                first.stream, from, second.stream, to);
  return Wrap(Conflict(), "RACE  ") + Wrap(missing, "      ");
}

RaceChecker::RaceChecker() {
  AddProcessOpListener(this);
  AddDeviceListener(this, kMemory | kStreams | kOrder);
}

RaceChecker::~RaceChecker() {
  RemoveDeviceListener(this, kMemory | kStreams | kOrder);
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
  waits_.emplace_back();
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

RaceChecker::Blocks::iterator RaceChecker::FirstBehind(std::uintptr_t begin) {
  const auto next = blocks_.upper_bound(begin);
  if (next == blocks_.begin()) return next;
  return std::prev(next)->second.end > begin ? std::prev(next) : next;
}

RaceChecker::Block& RaceChecker::MakeBlock(std::uintptr_t begin,
                                           std::uintptr_t end,
                                           std::uint64_t storage) {
  Block made = {end, storage, {}};
  auto next = FirstBehind(begin);
  while (next != blocks_.end() && next->first < end) {
    Block& old = next->second;
    if (old.storage == 0) {
      begin = std::min(begin, next->first);
      made.end = std::max(made.end, old.end);
      made.uses.insert(made.uses.end(), old.uses.begin(), old.uses.end());
    }
    next = blocks_.erase(next);
  }
  return blocks_[begin] = std::move(made);
}

RaceChecker::Block& RaceChecker::BlockOf(const Tensor& x) {
  const Storage& storage = *x.storage();
  const std::uintptr_t begin = AddressOf(storage.data());
  const auto found = FirstBehind(begin);
  if (found != blocks_.end() && found->second.storage == storage.id()) {
    return found->second;
  }
  return MakeBlock(begin, begin + std::max<std::size_t>(storage.bytes(), 1),
                   storage.id());
}

RaceChecker::Block& RaceChecker::BlockOf(std::uintptr_t begin,
                                         std::uintptr_t end) {
  const auto found = FirstBehind(begin);
  if (found != blocks_.end() && found->first < end &&
      (found->second.storage != 0 ||
       (found->first <= begin && end <= found->second.end))) {
    return found->second;
  }
  return MakeBlock(begin, end, 0);
}

bool RaceChecker::Has(const Clock& clock, const Use& use) {
  return use.stream < clock.size() && use.number < clock[use.stream];
}

void RaceChecker::Check(Block& block, const Use& use, bool keep) {
  const Clock& clock = clocks_[use.stream];
  const auto is_before = [&](const Use& other) {
    return other.stream == use.stream || Has(clock, other);
  };
  std::size_t kept = 0;
  for (const Use& other : block.uses) {
    if (Has(host_, other)) continue;  // so has all that comes from now on
    const bool overlap = other.begin < use.end && use.begin < other.end;
    if (overlap && (other.writes || use.writes) && !is_before(other)) {
      // A copy beside a stream needs that stream's waits.
      const Race race = {
          {other.operation, other.at, streams_[other.stream]->receiver().name(),
           other.writes},
          {use.operation, use.at, streams_[use.stream]->receiver().name(),
           use.writes}};
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
  if (keep) block.uses.push_back(use);
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
  for (const Tensor* x : record.primitive->WrittenInputs(record.inputs)) {
    Check(record, stream, *x, true);
  }
}

void RaceChecker::OnOps(absl::Span<const OpRecord> records) {
  for (const OpRecord& record : records) OnOp(record);
  if (records.size() == 1) return;
  const MutexLock lock(mutex_);
  operations_ -= records.size() - 1;  // they are one
}

void RaceChecker::Check(const OpRecord& record, std::size_t stream,
                        const Tensor& x, bool writes) {
  const std::uintptr_t begin = AddressOf(x.data());
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

void RaceChecker::OnMemory(const MemoryRecord& record) noexcept {
  if (record.data == nullptr) return;
  const MutexLock lock(mutex_);
  const bool allocated = record.change > 0;
  const std::uintptr_t begin = AddressOf(record.data);
  const std::uintptr_t end = begin + std::abs(record.change);
  for (auto old = FirstBehind(begin);
       old != blocks_.end() && old->first < end;) {
    // Another thread may have allocated it again before this is told.
    const bool is_later = !allocated && old->second.storage > record.storage;
    old = is_later ? std::next(old) : blocks_.erase(old);
  }
  if (allocated) blocks_[begin] = {end, record.storage, {}};
}

void RaceChecker::OnStream(const StreamRecord& record) {
  if (record.kind != StreamRecord::Kind::kCopy) return;
  const MutexLock lock(mutex_);
  const std::size_t stream = Enter(record.stream, record.number);
  if (record.bytes == 0) return;
  ForgetDone();
  for (const auto& [data, writes] :
       {std::pair<const void*, bool>{record.src, false}, {record.dst, true}}) {
    const std::uintptr_t begin = AddressOf(data), end = begin + record.bytes;
    Check(BlockOf(begin, end),
          {"copy", record.requested_at, stream, record.number, writes, begin,
           end},
          /*keep=*/true);
  }
}

void RaceChecker::OnOrder(const OrderRecord& record) noexcept {
  const MutexLock lock(mutex_);
  const auto event = events_.find(record.event);
  if (record.kind == OrderRecord::Kind::kRecord) {
    ForgetDone();
    const std::size_t stream = IndexOf(record.stream);
    Clock& clock = events_[record.event] = ClockOf(stream);
    Advance(clock, stream, record.number);
  } else if (record.kind == OrderRecord::Kind::kWait) {
    // The host knows that an event is over if that has been forgotten.
    if (event == events_.end()) return;
    const std::size_t stream = IndexOf(record.stream);
    Join(ClockOf(stream), event->second);
    waits_[stream].push_back({record.number, clocks_[stream]});
  } else if (record.stream != nullptr) {
    HostSaw(IndexOf(record.stream), record.number,
            record.kind == OrderRecord::Kind::kHostSawIdle);
  } else if (event != events_.end()) {
    Join(host_, event->second);
  }
}

void RaceChecker::HostSaw(std::size_t stream, std::uint64_t number, bool idle) {
  std::deque<StreamWait>& waits = waits_[stream];
  while (!waits.empty() && (idle || waits.front().number < number)) {
    Join(host_, waits.front().clock);
    waits.pop_front();
  }
  Advance(host_, stream, number);
}

void RaceChecker::ForgetDone() {
  if (events_.size() >= most_events_) {
    for (auto event = events_.begin(); event != events_.end();) {
      event = IsWithin(event->second, host_) ? events_.erase(event)
                                             : std::next(event);
    }
    for (std::deque<StreamWait>& waits : waits_) {
      while (!waits.empty() && IsWithin(waits.front().clock, host_)) {
        waits.pop_front();
      }
    }
    most_events_ = std::max<std::size_t>(1000, 2 * events_.size());
  }
  if (blocks_.size() >= most_blocks_) {
    for (auto block = blocks_.begin(); block != blocks_.end();) {
      const auto& [end, storage, uses] = block->second;
      bool done = storage == 0;
      for (const Use& use : uses) done = done && Has(host_, use);
      block = done ? blocks_.erase(block) : std::next(block);
    }
    most_blocks_ = std::max<std::size_t>(1000, 2 * blocks_.size());
  }
}

}  // namespace d2l
