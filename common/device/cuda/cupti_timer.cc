#include "common/device/cuda/cupti_timer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/timer.h"

namespace d2l {
namespace {

constexpr CuptiKind kKinds[] = {
    CuptiKind::kPushedIds, CuptiKind::kRuntimeCalls, CuptiKind::kDriverCalls,
    CuptiKind::kKernels,   CuptiKind::kCopies,       CuptiKind::kPeerCopies,
    CuptiKind::kMemsets,
};

constexpr char kInstead[] =
    "CUDA events take the times instead, which include the gaps around kernels "
    "and cost the host some microseconds for each operation.";

// A note for the case that CUPTI returns `error` where it should begin.
std::string Refusal(int error, const std::string& error_text) {
  switch (error) {
    case kCuptiInsufficientPrivileges:
    case kCuptiVirtualizedInsufficientPrivileges:
      return absl::StrCat(
          "No kernel times: CUPTI was refused (permission, ", error_text, "). ",
          kInstead,
          " For kernel times run the program as root; in a container, as root "
          "with the capability SYS_ADMIN (docker run --cap-add=SYS_ADMIN); or "
          "let every user profile: write \"options nvidia "
          "NVreg_RestrictProfilingToAdminUsers=0\" to a file in "
          "/etc/modprobe.d and restart the machine. NVIDIA says more under "
          "https://developer.nvidia.com/ERR_NVGPUCTRPERM.");
    case kCuptiMultipleSubscribers:
      return absl::StrCat(
          "No kernel times: another tool uses CUPTI in this program (",
          error_text, "). ", kInstead,
          " For kernel times run the program without that tool, for example "
          "without Nsight Systems.");
    default:
      return absl::StrCat("No kernel times: CUPTI does not begin (", error_text,
                          "). ", kInstead);
  }
}

}  // namespace

// In place of times, if CUPTI refuses.
class CuptiTimer::NoTimes final : public DeviceTimes {
 public:
  explicit NoTimes(std::string note) : note_(std::move(note)) {}

  bool available() const override { return false; }
  void End() override {}
  void Collect(absl::Span<const EnqueuedOp>) override {}
  FoundTime Find(const EnqueuedOp&) const override { return {}; }
  std::vector<std::string> Notes() const override { return {note_}; }

 private:
  const std::string note_;
};

// All but the constructor with the timer's lock, where it is not said
// otherwise.
class CuptiTimer::Times final : public DeviceTimes {
 public:
  Times(CuptiTimer& timer, const Moment& begin)
      : timer_(timer), begin_(begin), latest_(begin) {}
  ~Times() override { timer_.Release(*this); }

  // ---- For the timer.

  void Add(const Stream& stream, std::uint64_t number) {
    ops_.push_back({{&stream, number}, NowNanos(), 0, 0, false});
  }
  std::size_t size() const { return ops_.size(); }

  void AddWork(std::size_t i, const CuptiRecord& work) {
    Op& op = ops_[i];
    if (work.begin == 0 || work.end < work.begin) {
      op.cut_off = true;
      return;
    }
    op.begin = op.end == 0 ? work.begin : std::min(op.begin, work.begin);
    op.end = std::max(op.end, work.end);
  }
  void AddDropped(std::int64_t records) { dropped_ += records; }

  // ---- For others, without the lock.

  bool available() const override { return true; }

  void End() override {
    std::lock_guard<std::mutex> lock(timer_.mutex_);
    if (timer_.current_ == this) timer_.current_ = nullptr;
  }

  void Collect(absl::Span<const EnqueuedOp> ops) override {
    timer_.api_.Flush(/*forced=*/false);
    // What runs now, and is not asked for, would lose its times.
    if (MissesAny(ops)) timer_.api_.Flush(/*forced=*/true);
    Moment now;
    if (timer_.Compare(&now) != 0) {
      now.host = NowNanos();
      now.cupti = static_cast<std::uint64_t>(now.host - Offset(begin_));
    }
    std::lock_guard<std::mutex> lock(timer_.mutex_);
    // Another thread may have been later, and sooner here.
    if (now.host > latest_.host) latest_ = now;
  }

