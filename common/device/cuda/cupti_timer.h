// CuptiTimer: the times of operations on GPUs, from CUPTI.
//
//   CuptiTimer& timer = *new CuptiTimer(RealCuptiApi());
//   const std::shared_ptr<DeviceTimes> times = timer.Begin();
//   {
//     const CuptiTimer::Scope scope(&timer, stream, number);
//     … launches the operation's kernels …
//   }
//
// An operation begins when the first of its kernels, copies and memsets does,
// and ends with the last of them. That leaves out what two CUDA events around
// it measure as well: the way from one kernel to the next, and the events
// themselves, which cost the host some microseconds for each operation.
//
// Records are kept here until DeviceTimes fetches them. CUPTI records from the
// first Begin until the last DeviceTimes is gone, and slows every launch a
// little meanwhile. If CUPTI refuses, DeviceTimes is not available(), and its
// notes say why and what to do.
//
// CUPTI's clock is compared with the host's at the beginning and with each
// Collect. (It would also take a clock of ours, with
// cuptiActivityRegisterTimestampCallback. But there are versions that then mix
// up the two clocks, if it is registered twice, or when a GPU is in use
// already, which it is here.)
//
// Not yet run on a GPU, only on a model of CUPTI and, for what works without a
// driver, on the library: that CUPTI takes all seven kinds together, how long a
// flush takes, how much it slows a launch, and that with the default flush
// everything that is done is delivered.
//
// Thread-safe. It outlives what it makes, so it is never destroyed.

#ifndef D2L_COMMON_DEVICE_CUDA_CUPTI_TIMER_H_
#define D2L_COMMON_DEVICE_CUDA_CUPTI_TIMER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "common/device/cuda/cupti_api.h"
#include "common/device/device_times.h"
#include "common/device/stream.h"

namespace d2l {

class CuptiTimer final : private CuptiReceiver {
 public:
  // By how much CUPTI's times may contradict the host's: an operation that
  // begins earlier before its launch has no time.
  static constexpr std::int64_t kSlackNanos = 100'000;
  // How many activities are kept for which no operation is known.
  static constexpr std::size_t kMostUnmatched = std::size_t{1} << 20;

  explicit CuptiTimer(CuptiApi& api) : api_(api) {}
  CuptiTimer(const CuptiTimer&) = delete;
  CuptiTimer& operator=(const CuptiTimer&) = delete;

  // Times are taken for the result, and no longer for that of the last call.
  // The first call loads CUPTI.
  std::shared_ptr<DeviceTimes> Begin();

  // While it lives, this thread's CUDA calls are attributed to the operation.
  // They do not nest.
  class Scope {
   public:
    // timer: null for none.
    Scope(CuptiTimer* timer, const Stream& stream, std::uint64_t number);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

    // False if no times are taken; then it does nothing.
    bool taken() const { return timer_ != nullptr; }

   private:
    CuptiTimer* timer_ = nullptr;
  };

 private:
  class Times;
  class NoTimes;

  // A moment on both clocks.
  struct Moment {
    std::uint64_t cupti = 0;
    std::int64_t host = 0;
  };

  // With switch_mutex_. Returns CUPTI's error, and then it is off; or 0.
  int SwitchOn();
  void SwitchOff();
  void Release(Times& times);
  // Returns CUPTI's error.
  int Compare(Moment* moment);

  void OnRecords(absl::Span<const CuptiRecord> records) override;
  void OnDropped(std::int64_t records) override;
  // With the lock.
  void AddWork(std::uint64_t id, const CuptiRecord& work);

  CuptiApi& api_;

  // Held while CUPTI is switched on and off, when the other one is not: CUPTI
  // may deliver records within any call.
  std::mutex switch_mutex_;
  int users_ = 0;  // guarded by it

  std::mutex mutex_;  // guards all below
  Times* current_ = nullptr;
  std::map<std::uint64_t, Times*> times_;  // by the first of their ids
  std::uint64_t next_id_ = 1;
  absl::flat_hash_map<std::uint32_t, std::uint64_t> id_of_call_;
  // Records whose id was not delivered yet, or that were not requested.
  std::unordered_multimap<std::uint32_t, CuptiRecord> unmatched_;
};

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_CUDA_CUPTI_TIMER_H_
