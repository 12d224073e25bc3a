#include "common/lesson/recorder.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/source_location.h"
#include "common/base/timer.h"
#include "common/device/event.h"
#include "common/device/op_label.h"
#include "common/device/stream.h"
#include "common/ops/record.h"

namespace d2l {
namespace {

// Stamps that outlive their recorder.
struct Orphans {
  std::vector<std::unique_ptr<OpStamps>> stamps;
  std::vector<Event> passed;  // when all are complete, nobody writes any more
  bool for_ever = false;      // nobody can say when
};

class Orphanage {
 public:
  // Takes these in, and lets go of those who have come of age.
  void Add(Orphans orphans) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto done = [](const Orphans& o) {
      return !o.for_ever &&
             std::all_of(o.passed.begin(), o.passed.end(),
                         [](const Event& event) { return event.Query(); });
    };
    all_.erase(std::remove_if(all_.begin(), all_.end(), done), all_.end());
    if (!orphans.stamps.empty()) all_.push_back(std::move(orphans));
  }

 private:
  std::mutex mutex_;
  std::vector<Orphans> all_;
};

// Never destroyed: a device may write until the process ends.
Orphanage& GetOrphanage() {
  static Orphanage& orphanage = *new Orphanage;
  return orphanage;
}

bool Ran(const OpStamps& stamps) {
  // The device's last write to them.
  return stamps.end.load(std::memory_order_acquire) != 0;
}

}  // namespace

Recorder::~Recorder() {
  Orphans orphans;
  std::vector<Stream*> streams;
  for (Launched& launched : launched_) {
    if (launched.stamps == nullptr || launched.done) continue;
    if (Ran(*launched.stamps)) continue;
    orphans.stamps.push_back(std::move(launched.stamps));
    if (std::find(streams.begin(), streams.end(), launched.stream) ==
        streams.end()) {
      streams.push_back(launched.stream);
    }
  }
  for (auto& pending : pending_) {
    // The request threw: whether it had been launched, and where, is unknown.
    if (Ran(*pending.second)) continue;
    orphans.stamps.push_back(std::move(pending.second));
    orphans.for_ever = true;
  }
  try {
    for (Stream* stream : streams) orphans.passed.push_back(stream->Record());
  } catch (const std::exception&) {
    orphans.for_ever = true;
  }
  GetOrphanage().Add(std::move(orphans));
}

OpStamps* Recorder::NewStamps() {
  auto stamps = std::make_unique<OpStamps>();
  OpStamps* const address = stamps.get();
  std::lock_guard<std::mutex> lock(mutex_);
  pending_.emplace(address, std::move(stamps));
  return address;
}

void Recorder::OnOp(const OpRecord& record) {
  RecordedOp op;
  op.name = record.primitive->name();
  op.attributes = record.primitive->attributes();
  op.inputs.assign(record.inputs.begin(), record.inputs.end());
  op.output = record.output;
  op.in_place = record.in_place;
  op.view = record.view;
  op.number = record.number;
  op.requested_at = record.requested_at;
  op.requested_by = record.requested_by;
  op.host_begin = record.host_begin;
  op.host_end = record.host_end;

  std::lock_guard<std::mutex> lock(mutex_);
  op.thread = ThreadNumber();
  Launched launched{nullptr, nullptr, false};
  if (record.stream != nullptr) {
    op.stream = StreamNumber(*record.stream);
    // Streams are not const by nature: waiting for one is a request to it.
    launched.stream = record.stream;
    const auto mine = pending_.find(record.stamps);
    if (mine != pending_.end()) {
      launched.stamps = std::move(mine->second);
      pending_.erase(mine);
    }
  }
  recording_.ops.push_back(std::move(op));
  launched_.push_back(std::move(launched));
}

void Recorder::AfterRead(const ReadRecord& record) {
  std::lock_guard<std::mutex> lock(mutex_);
  recording_.waits.push_back({record.reader, ThreadNumber(),
                              record.requested_at, record.host_begin,
                              record.host_end, record.input.id});
}

void Recorder::Wait(const std::string& what, const std::function<void()>& wait,
                    SourceLocation at) {
  const std::int64_t begin = NowNanos();
  wait();
  const std::int64_t end = NowNanos();
  std::lock_guard<std::mutex> lock(mutex_);
  recording_.waits.push_back({what, ThreadNumber(), at, begin, end, 0});
}

Recording Recorder::Finish() {
  // Other threads may go on reporting while this one waits.
  struct Last {
    Stream* stream;
    std::uint64_t number;
  };
  std::vector<Last> lasts;
  std::size_t count;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    count = launched_.size();
    for (std::size_t i = 0; i < count; ++i) {
      Stream* const stream = launched_[i].stream;
      if (stream == nullptr || launched_[i].done) continue;
      const std::uint64_t number = recording_.ops[i].number;
      const auto same = std::find_if(
          lasts.begin(), lasts.end(),
          [stream](const Last& last) { return last.stream == stream; });
      if (same == lasts.end()) {
        lasts.push_back({stream, number});
      } else {
        same->number = std::max(same->number, number);
      }
    }
  }
  for (const Last& last : lasts) last.stream->WaitFor(last.number);

  std::lock_guard<std::mutex> lock(mutex_);
  for (std::size_t i = 0; i < count; ++i) {
    Launched& launched = launched_[i];
    if (launched.stamps == nullptr || launched.done) continue;
    launched.done = true;
    if (!Ran(*launched.stamps)) continue;
    RecordedOp& op = recording_.ops[i];
    op.queued = launched.stamps->queued.load(std::memory_order_relaxed);
    op.begin = launched.stamps->begin.load(std::memory_order_relaxed);
    op.end = launched.stamps->end.load(std::memory_order_relaxed);
  }
  Recording result = recording_;
  result.ops.resize(count);
  return result;
}

int Recorder::ThreadNumber() {
  const auto [entry, is_new] = threads_.emplace(
      std::this_thread::get_id(), static_cast<int>(threads_.size()));
  if (is_new) ++recording_.threads;
  return entry->second;
}

int Recorder::StreamNumber(const Stream& stream) {
  const std::string name = stream.name();
  auto& streams = recording_.streams;
  const auto same =
      std::find_if(streams.begin(), streams.end(),
                   [&](const RecordedStream& s) { return s.name == name; });
  if (same != streams.end()) {
    return static_cast<int>(std::distance(streams.begin(), same));
  }
  streams.push_back({name, stream.device()});
  return static_cast<int>(streams.size()) - 1;
}

Recording Record(const std::function<void()>& program) {
  Recorder recorder;
  {
    ScopedOpListener listen(&recorder);
    program();
  }
  return recorder.Finish();
}

}  // namespace d2l
