// FakeCupti: a model of CUPTI for tests, on the CPU.
//
//   FakeCupti cupti;
//   CuptiTimer timer(cupti);
//   …
//   const std::uint32_t call = cupti.Call();  // in a launch
//   cupti.Work(call, begin, end);             // its kernel has run
//
// It delivers as CUPTI says that it does, in the way that leaves most room for
// mistakes: work before the id that belongs to it, the records of one operation
// in several buffers, nothing before it is asked to, nothing that was not
// enabled; its clock is not the host's.
//
// Thread-safe.

#ifndef D2L_COMMON_DEVICE_CUDA_FAKE_CUPTI_H_
#define D2L_COMMON_DEVICE_CUDA_FAKE_CUPTI_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "common/device/cuda/cupti_api.h"

namespace d2l {

class FakeCupti final : public CuptiApi {
 public:
  std::string Load(CuptiReceiver* receiver) override;
  int Subscribe() override;
  int Unsubscribe() override;
  int Enable(CuptiKind kind) override;
  int Disable(CuptiKind kind) override;
  int Push(std::uint64_t id) override;
  int Pop() override;
  int Flush(bool forced) override;
  int Now(std::uint64_t* nanos) override;
  std::string ErrorText(int error) override;

  // ---- What a program does.

  // This thread calls CUDA. Returns the number of the call.
  std::uint32_t Call();
  // Work of a call, with its times on NowNanos' clock, which is done already.
  void Work(std::uint32_t call, std::int64_t begin, std::int64_t end);
  // Work of a call that runs, until the work with this key ends.
  int StartWork(std::uint32_t call, std::int64_t begin);
  void EndWork(int key, std::int64_t end);

  // ---- For tests.

  // A buffer is full when it has so many records.
  void SetBufferSize(std::size_t records);
  // "" if there is a library.
  void SetWhyNotLoaded(const std::string& why);
  // What Subscribe, Enable of this kind, Push and Now return from now on.
  void FailSubscribe(int error);
  void FailEnable(CuptiKind kind, int error);
  void FailPush(int error);
  void FailNow(int error);
  // There was no room for so many records.
  void Drop(std::int64_t records);
  // CUPTI's clock is set.
  void MoveClock(std::int64_t nanos);

  bool subscribed();
  std::set<CuptiKind> enabled();
  // How many ids are pushed now, on all threads.
  int pushed();
  int forced_flushes();
  int loads();

 private:
  struct Record {
    CuptiRecord record;
    int running = 0;  // its key; 0 if it is done
  };

  // With the lock.
  void Add(const Record& record);
  std::uint64_t ToCupti(std::int64_t host_nanos) const;

  std::mutex mutex_;  // guards all below
  CuptiReceiver* receiver_ = nullptr;
  bool subscribed_ = false;
  std::set<CuptiKind> enabled_;
  std::map<std::thread::id, std::vector<std::uint64_t>> pushed_;
  std::vector<std::vector<Record>> buffers_{1};
  std::size_t buffer_size_ = 3;
  std::uint32_t calls_ = 0;
  int keys_ = 0;
  std::int64_t dropped_ = 0;
  // Its zero is some 47 years before the host's.
  std::int64_t ahead_nanos_ = 1'500'000'000'000'000'000;
  std::string why_not_loaded_;
  std::map<CuptiKind, int> enable_errors_;
  int subscribe_error_ = 0;
  int push_error_ = 0;
  int now_error_ = 0;
  int forced_flushes_ = 0;
  int loads_ = 0;
};

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_CUDA_FAKE_CUPTI_H_