  FoundTime Find(const EnqueuedOp& wanted) const override {
    std::lock_guard<std::mutex> lock(timer_.mutex_);
    FoundTime time;
    const auto found = index_.find({wanted.stream, wanted.number});
    if (found == index_.end()) return time;
    const Op& op = ops_[found->second];
    if (op.cut_off) {
      time.why_not = "CUPTI was asked before it had seen all of the work";
    } else if (op.end == 0) {
      time.why_not = "CUPTI reports no kernel, copy or memset";
    } else if (ToHost(op.begin) < op.launched - kSlackNanos ||
               ToHost(op.end) > latest_.host + kSlackNanos) {
      time.why_not =
          "CUPTI's times are impossible: before the launch, or in the future";
    } else {
      time.begin = ToHost(op.begin);
      time.end = ToHost(op.end);
    }
    return time;
  }

  std::vector<std::string> Notes() const override {
    std::lock_guard<std::mutex> lock(timer_.mutex_);
    std::vector<std::string> notes;
    if (dropped_ > 0) {
      notes.push_back(absl::StrFormat(
          "CUPTI had no room for %d of its records: device times may be "
          "missing, or too short for operations with several kernels. Record "
          "a shorter part of the program.",
          dropped_));
    }
    const std::int64_t moved = Offset(latest_) - Offset(begin_);
    if (std::abs(moved) > kSlackNanos) {
      notes.push_back(absl::StrFormat(
          "The system's clock was changed by %d us while the profiler ran: "
          "device times may be shifted by as much against host times.",
          moved / 1000));
    }
    return notes;
  }

 private:
  struct Op {
    EnqueuedOp op;
    std::int64_t launched;  // NowNanos
    std::uint64_t begin;    // on CUPTI's clock
    std::uint64_t end;
    bool cut_off;  // of some of its work the times are not known
  };

  static std::int64_t Offset(const Moment& moment) {
    return moment.host - static_cast<std::int64_t>(moment.cupti);
  }

  // Between the two moments the difference of the clocks grows evenly.
  std::int64_t ToHost(std::uint64_t cupti) const {
    double part = 0;
    if (latest_.cupti > begin_.cupti && cupti > begin_.cupti) {
      part =
          std::min(1.0, static_cast<double>(cupti - begin_.cupti) /
                            static_cast<double>(latest_.cupti - begin_.cupti));
    }
    const auto moved = static_cast<double>(Offset(latest_) - Offset(begin_));
    return static_cast<std::int64_t>(cupti) + Offset(begin_) +
           static_cast<std::int64_t>(part * moved);
  }

  bool MissesAny(absl::Span<const EnqueuedOp> wanted) {
    std::lock_guard<std::mutex> lock(timer_.mutex_);
    for (; indexed_ < ops_.size(); ++indexed_) {
      const EnqueuedOp& op = ops_[indexed_].op;
      index_[{op.stream, op.number}] = indexed_;
    }
    return std::any_of(
        wanted.begin(), wanted.end(), [this](const EnqueuedOp& op) {
          const auto found = index_.find({op.stream, op.number});
          return found != index_.end() && ops_[found->second].end == 0;
        });
  }

