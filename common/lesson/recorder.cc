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
#include "common/base/ticks.h"
#include "common/device/keep_until_passed.h"
#include "common/device/op_label.h"
#include "common/device/stream.h"
#include "common/ops/record.h"

namespace d2l {
namespace {

bool Ran(const OpStamps& stamps) {
  // The device's last write to them.
  return stamps.end.load(std::memory_order_acquire) != 0;
}

}  // namespace

Recorder::~Recorder() {
  // Devices may still write to these.
  auto stamps = std::make_shared<std::vector<std::unique_ptr<OpStamps>>>();
  std::vector<Stream*> streams;
  for (Launched& launched : launched_) {
    if (launched.stamps == nullptr || launched.done) continue;
    if (Ran(*launched.stamps)) continue;
    stamps->push_back(std::move(launched.stamps));
    streams.push_back(launched.stream);
  }
  // The request threw; it may have been launched before.
  for (auto& [address, pending] : pending_) {
    if (Ran(*pending.stamps)) continue;
    stamps->push_back(std::move(pending.stamps));
    streams.push_back(pending.stream);
  }
  if (!stamps->empty()) KeepUntilPassed(std::move(stamps), streams);
}

OpStamps* Recorder::NewStamps(Stream& stream) {
  auto stamps = std::make_unique<OpStamps>();
  OpStamps* const address = stamps.get();
  std::lock_guard<std::mutex> lock(mutex_);
  pending_.emplace(address, Pending{std::move(stamps), &stream});
  return address;
}

void Recorder::OnOp(const OpRecord& record) {
  RecordedOp op;
  op.name = record.primitive->name();
  op.attributes = record.primitive->attributes();
  for (const Tensor* input : record.inputs) {
    op.inputs.push_back(ToRecord(*input));
  }
  op.output = ToRecord(record.outputs[0]);
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
    for (OpStamps* stamps = record.stamps; stamps != nullptr;
         stamps = stamps->next) {
      const auto mine = pending_.find(stamps);
      if (mine == pending_.end()) continue;
      launched.stamps = std::move(mine->second.stamps);
      pending_.erase(mine);
      break;
    }
  }
  recording_.ops.push_back(std::move(op));
  launched_.push_back(std::move(launched));
}

void Recorder::AfterRead(const ReadRecord& record) {
  std::lock_guard<std::mutex> lock(mutex_);
  recording_.waits.push_back({record.reader, ThreadNumber(),
                              record.requested_at, record.host_begin,
                              record.host_end, record.input->id()});
}

void Recorder::Wait(const std::string& what, const std::function<void()>& wait,
                    SourceLocation at) {
  const std::int64_t begin = NowTicks();
  wait();
  const std::int64_t end = NowTicks();
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
    op.begin = launched.stamps->begin.load(std::memory_order_relaxed);
    op.end = launched.stamps->end.load(std::memory_order_relaxed);
  }
  Recording result = recording_;
  result.ops.resize(count);
  const TickScale now;
  const auto to_nanos = [&](std::int64_t* time) {
    *time = TickScale::ToNanos(*time, start_, now);
  };
  for (RecordedOp& op : result.ops) {
    to_nanos(&op.host_begin);
    to_nanos(&op.host_end);
  }
  for (HostWait& wait : result.waits) {
    to_nanos(&wait.begin);
    to_nanos(&wait.end);
  }
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
