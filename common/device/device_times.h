// DeviceTimes: when operations ran on a device, as a tool beside it knows, for
// those who ask afterwards.
//
//   std::shared_ptr<DeviceTimes> times = CudaBackend().BeginTiming();
//   … operations, whose stamps say that they may be OpStamps::kOptional …
//   times->End();
//   … wait for them …
//   times->Collect(ops);
//   DeviceTime time = times->Find(ops[0]);
//
// OpStamps are written by the device's stream when it finds that an operation
// is done. A tool such as CUPTI is more exact and disturbs less, but tells the
// times late, and of many operations at once, so it is asked and writes to no
// memory of others.
//
// Thread-safe. Lives as long as somebody refers to it, and then takes no time
// any more.

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

  // False if the tool cannot be used, which Notes says: then stamps are
  // written, whatever they say.
  virtual bool available() const = 0;

  // Of what is enqueued from now on no times are taken.
  virtual void End() = 0;

  // Fetches the times of these operations, which are done. Find then knows
  // them, and perhaps others.
  virtual void Collect(absl::Span<const EnqueuedOp> ops) = 0;
  virtual FoundTime Find(const EnqueuedOp& op) const = 0;

  // Whole sentences on what is wrong with the times and what to do about it, as
  // far as that is known now.
  virtual std::vector<std::string> Notes() const = 0;
};

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_DEVICE_TIMES_H_
