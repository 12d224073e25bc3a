// DeviceTimes: the times of operations on a device, from a tool such as CUPTI.
//
//   std::shared_ptr<DeviceTimes> times = CudaBackend().BeginTiming();
//   … operations, whose stamps say that they may be OpStamps::kOptional …
//   times->End();
//   … wait for them …
//   times->Collect(ops);
//   DeviceTime time = times->Find(ops[0]);
//
// OpStamps are written by the device's stream when it finds that an operation
// is done. A tool such as CUPTI is more exact and disturbs less, but delivers
// times late and for many operations at once, so its times are fetched with
// Collect and Find instead.
//
// Thread-safe. Reference-counted; the last owner's release ends the timing.

#ifndef D2L_COMMON_DEVICE_DEVICE_TIMES_H_
#define D2L_COMMON_DEVICE_DEVICE_TIMES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/device/stream.h"

namespace d2l {

struct EnqueuedOp {
  const Stream* stream;
  std::uint64_t number;  // in the stream
};

// On NowNanos' clock.
struct FoundTime {
  std::int64_t begin = 0;
  std::int64_t end = 0;   // 0: not known
  std::string why_not{};  // then; without a full stop, and empty if the tool
                          // has nothing to do with the operation
};

class DeviceTimes {
 public:
  virtual ~DeviceTimes() = default;

  // False if the tool cannot be used; Notes says why. Then all stamps are
  // written, optional ones too.
  virtual bool available() const = 0;

  // Takes no times of operations enqueued from now on.
  virtual void End() = 0;

  // Fetches the times of these operations, which are done, for Find; perhaps of
  // others, too.
  virtual void Collect(absl::Span<const EnqueuedOp> ops) = 0;
  virtual FoundTime Find(const EnqueuedOp& op) const = 0;

  // The problems known so far and their remedies, in whole sentences.
  virtual std::vector<std::string> Notes() const = 0;
};

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_DEVICE_TIMES_H_