  CuptiTimer& timer_;
  const Moment begin_;
  Moment latest_;
  std::deque<Op> ops_;  // by id
  absl::flat_hash_map<std::pair<const Stream*, std::uint64_t>, std::size_t>
      index_;
  std::size_t indexed_ = 0;  // of ops_
  std::int64_t dropped_ = 0;
};

std::shared_ptr<DeviceTimes> CuptiTimer::Begin() {
  std::lock_guard<std::mutex> switching(switch_mutex_);
  if (users_ == 0) {
    const std::string why_not = api_.Load(this);
    if (!why_not.empty()) {
      return std::make_shared<NoTimes>(
          absl::StrCat("No kernel times: ", why_not, ". ", kInstead));
    }
    if (const int error = SwitchOn()) {
      return std::make_shared<NoTimes>(Refusal(error, api_.ErrorText(error)));
    }
  }
  Moment now;
  if (const int error = Compare(&now)) {
    if (users_ == 0) SwitchOff();
    return std::make_shared<NoTimes>(Refusal(error, api_.ErrorText(error)));
  }
  ++users_;
  auto times = std::make_shared<Times>(*this, now);
  std::lock_guard<std::mutex> lock(mutex_);
  times_.emplace(next_id_, times.get());
  current_ = times.get();
  // An id for itself: no two begin with the same.
  ++next_id_;
  return times;
}

void CuptiTimer::Release(Times& times) {
  std::lock_guard<std::mutex> switching(switch_mutex_);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (current_ == &times) current_ = nullptr;
    const auto mine =
        std::find_if(times_.begin(), times_.end(),
                     [&](const auto& entry) { return entry.second == &times; });
    times_.erase(mine);
  }
  if (--users_ > 0) return;
  SwitchOff();
  std::lock_guard<std::mutex> lock(mutex_);
  id_of_call_.clear();
  unmatched_.clear();
}

int CuptiTimer::SwitchOn() {
  if (const int error = api_.Subscribe()) return error;
  for (const CuptiKind kind : kKinds) {
    if (const int error = api_.Enable(kind)) {
      SwitchOff();
      return error;
    }
  }
  return 0;
}

void CuptiTimer::SwitchOff() {
  for (const CuptiKind kind : kKinds) api_.Disable(kind);
  // The remaining records belong to no timing, and must not be left to the next
  // one.
  api_.Flush(/*forced=*/true);
  api_.Unsubscribe();
}

int CuptiTimer::Compare(Moment* moment) {
  // CUPTI's look lies between two of the host's. The closest of three pairs is
  // the one in which nothing came between.
  std::int64_t closest = -1;
  for (int i = 0; i < 3; ++i) {
    std::uint64_t cupti = 0;
    const std::int64_t before = NowNanos();
    if (const int error = api_.Now(&cupti)) return error;
    const std::int64_t took = NowNanos() - before;
    if (closest >= 0 && took >= closest) continue;
    closest = took;
    *moment = {cupti, before + took / 2};
  }
  return 0;
}

void CuptiTimer::OnRecords(absl::Span<const CuptiRecord> records) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const CuptiRecord& record : records) {
    if (record.kind == CuptiRecord::Kind::kPushedId) {
      id_of_call_[record.call] = record.id;
      const auto [begin, end] = unmatched_.equal_range(record.call);
      for (auto it = begin; it != end; ++it) AddWork(record.id, it->second);
      unmatched_.erase(begin, end);
      continue;
    }
    const auto id = id_of_call_.find(record.call);
    if (id != id_of_call_.end()) {
      AddWork(id->second, record);
    } else if (unmatched_.size() < kMostUnmatched) {
      unmatched_.emplace(record.call, record);
    }
  }
}

void CuptiTimer::AddWork(std::uint64_t id, const CuptiRecord& work) {
  auto behind = times_.upper_bound(id);
  if (behind == times_.begin()) return;
  const auto& [first, times] = *--behind;
  // The first id is that of the times themselves.
  const std::uint64_t i = id - first - 1;
  if (id != first && i < times->size()) times->AddWork(i, work);
}

void CuptiTimer::OnDropped(std::int64_t records) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [first, times] : times_) times->AddDropped(records);
}

CuptiTimer::Scope::Scope(CuptiTimer* timer, const Stream& stream,
                         std::uint64_t number) {
  if (timer == nullptr) return;
  std::uint64_t id = 0;
  {
    std::lock_guard<std::mutex> lock(timer->mutex_);
    if (timer->current_ == nullptr) return;
    timer->current_->Add(stream, number);
    id = timer->next_id_++;
  }
  if (timer->api_.Push(id) == 0) timer_ = timer;
}

CuptiTimer::Scope::~Scope() {
  if (timer_ != nullptr) timer_->api_.Pop();
}

}  // namespace d2l
