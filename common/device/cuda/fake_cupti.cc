#include "common/device/cuda/fake_cupti.h"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/timer.h"

namespace d2l {
namespace {
using Lock = std::lock_guard<std::mutex>;
constexpr int kInvalidParameter = 1;
constexpr int kQueueEmpty = 18;
}  // namespace

std::string FakeCupti::Load(CuptiReceiver* receiver) {
  Lock lock(mutex_);
  ++loads_;
  receiver_ = receiver;
  return why_not_loaded_;
}

int FakeCupti::Subscribe() {
  Lock lock(mutex_);
  if (subscribe_error_ != 0) return subscribe_error_;
  if (subscribed_) return kCuptiMultipleSubscribers;
  subscribed_ = true;
  return 0;
}

int FakeCupti::Unsubscribe() {
  Lock lock(mutex_);
  if (!subscribed_) return kInvalidParameter;
  subscribed_ = false;
  return 0;
}

int FakeCupti::Enable(CuptiKind kind) {
  Lock lock(mutex_);
  if (!subscribed_) return kInvalidParameter;
  if (enable_errors_.count(kind) > 0) return enable_errors_[kind];
  enabled_.insert(kind);
  return 0;
}

int FakeCupti::Disable(CuptiKind kind) {
  Lock lock(mutex_);
  enabled_.erase(kind);
  return 0;
}

int FakeCupti::Push(std::uint64_t id) {
  Lock lock(mutex_);
  if (push_error_ == 0) pushed_[std::this_thread::get_id()].push_back(id);
  return push_error_;
}

int FakeCupti::Pop() {
  Lock lock(mutex_);
  std::vector<std::uint64_t>& ids = pushed_[std::this_thread::get_id()];
  if (ids.empty()) return kQueueEmpty;
  ids.pop_back();
  return 0;
}

int FakeCupti::Flush(bool forced) {
  std::vector<std::vector<Record>> full;
  std::int64_t dropped = 0;
  CuptiReceiver* receiver = nullptr;
  {
    Lock lock(mutex_);
    if (forced) ++forced_flushes_;
    const auto kept_back = [&](const std::vector<Record>& buffer) {
      return !forced && std::any_of(buffer.begin(), buffer.end(),
                                    [](const Record& r) { return r.running; });
    };
    const auto first =
        std::stable_partition(buffers_.begin(), buffers_.end(), kept_back);
    full.assign(first, buffers_.end());
    buffers_.erase(first, buffers_.end());
    buffers_.emplace_back();
    std::swap(dropped, dropped_);
    receiver = receiver_;
  }
  // The latest first.
  for (auto buffer = full.rbegin(); buffer != full.rend(); ++buffer) {
    std::vector<CuptiRecord> records;
    for (auto r = buffer->rbegin(); r != buffer->rend(); ++r) {
      records.push_back(r->record);
    }
    receiver->OnRecords(records);
  }
  if (dropped > 0) receiver->OnDropped(dropped);
  return 0;
}

int FakeCupti::Now(std::uint64_t* nanos) {
  Lock lock(mutex_);
  *nanos = ToCupti(NowNanos());
  return now_error_;
}

std::string FakeCupti::ErrorText(int error) {
  return absl::StrCat("CUPTI_ERROR_", error);
}

std::uint32_t FakeCupti::Call() {
  Lock lock(mutex_);
  const std::uint32_t call = ++calls_;
  const std::vector<std::uint64_t>& ids = pushed_[std::this_thread::get_id()];
  const bool recorded = enabled_.count(CuptiKind::kRuntimeCalls) > 0 ||
                        enabled_.count(CuptiKind::kDriverCalls) > 0;
  if (recorded && !ids.empty() && enabled_.count(CuptiKind::kPushedIds) > 0) {
    CuptiRecord id;
    id.kind = CuptiRecord::Kind::kPushedId;
    id.call = call;
    id.id = ids.back();
    Add({id});
  }
  return call;
}

void FakeCupti::Work(std::uint32_t call, std::int64_t begin, std::int64_t end) {
  EndWork(StartWork(call, begin), end);
}

int FakeCupti::StartWork(std::uint32_t call, std::int64_t begin) {
  Lock lock(mutex_);
  const int key = ++keys_;
  if (enabled_.count(CuptiKind::kKernels) == 0) return key;
  CuptiRecord work;
  work.call = call;
  work.begin = ToCupti(begin);
  Add({work, key});
  return key;
}

void FakeCupti::EndWork(int key, std::int64_t end) {
  Lock lock(mutex_);
  for (std::vector<Record>& buffer : buffers_) {
    for (Record& record : buffer) {
      if (record.running != key) continue;
      record.running = 0;
      record.record.end = ToCupti(end);
    }
  }
}

void FakeCupti::SetBufferSize(std::size_t records) {
  Lock lock(mutex_);
  buffer_size_ = records;
}
void FakeCupti::SetWhyNotLoaded(const std::string& why) {
  Lock lock(mutex_);
  why_not_loaded_ = why;
}
void FakeCupti::FailSubscribe(int error) {
  Lock lock(mutex_);
  subscribe_error_ = error;
}
void FakeCupti::FailEnable(CuptiKind kind, int error) {
  Lock lock(mutex_);
  enable_errors_.erase(kind);
  if (error != 0) enable_errors_[kind] = error;
}
void FakeCupti::FailPush(int error) {
  Lock lock(mutex_);
  push_error_ = error;
}
void FakeCupti::FailNow(int error) {
  Lock lock(mutex_);
  now_error_ = error;
}
void FakeCupti::Drop(std::int64_t records) {
  Lock lock(mutex_);
  dropped_ += records;
}
void FakeCupti::MoveClock(std::int64_t nanos) {
  Lock lock(mutex_);
  ahead_nanos_ += nanos;
}

bool FakeCupti::subscribed() {
  Lock lock(mutex_);
  return subscribed_;
}
std::set<CuptiKind> FakeCupti::enabled() {
  Lock lock(mutex_);
  return enabled_;
}
int FakeCupti::pushed() {
  Lock lock(mutex_);
  int count = 0;
  for (const auto& [thread, ids] : pushed_) {
    count += static_cast<int>(ids.size());
  }
  return count;
}
int FakeCupti::forced_flushes() {
  Lock lock(mutex_);
  return forced_flushes_;
}
int FakeCupti::loads() {
  Lock lock(mutex_);
  return loads_;
}

void FakeCupti::Add(const Record& record) {
  if (buffers_.back().size() >= buffer_size_) buffers_.emplace_back();
  buffers_.back().push_back(record);
}

std::uint64_t FakeCupti::ToCupti(std::int64_t host_nanos) const {
  return static_cast<std::uint64_t>(host_nanos + ahead_nanos_);
}

}  // namespace d2l
