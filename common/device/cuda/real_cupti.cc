#include <cupti.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/device/cuda/cupti_api.h"
#include "common/device/cuda/cupti_library.h"

namespace d2l {
namespace {

static_assert(kCuptiInsufficientPrivileges ==
              static_cast<int>(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES));
static_assert(kCuptiMultipleSubscribers ==
              static_cast<int>(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED));
static_assert(
    kCuptiVirtualizedInsufficientPrivileges ==
    static_cast<int>(CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES));

// Room for some thousand records. NVIDIA recommends 1 to 10 MiB.
constexpr std::size_t kBufferBytes = std::size_t{1} << 20;
constexpr std::size_t kBufferAlignment = 8;  // CUPTI's demand

CUpti_ActivityKind ToCupti(CuptiKind kind) {
  switch (kind) {
    case CuptiKind::kPushedIds:
      return CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
    case CuptiKind::kRuntimeCalls:
      return CUPTI_ACTIVITY_KIND_RUNTIME;
    case CuptiKind::kDriverCalls:
      return CUPTI_ACTIVITY_KIND_DRIVER;
    case CuptiKind::kKernels:
      // The other kind of kernel record makes them run one after the other.
      return CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    case CuptiKind::kCopies:
      return CUPTI_ACTIVITY_KIND_MEMCPY;
    case CuptiKind::kPeerCopies:
      return CUPTI_ACTIVITY_KIND_MEMCPY2;
    case CuptiKind::kMemsets:
      return CUPTI_ACTIVITY_KIND_MEMSET;
  }
  return CUPTI_ACTIVITY_KIND_INVALID;
}

class RealCupti final : public CuptiApi {
 public:
  // Never destroyed: CUPTI may deliver until the process ends.
  static RealCupti& Get() {
    static RealCupti& cupti = *new RealCupti;
    return cupti;
  }

  std::string Load(CuptiReceiver* receiver) override {
    std::lock_guard<std::mutex> lock(load_mutex_);
    receiver_.store(receiver, std::memory_order_release);
    if (loaded_) return "";
    try {
      cupti_ = LoadCupti(CuptiFolders());
    } catch (const std::runtime_error& error) {
      return absl::StrCat(
          "CUPTI is not here: ", error.what(),
          " Install the CUDA toolkit with CUPTI, or set LD_LIBRARY_PATH to a "
          "folder that has it");
    }
    loaded_ = true;
    return "";
  }

  int Subscribe() override {
    // For who comes second it fails. Callbacks are not needed.
    const CUptiResult error =
        cupti_.subscribe(&subscriber_, IgnoreCall, nullptr);
    if (error != CUPTI_SUCCESS) return error;
    const CUptiResult of_buffers =
        cupti_.register_callbacks(NewBuffer, TakeBuffer);
    if (of_buffers != CUPTI_SUCCESS) cupti_.unsubscribe(subscriber_);
    return of_buffers;
  }
  int Unsubscribe() override { return cupti_.unsubscribe(subscriber_); }

  int Enable(CuptiKind kind) override { return cupti_.enable(ToCupti(kind)); }
  int Disable(CuptiKind kind) override { return cupti_.disable(ToCupti(kind)); }
  int Push(std::uint64_t id) override {
    return cupti_.push_id(kCuptiIdKind, id);
  }
  int Pop() override { return cupti_.pop_id(kCuptiIdKind, nullptr); }
  int Flush(bool forced) override {
    return cupti_.flush_all(forced ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
  }
  int Now(std::uint64_t* nanos) override { return cupti_.timestamp(nanos); }

  std::string ErrorText(int error) override {
    const char* text = nullptr;
    if (cupti_.result_string(static_cast<CUptiResult>(error), &text) !=
            CUPTI_SUCCESS ||
        text == nullptr) {
      return absl::StrCat("CUPTI's error ", error);
    }
    return text;
  }

 private:
  static void CUPTIAPI IgnoreCall(void*, CUpti_CallbackDomain, CUpti_CallbackId,
                                  const void*) {}

  static void CUPTIAPI NewBuffer(std::uint8_t** buffer, std::size_t* size,
                                 std::size_t* max_records) {
    *buffer = static_cast<std::uint8_t*>(
        std::aligned_alloc(kBufferAlignment, kBufferBytes));
    *size = kBufferBytes;
    *max_records = 0;  // as many as there is room for
  }

  static void CUPTIAPI TakeBuffer(CUcontext context, std::uint32_t stream,
                                  std::uint8_t* buffer, std::size_t /*size*/,
                                  std::size_t bytes) {
    RealCupti& self = Get();
    CuptiReceiver& receiver = *self.receiver_.load(std::memory_order_acquire);
    receiver.OnRecords(RecordsIn(self.cupti_, buffer, bytes));
    std::free(buffer);
    std::size_t dropped = 0;
    if (self.cupti_.dropped_records(context, stream, &dropped) ==
            CUPTI_SUCCESS &&
        dropped > 0) {
      receiver.OnDropped(static_cast<std::int64_t>(dropped));
    }
  }

  std::mutex load_mutex_;  // guards loaded_
  bool loaded_ = false;
  CuptiLibrary cupti_;                           // constant once it is loaded
  CUpti_SubscriberHandle subscriber_ = nullptr;  // between the two calls
  std::atomic<CuptiReceiver*> receiver_{nullptr};
};

}  // namespace

CuptiApi& RealCuptiApi() { return RealCupti::Get(); }

}  // namespace d2l
